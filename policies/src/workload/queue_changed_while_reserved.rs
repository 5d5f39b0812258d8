#![doc = include_str!("queue_changed_while_reserved.md")]

use super::quota_status::{has_quota_reserved, while_reserved};
use crate::cel::{CelRule, same_field};
use crate::finding::{Findings, quoted};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    CelRule::new(
    "",
    while_reserved(&same_field("self.spec", "oldSelf.spec", "queueName")),
    "field is immutable while quota is reserved; deactivate the workload first",
)
.message_expression(
    "'\"' + (has(self.spec.queueName) ? self.spec.queueName : '') + '\": field is immutable while quota is reserved; ' \
     + (has(oldSelf.spec.queueName) ? 'keep \"' + oldSelf.spec.queueName + '\"' : 'leave it out') \
     + ', or deactivate the workload first'",
)
.field_path(".spec.queueName")
}

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL015",
    name: "queue-changed-while-reserved",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["wl-queue-name-immutable-reserved"],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
    doc: include_str!("queue_changed_while_reserved.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    let before = &change.old.spec.queue_name;
    let after = &change.new.spec.queue_name;
    if before == after || !has_quota_reserved(change.old) || !has_quota_reserved(change.new) {
        return;
    }
    let kept = match before {
        Some(name) => format!("keep {}", quoted(name)),
        None => "leave it out".to_owned(),
    };
    out.invalid(
        FieldPath::new("spec.queueName"),
        after.as_deref().unwrap_or_default(),
        format!(
            "field is immutable while quota is reserved; {kept}, or deactivate the workload first"
        ),
    );
}

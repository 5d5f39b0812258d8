#![doc = include_str!("queue_changed.md")]

use super::{
    QueuedJob, is_running_change, label, label_changed, label_changed_cel, label_path,
    same_label_cel, while_running_cel,
};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::QUEUE_NAME;

fn cel_rule() -> CelRule {
    CelRule::new(
        "",
        while_running_cel(&same_label_cel(QUEUE_NAME)),
        "field is immutable while the job is not suspended; set spec.suspend to true first",
    )
    .message_expression(label_changed_cel(QUEUE_NAME))
    .field_path(format!(".metadata.labels['{QUEUE_NAME}']"))
}

/// The rule for a kind of job.
pub(crate) const fn rule<T: QueuedJob>() -> Rule<T> {
    Rule {
        id: "JO001",
        name: "queue-changed-while-running",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &["job-queue-name-immutable-running"],
        layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
        doc: include_str!("queue_changed.md"),
        check: Check::Change(check),
    }
}

fn check<T: QueuedJob>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    let (old, new) = (label(change.old, QUEUE_NAME), label(change.new, QUEUE_NAME));
    if old != new && is_running_change(change) {
        out.invalid(
            label_path(QUEUE_NAME),
            new.unwrap_or_default(),
            label_changed(old),
        );
    }
}

#![doc = include_str!("execution_time_changed_while_admitted.md")]

use super::quota_status::{is_admitted, while_admitted};
use crate::cel::{CelRule, same_field};
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    CelRule::new(
        "",
        while_admitted(&format!(
            "[self.spec].all(it, [oldSelf.spec].all(was, {}))",
            same_field("it", "was", "maximumExecutionTimeSeconds")
        )),
        "field is immutable while the workload is admitted; deactivate it first",
    )
    .field_path(".spec.maximumExecutionTimeSeconds")
}

pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL016",
    name: "execution-time-changed-while-admitted",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["wl-max-exec-time-immutable-admitted"],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
    doc: include_str!("execution_time_changed_while_admitted.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    let before = change.old.spec.maximum_execution_time_seconds;
    let after = change.new.spec.maximum_execution_time_seconds;
    if before == after || !is_admitted(change.old) || !is_admitted(change.new) {
        return;
    }
    let kept = before.map_or_else(|| "leave it out".to_owned(), |it| format!("keep {it}"));
    out.invalid(
        FieldPath::new("spec.maximumExecutionTimeSeconds"),
        after.map(|it| it.to_string()).unwrap_or_default(),
        format!(
            "field is immutable while the workload is admitted; {kept}, or deactivate it first"
        ),
    );
}

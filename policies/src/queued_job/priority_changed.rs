#![doc = include_str!("priority_changed.md")]

use super::{
    LEAVE_OUT, QueuedJob, is_running_change, label, label_changed, label_changed_cel, label_path,
    while_running_cel,
};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::metadata_cel::same_label;
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::{PREEMPTION_PRIORITY_CLASS, PRIORITY_CLASS};

/// The labels with priority classes.
const KEYS: [&str; 2] = [PRIORITY_CLASS, PREEMPTION_PRIORITY_CLASS];

fn cel_rules() -> Vec<CelRule> {
    let rules = KEYS.iter().map(|key| {
        CelRule::new(
            "",
            while_running_cel(&same_label("self", "oldSelf", key)),
            "field is immutable while the job is not suspended; set spec.suspend to true first",
        )
        .message_expression(label_changed_cel(key, LEAVE_OUT))
        .field_path(format!(".metadata.labels['{key}']"))
    });
    rules.collect()
}

/// The rule for a kind of job.
pub(crate) const fn rule<T: QueuedJob>() -> Rule<T> {
    Rule {
        id: "JO002",
        name: "priority-changed-while-running",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &["job-priority-class-no-add-running"],
        layers: &[Layer::Webhook, Layer::Policy(cel_rules)],
        doc: include_str!("priority_changed.md"),
        check: Check::Change(check),
    }
}

fn check<T: QueuedJob>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    for key in KEYS {
        let (old, new) = (label(change.old, key), label(change.new, key));
        if old != new && is_running_change(change) {
            out.invalid(
                label_path(key),
                new.unwrap_or_default(),
                label_changed(old, LEAVE_OUT),
            );
        }
    }
}

#![doc = include_str!("threshold_without_policy.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::quota::QueueFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    CelRule::new(
    "spec.preemption.borrowWithinCohort",
    "!has(self.maxPriorityThreshold) || (has(self.policy) && self.policy != 'Never')",
    "has no effect with the policy Never; set borrowWithinCohort.policy to LowerPriority, or remove it",
)
.field_path(".maxPriorityThreshold")
.unchanged_when(
    "has(oldSelf.maxPriorityThreshold) && self.maxPriorityThreshold == oldSelf.maxPriorityThreshold \
     && !(has(oldSelf.policy) && oldSelf.policy != 'Never')",
)
}

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ023",
        name: "threshold-without-policy",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
        doc: include_str!("threshold_without_policy.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QueueFields>(queue: &T, out: &mut Findings) {
    if let Some(threshold) = queue.max_priority_threshold()
        && queue.borrow_preemption_policy().is_none()
    {
        out.invalid(
            FieldPath::new("spec.preemption.borrowWithinCohort.maxPriorityThreshold"),
            threshold,
            "has no effect with the policy Never; set borrowWithinCohort.policy to LowerPriority, or remove it",
        );
    }
}

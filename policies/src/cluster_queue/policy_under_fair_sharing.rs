#![doc = include_str!("policy_under_fair_sharing.md")]

use crate::finding::Findings;
use crate::quota::QueueFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::{Action, Algorithm};
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ020",
        name: "policy-under-fair-sharing",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("policy_under_fair_sharing.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QueueFields>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    if context.settings.algorithm != Algorithm::FairSharing {
        return;
    }
    if let Some(policy) = queue.borrow_preemption_policy() {
        out.invalid(
            FieldPath::new("spec.preemption.borrowWithinCohort.policy"),
            policy,
            "has no effect under fair sharing, where shares select the victims; remove borrowWithinCohort",
        );
    }
}

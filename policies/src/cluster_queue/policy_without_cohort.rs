#![doc = include_str!("policy_without_cohort.md")]

use crate::finding::Findings;
use crate::quota::IsQueue;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: IsQueue>() -> Rule<T> {
    Rule {
        id: "CQ022",
        name: "policy-without-cohort",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("policy_without_cohort.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: IsQueue>(queue: &T, out: &mut Findings) {
    if queue.is_in_cohort() {
        return;
    }
    let policies = [
        ("reclaimWithinCohort", queue.reclaims()),
        (
            "borrowWithinCohort.policy",
            queue.preempts_while_borrowing(),
        ),
    ];
    for (name, policy) in policies {
        if let Some(policy) = policy {
            out.invalid(
                FieldPath::new("spec.preemption").field(name),
                policy,
                "has no effect without a cohort; set spec.cohortName or remove it",
            );
        }
    }
}

#![doc = include_str!("policy_without_cohort.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::quota::QueueFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

fn reclaim() -> CelRule {
    CelRule::new(
    "spec",
    "(has(self.cohortName) && self.cohortName != '') || !has(self.preemption) \
     || !has(self.preemption.reclaimWithinCohort) || self.preemption.reclaimWithinCohort == 'Never'",
    "reclaimWithinCohort has no effect without a cohort; set spec.cohortName or remove it",
)
.field_path(".preemption.reclaimWithinCohort")
.unchanged_when(
    "!(has(oldSelf.cohortName) && oldSelf.cohortName != '') && has(oldSelf.preemption) \
     && has(oldSelf.preemption.reclaimWithinCohort) \
     && self.preemption.reclaimWithinCohort == oldSelf.preemption.reclaimWithinCohort",
)
}

fn borrow() -> CelRule {
    CelRule::new(
    "spec",
    "(has(self.cohortName) && self.cohortName != '') || !has(self.preemption) \
     || !has(self.preemption.borrowWithinCohort) || !has(self.preemption.borrowWithinCohort.policy) \
     || self.preemption.borrowWithinCohort.policy == 'Never'",
    "borrowWithinCohort.policy has no effect without a cohort; set spec.cohortName or remove it",
)
.field_path(".preemption.borrowWithinCohort.policy")
.unchanged_when(
    "!(has(oldSelf.cohortName) && oldSelf.cohortName != '') && has(oldSelf.preemption) \
     && has(oldSelf.preemption.borrowWithinCohort) && has(oldSelf.preemption.borrowWithinCohort.policy) \
     && self.preemption.borrowWithinCohort.policy == oldSelf.preemption.borrowWithinCohort.policy",
)
}

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ022",
        name: "policy-without-cohort",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook, Layer::Policy(|| vec![reclaim(), borrow()])],
        doc: include_str!("policy_without_cohort.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QueueFields>(queue: &T, out: &mut Findings) {
    if queue.is_in_cohort() {
        return;
    }
    let policies = [
        ("reclaimWithinCohort", queue.reclaim_policy()),
        (
            "borrowWithinCohort.policy",
            queue.borrow_preemption_policy(),
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

#![doc = include_str!("borrow_without_reclaim.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::cluster_queue::{BorrowWithinCohortPolicy, ReclaimWithinCohort};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

/// The CEL form of the rule. An elastic queue reclaims by default.
fn cel_rule() -> CelRule {
    CelRule::new(
    "spec",
    "!has(self.preemption) || !has(self.preemption.borrowWithinCohort) \
     || !has(self.preemption.borrowWithinCohort.policy) || self.preemption.borrowWithinCohort.policy == 'Never' \
     || (has(self.preemption.reclaimWithinCohort) ? self.preemption.reclaimWithinCohort != 'Never' : has(self.elastic))",
    "preempting while borrowing needs reclaimWithinCohort, which is Never; set reclaimWithinCohort to LowerPriority or \
     Any, or this policy to Never",
)
.message_expression(
    "'\"' + self.preemption.borrowWithinCohort.policy + '\": preempting while borrowing needs reclaimWithinCohort, \
     which is Never; set reclaimWithinCohort to LowerPriority or Any, or this policy to Never'",
)
.field_path(".preemption.borrowWithinCohort.policy")
.unchanged_when(
    "has(oldSelf.preemption) && has(oldSelf.preemption.borrowWithinCohort) \
     && has(oldSelf.preemption.borrowWithinCohort.policy) \
     && self.preemption.borrowWithinCohort.policy == oldSelf.preemption.borrowWithinCohort.policy \
     && (has(oldSelf.preemption.reclaimWithinCohort) \
         ? oldSelf.preemption.reclaimWithinCohort == 'Never' : !has(oldSelf.elastic))",
)
}

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ001",
    name: "borrow-without-reclaim",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["cq-preemption-borrow-needs-reclaim"],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
    doc: include_str!("borrow_without_reclaim.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    let borrow = queue.spec.borrow_within_cohort();
    let reclaim = queue.spec.reclaim_within_cohort();
    if borrow != BorrowWithinCohortPolicy::Never && reclaim == ReclaimWithinCohort::Never {
        out.invalid(
            FieldPath::new("spec.preemption.borrowWithinCohort.policy"),
            format!("{borrow:?}"),
            "preempting while borrowing needs reclaimWithinCohort, which is Never; set \
             reclaimWithinCohort to LowerPriority or Any, or this policy to Never",
        );
    }
}

#![doc = include_str!("borrow_without_reclaim.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::cluster_queue::{BorrowWithinCohortPolicy, ReclaimWithinCohort};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ001",
    name: "borrow-without-reclaim",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["cq-preemption-borrow-needs-reclaim"],
    layers: &[Layer::Webhook],
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

//! Limits on borrowing and lending in a queue that has nobody to borrow from or lend to.
#![doc = include_str!("borrowing_limit_without_cohort.md")]
#![doc = include_str!("lending_limit_without_cohort.md")]

use crate::finding::Findings;
use crate::quota;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::config::Action;

pub(super) const BORROWING: Rule<ClusterQueue> = Rule {
    id: "CQ002",
    name: "borrowing-limit-without-cohort",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["cq-borrowing-limit-needs-cohort"],
    layers: &[Layer::Webhook],
    doc: include_str!("borrowing_limit_without_cohort.md"),
    check: Check::Object(borrowing),
};

pub(super) const LENDING: Rule<ClusterQueue> = Rule {
    id: "CQ003",
    name: "lending-limit-without-cohort",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["cq-lending-limit-needs-cohort"],
    layers: &[Layer::Webhook],
    doc: include_str!("lending_limit_without_cohort.md"),
    check: Check::Object(lending),
};

fn borrowing(queue: &ClusterQueue, out: &mut Findings) {
    if queue.spec.cohort_name.is_some() {
        return;
    }
    quota::each(&queue.spec.resource_groups, out, |place, out| {
        if let Some(limit) = place.quota.borrowing_limit {
            out.invalid(
                place.field("borrowingLimit"),
                limit,
                "there is nobody to borrow from without a cohort; set spec.cohortName or remove \
                 the limit",
            );
        }
    });
}

fn lending(queue: &ClusterQueue, out: &mut Findings) {
    if queue.spec.cohort_name.is_some() {
        return;
    }
    quota::each(&queue.spec.resource_groups, out, |place, out| {
        if let Some(limit) = place.quota.lending_limit {
            out.invalid(
                place.field("lendingLimit"),
                limit,
                "there is nobody to lend to without a cohort; set spec.cohortName or remove the \
                 limit",
            );
        }
    });
}

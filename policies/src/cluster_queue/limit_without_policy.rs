#![doc = include_str!("limit_without_policy.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::cluster_queue::{ReclaimWithinCohort, WithinClusterQueue};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ030",
    name: "limit-without-policy",
    since: "0.1.0",
    action: Action::Warn,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("limit_without_policy.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    let spec = &queue.spec;
    let limits = spec.preemption.as_ref().and_then(|it| it.limits.as_ref());
    let Some(limits) = limits else {
        return;
    };
    let within = spec.within_cluster_queue() == WithinClusterQueue::Never;
    let reclaim = spec.reclaim_within_cohort() == ReclaimWithinCohort::Never;
    let field = |name| FieldPath::new("spec.preemption.limits").field(name);
    if let Some(threshold) = limits.within_max_priority_threshold.filter(|_| within) {
        out.invalid(
            field("withinMaxPriorityThreshold"),
            threshold,
            "has no effect with withinClusterQueue Never; set withinClusterQueue, or remove the limit",
        );
    }
    if let Some(threshold) = limits.reclaim_max_priority_threshold.filter(|_| reclaim) {
        out.invalid(
            field("reclaimMaxPriorityThreshold"),
            threshold,
            "has no effect with reclaimWithinCohort Never; set reclaimWithinCohort, or remove the limit",
        );
    }
    if let Some(delay) = limits
        .delay_seconds
        .filter(|it| *it > 0 && within && reclaim)
    {
        out.invalid(
            field("delaySeconds"),
            delay,
            "has no effect, since no workload of the queue may preempt; set withinClusterQueue or reclaimWithinCohort, \
             or remove the limit",
        );
    }
    if let Some(runtime) = limits.within_min_run_seconds.filter(|it| *it > 0 && within) {
        out.invalid(
            field("withinMinRunSeconds"),
            runtime,
            "has no effect with withinClusterQueue Never; set withinClusterQueue, or remove the limit",
        );
    }
}

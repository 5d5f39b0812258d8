//! The measures by which configurations are compared.

use super::fairness::{Fairness, fairness};
use super::group_metrics::{GroupMetrics, by_priority, by_queue};
use super::job_trace::JobTrace;
use super::node_metrics::{NodeMetrics, node_metrics};
use super::pool_metrics::{PoolMetrics, by_flavor, by_resource};
use super::quota_metrics::{QuotaMetrics, quota_metrics};
use super::result::{RunEnd, Timeline};
use super::usage_history::usage_history;
use super::utilization::capacity_seconds;
use serde::Serialize;
use std::collections::BTreeMap;

/// Measures of a simulation beyond [`Stats`](super::Stats).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// By ClusterQueue, in the order of the trace.
    pub queues: Vec<GroupMetrics>,
    /// By priority, the highest first.
    pub priorities: Vec<GroupMetrics>,
    /// By quota, sorted by the names of queue, flavor and resource.
    pub quotas: Vec<QuotaMetrics>,
    /// By flavor and resource, over all queues.
    pub flavors: Vec<PoolMetrics>,
    /// By resource, over all queues.
    pub resources: Vec<PoolMetrics>,
    /// By resource, of the jobs that are placed on nodes. Left out of JSON without nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeMetrics>,
    /// How evenly queues use quota.
    pub fairness: Fairness,
    /// Repeated preemptions.
    pub repeated_preemptions: RepeatedPreemptions,
}

/// Jobs that are preempted again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RepeatedPreemptions {
    /// The jobs that were preempted.
    pub preempted_jobs: usize,
    /// The jobs that were preempted more than once.
    pub repeatedly_preempted_jobs: usize,
    /// The most preemptions of a job.
    pub most_preemptions: usize,
}

/// Computes the measures. Costs the logarithm of the number of runs for each run.
#[must_use]
pub fn metrics(trace: &JobTrace, timeline: &Timeline) -> Metrics {
    let histories = usage_history(trace, timeline);
    let capacity = capacity_seconds(trace, timeline.measured_until_s());
    let mut by_name: BTreeMap<&str, i128> = BTreeMap::new();
    for ((_, resource), amount) in &capacity {
        let sum = by_name.entry(resource).or_default();
        *sum = sum.saturating_add(*amount);
    }
    Metrics {
        queues: by_queue(trace, timeline),
        priorities: by_priority(trace, timeline),
        quotas: quota_metrics(trace, timeline, &histories),
        flavors: by_flavor(timeline, &capacity),
        resources: by_resource(timeline, &by_name),
        nodes: node_metrics(trace, timeline),
        fairness: fairness(trace, timeline, &histories, &by_name),
        repeated_preemptions: repeated_preemptions(timeline),
    }
}

fn repeated_preemptions(timeline: &Timeline) -> RepeatedPreemptions {
    let mut repeated_preemptions = RepeatedPreemptions::default();
    for job in &timeline.jobs {
        let runs = job.runs.iter();
        let preempted = runs.filter(|run| matches!(run.end, RunEnd::Preempted(_)));
        let count = preempted.count();
        if count > 0 {
            repeated_preemptions.preempted_jobs =
                repeated_preemptions.preempted_jobs.saturating_add(1);
        }
        if count > 1 {
            let repeated = &mut repeated_preemptions.repeatedly_preempted_jobs;
            *repeated = repeated.saturating_add(1);
        }
        repeated_preemptions.most_preemptions = repeated_preemptions.most_preemptions.max(count);
    }
    repeated_preemptions
}

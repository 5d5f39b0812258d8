//! The use of nodes.

use super::job_trace::JobTrace;
use super::pod_objects::per_part;
use super::ratio::ratio;
use super::result::{Run, RunEnd, Timeline};
use serde::Serialize;
use std::collections::BTreeMap;

/// The resource of the number of pods.
const PODS: &str = "pods";

/// The use of one resource of all nodes together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetrics {
    /// The resource.
    pub resource: String,
    /// The requested amount times seconds, divided by the allocatable amount times the makespan; `None` without either.
    pub utilization: Option<f64>,
    /// The largest requested amount at the end of an instant.
    pub peak: i64,
}

/// The use of each resource of the nodes by the jobs that were placed on them, by name; none without nodes.
pub(super) fn node_metrics(trace: &JobTrace, timeline: &Timeline) -> Vec<NodeMetrics> {
    let Some(placement) = trace.placement.as_ref().filter(|it| it.is_on()) else {
        return Vec::new();
    };
    let mut allocatable: BTreeMap<&str, i128> = BTreeMap::new();
    for node in &placement.nodes {
        for (resource, amount) in &node.allocatable {
            let amount = i128::from(amount.in_core_units(resource).unwrap_or_default());
            let sum = allocatable.entry(resource).or_default();
            *sum = sum.saturating_add(amount.saturating_mul(i128::from(node.count())));
        }
    }
    let until_s = timeline.measured_until_s();
    let mut changes: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for (job, of_job) in trace.jobs.iter().zip(&timeline.jobs) {
        for run in of_job.runs.iter().filter(|it| it.nodes.is_some()) {
            let (from_s, to_s) = (run.from_s.max(0), end_s(run, until_s));
            for (at, pod_set) in job.pod_sets.iter().enumerate() {
                let counts = run.assignment.counts.as_ref();
                let count = counts.and_then(|it| it.get(at)).copied();
                let count = count.unwrap_or(pod_set.count);
                let pods = changes.entry(PODS).or_default();
                pods.push((from_s, count));
                pods.push((to_s, count.saturating_neg()));
                for (resource, amount) in pod_set.requests.iter().filter(|it| it.0 != PODS) {
                    let amount = amount.in_core_units(resource).unwrap_or_default();
                    let each = per_part(amount, pod_set.count).unwrap_or_default();
                    let used = each.saturating_mul(count);
                    let of_resource = changes.entry(resource).or_default();
                    of_resource.push((from_s, used));
                    of_resource.push((to_s, used.saturating_neg()));
                }
            }
        }
    }
    let resources = allocatable.into_iter().map(|(resource, amount)| {
        let (used, peak) = use_and_peak(changes.remove(resource).unwrap_or_default());
        let capacity = amount.saturating_mul(i128::from(until_s));
        NodeMetrics {
            resource: resource.to_owned(),
            utilization: (capacity > 0).then(|| ratio(used, capacity)),
            peak,
        }
    });
    resources.collect()
}

/// When a run releases its nodes, in seconds.
fn end_s(run: &Run, until_s: i64) -> i64 {
    match run.end {
        RunEnd::Open => until_s,
        RunEnd::Finished(at_s) | RunEnd::Evicted(at_s) => at_s,
        RunEnd::Preempted(eviction) => eviction.released_at_s.unwrap_or(eviction.at_s),
        RunEnd::NotReady(eviction) => eviction.released_at_s.unwrap_or(eviction.at_s),
    }
}

/// The amount times seconds, and the largest amount between two times.
fn use_and_peak(mut changes: Vec<(i64, i64)>) -> (i128, i64) {
    changes.sort_unstable();
    let (mut used, mut integral, mut peak, mut before_s) = (0_i64, 0_i128, 0_i64, 0_i64);
    for instant in changes.chunk_by(|a, b| a.0 == b.0) {
        let Some((at_s, _)) = instant.first() else {
            continue;
        };
        let elapsed_s = i128::from(at_s.saturating_sub(before_s));
        integral = integral.saturating_add(i128::from(used).saturating_mul(elapsed_s));
        before_s = *at_s;
        let change = instant
            .iter()
            .fold(0_i64, |sum, it| sum.saturating_add(it.1));
        used = used.saturating_add(change);
        peak = peak.max(used);
    }
    (integral, peak)
}

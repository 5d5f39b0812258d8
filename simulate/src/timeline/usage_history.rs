//! The use of each quota over time, computed from a timeline.

use super::job_trace::{Job, JobTrace};
use super::result::{Run, RunEnd, Timeline};
use lockkeeper_scenario::PodSet;
use std::collections::BTreeMap;

/// The use of one quota over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageHistory {
    /// The index of the ClusterQueue in the trace.
    pub queue: usize,
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The times in seconds, and the amounts in use from then on, in the unit of the resource. The times ascend, and two
    /// subsequent amounts differ. Before the first time the amount is zero.
    pub steps: Vec<(i64, i64)>,
}

/// A queue by index, a flavor and a resource.
type Key<'a> = (usize, &'a str, &'a str);

/// Returns the use of all quotas over time, by the order of queues, then by the names of flavor and resource. Quota that
/// was used only within instants is left out. In the last instant of a livelock, the use is that of the runs that remain.
///
/// [`simulate`](super::simulate) does not record it, so that only callers that need it pay for it: the logarithm of the
/// number of runs for each run.
#[must_use]
pub fn usage_history(trace: &JobTrace, timeline: &Timeline) -> Vec<UsageHistory> {
    let queues = trace.cluster_queues.iter().enumerate();
    let queues: BTreeMap<&str, usize> = queues.map(|(at, it)| (it.name.as_str(), at)).collect();
    let mut changes: BTreeMap<Key<'_>, Vec<(i64, i64)>> = BTreeMap::new();
    for (job, history) in trace.jobs.iter().zip(&timeline.jobs) {
        let Some(queue) = queues.get(&*job.cluster_queue).copied() else {
            continue;
        };
        for run in &history.runs {
            let until_s = released_at_s(trace, run);
            for (flavor, resource, amount) in held_quota(job, run) {
                let changes = changes.entry((queue, flavor, resource)).or_default();
                // A run may have begun before the start.
                changes.push((run.from_s.max(0), amount));
                if let Some(until_s) = until_s {
                    changes.push((until_s, amount.saturating_neg()));
                }
            }
        }
    }
    let histories = changes.into_iter().map(|(key, changes)| UsageHistory {
        queue: key.0,
        flavor: key.1.to_owned(),
        resource: key.2.to_owned(),
        steps: accumulate(changes),
    });
    histories.filter(|it| !it.steps.is_empty()).collect()
}

/// The time at which a run released its quota, in seconds; `None` if it holds the quota until the end.
fn released_at_s(trace: &JobTrace, run: &Run) -> Option<i64> {
    match run.end {
        RunEnd::Open => None,
        RunEnd::Finished(at_s) | RunEnd::Evicted(at_s) => Some(at_s),
        RunEnd::Preempted(eviction) if trace.grace_period_seconds == 0 => Some(eviction.at_s),
        RunEnd::Preempted(eviction) => eviction.released_at_s,
        RunEnd::NotReady(eviction) if trace.grace_period_seconds == 0 => Some(eviction.at_s),
        RunEnd::NotReady(eviction) => eviction.released_at_s,
    }
}

/// The quota that a run holds: flavors, resources and amounts. A pair may occur twice.
pub(super) fn held_quota<'a>(
    job: &'a Job,
    run: &'a Run,
) -> impl Iterator<Item = (&'a str, &'a str, i64)> + use<'a> {
    let pod_sets = job.pod_sets.iter().zip(&run.assignment.flavors).enumerate();
    pod_sets.flat_map(|(at, (pod_set, flavors))| {
        let counts = run.assignment.counts.as_ref();
        let count = counts.and_then(|it| it.get(at)).copied();
        let count = count.unwrap_or(pod_set.count);
        let held = flavors.iter().map(move |(resource, flavor)| {
            let amount = requested_amount(pod_set, resource, count);
            (flavor.as_str(), resource.as_str(), amount)
        });
        held.filter(|(.., amount)| *amount != 0)
    })
}

/// The amount that a number of the pods request, as the core computes it.
fn requested_amount(pod_set: &PodSet, resource: &str, count: i64) -> i64 {
    // A queue that covers the resource counts the pods.
    if resource == "pods" {
        return count;
    }
    let total = pod_set.requests.get(resource);
    let total = total.and_then(|it| it.in_core_units(resource));
    let total = total.unwrap_or_default();
    if count == pod_set.count {
        return total;
    }
    let each = total.checked_div(pod_set.count).unwrap_or_default();
    each.saturating_mul(count)
}

/// Turns changes in any order into amounts over time.
fn accumulate(mut changes: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    changes.sort_unstable_by_key(|(at_s, _)| *at_s);
    let mut steps: Vec<(i64, i64)> = Vec::new();
    let mut used = 0_i64;
    for instant in changes.chunk_by(|a, b| a.0 == b.0) {
        let change = instant
            .iter()
            .fold(0_i64, |sum, (_, it)| sum.saturating_add(*it));
        if let Some((at_s, _)) = instant.first().filter(|_| change != 0) {
            used = used.saturating_add(change);
            steps.push((*at_s, used));
        }
    }
    steps
}

//! The use of each quota against its nominal amount.

use super::job_trace::JobTrace;
use super::lost_time::lost_s;
use super::result::{QuotaUsage, Timeline};
use super::usage_history::{UsageHistory, held_quota};
use super::utilization::{nominal_steps, utilization};
use serde::Serialize;
use std::collections::BTreeMap;

/// The use of one quota.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaMetrics {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The used part of the nominal quota; `None` without nominal quota.
    pub utilization: Option<f64>,
    /// The largest amount in use at the end of an instant, in the unit of the resource.
    pub peak: i64,
    /// The seconds in which the use was above the nominal quota.
    pub above_nominal_seconds: i64,
    /// The amount times seconds of preempted and evicted runs that have to be repeated.
    pub wasted: i64,
}

/// Returns the use of each quota, in the order of [`Timeline::usage`].
pub(super) fn quota_metrics(
    trace: &JobTrace,
    timeline: &Timeline,
    histories: &[UsageHistory],
) -> Vec<QuotaMetrics> {
    let wasted = wasted(trace, timeline);
    let until_s = timeline.measured_until_s();
    let steps = histories.iter().map(|it| {
        let queue = trace.cluster_queues.get(it.queue);
        let queue = queue.map_or("", |it| it.name.as_str());
        ((queue, it.flavor.as_str(), it.resource.as_str()), &it.steps)
    });
    let steps: BTreeMap<_, _> = steps.collect();
    let metrics = timeline.usage.iter().map(|usage| {
        let key = key(usage);
        let used = steps.get(&key).map_or(&[][..], |it| it.as_slice());
        QuotaMetrics {
            cluster_queue: usage.cluster_queue.clone(),
            flavor: usage.flavor.clone(),
            resource: usage.resource.clone(),
            utilization: utilization(trace, timeline, usage),
            peak: usage.peak,
            above_nominal_seconds: seconds_above(used, &nominal_steps(trace, usage), until_s),
            wasted: wasted.get(&key).copied().unwrap_or_default(),
        }
    });
    metrics.collect()
}

type Key<'a> = (&'a str, &'a str, &'a str);

fn key(usage: &QuotaUsage) -> Key<'_> {
    (&usage.cluster_queue, &usage.flavor, &usage.resource)
}

/// The amounts times seconds of preempted and evicted runs that have to be repeated.
fn wasted<'a>(trace: &'a JobTrace, timeline: &'a Timeline) -> BTreeMap<Key<'a>, i64> {
    let mut wasted = BTreeMap::new();
    for (job, history) in trace.jobs.iter().zip(&timeline.jobs) {
        for run in &history.runs {
            let lost_s = lost_s(run, trace.mode);
            if lost_s == 0 {
                continue;
            }
            for (flavor, resource, amount) in held_quota(job, run) {
                let sum: &mut i64 = wasted
                    .entry((&*job.cluster_queue, flavor, resource))
                    .or_default();
                *sum = sum.saturating_add(amount.saturating_mul(lost_s));
            }
        }
    }
    wasted
}

/// The seconds until a time in which the first steps are above the second ones.
fn seconds_above(used: &[(i64, i64)], nominal: &[(i64, i64)], until_s: i64) -> i64 {
    let mut total_s = 0_i64;
    let mut nominal_at = 0_usize;
    let ends = used.iter().skip(1).map(|(at_s, _)| *at_s);
    let ends = ends.chain(std::iter::once(until_s));
    for ((from_s, amount), to_s) in used.iter().zip(ends) {
        let to_s = to_s.min(until_s);
        let mut from_s = *from_s;
        while from_s < to_s {
            while nominal
                .get(nominal_at.saturating_add(1))
                .is_some_and(|(at_s, _)| *at_s <= from_s)
            {
                nominal_at = nominal_at.saturating_add(1);
            }
            let limit = nominal.get(nominal_at).map_or(0, |(_, amount)| *amount);
            let next_s = nominal.get(nominal_at.saturating_add(1));
            let part_end_s = next_s.map_or(to_s, |(at_s, _)| to_s.min(*at_s));
            if *amount > limit {
                total_s = total_s.saturating_add(part_end_s.saturating_sub(from_s));
            }
            from_s = part_end_s;
        }
    }
    total_s
}

#[cfg(test)]
mod tests {
    use super::seconds_above;

    #[test]
    fn seconds_above_counts_both_kinds_of_steps() {
        let used = [(0, 4), (10, 8), (30, 2)];
        for (nominal, until_s, expected) in [
            (&[(0, 4)][..], 40, 20),
            (&[(0, 8)], 40, 0),
            (&[(0, 1)], 40, 40),
            (&[(0, 4), (20, 8)], 40, 10),
            (&[(0, 8), (20, 4), (35, 1)], 40, 15),
            (&[(0, 1)], 15, 15),
            (&[], 40, 40),
        ] {
            assert_eq!(
                seconds_above(&used, nominal, until_s),
                expected,
                "{nominal:?}"
            );
        }
    }
}

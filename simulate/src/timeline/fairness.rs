//! How evenly ClusterQueues use quota.

use super::job_trace::JobTrace;
use super::ratio::ratio;
use super::result::Timeline;
use super::usage_history::UsageHistory;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The intervals of equal length for which shares are given.
const INTERVALS: i64 = 20;

/// The dominant shares of ClusterQueues, and Jain's index over them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fairness {
    /// Jain's index over the shares divided by the weights: 1 if they are equal, 1/n if one of n queues uses everything.
    pub jain_index: f64,
    /// Of the ClusterQueues with jobs, in the order of the trace.
    pub shares: Vec<QueueShare>,
    /// Of equal parts of the time.
    pub intervals: Vec<ShareInterval>,
}

/// The dominant share of a ClusterQueue.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueShare {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// The largest part that it uses of the nominal quota of any resource in all ClusterQueues and cohorts.
    pub dominant_share: f64,
}

/// The shares in a part of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShareInterval {
    /// The begin in seconds.
    pub from: i64,
    /// The end in seconds.
    pub to: i64,
    /// Jain's index.
    pub jain_index: f64,
    /// The dominant shares, in the order of [`Fairness::shares`].
    pub dominant_shares: Vec<f64>,
}

/// Computes shares from the use of all quotas over time.
///
/// `capacity` has the nominal quota of each resource times seconds until the end.
pub(super) fn fairness(
    trace: &JobTrace,
    timeline: &Timeline,
    histories: &[UsageHistory],
    capacity: &BTreeMap<&str, i128>,
) -> Fairness {
    let until_s = timeline.measured_until_s();
    if until_s <= 0 {
        return Fairness::default();
    }
    let with_jobs: BTreeSet<&str> = trace.jobs.iter().map(|it| &*it.cluster_queue).collect();
    let queues = trace.cluster_queues.iter().enumerate();
    let queues = queues.filter(|(_, it)| with_jobs.contains(it.name.as_str()));
    let queues: Vec<(usize, f64)> = queues.map(|(at, it)| (at, it.fair_weight)).collect();
    let shares_in = |from_s: i64, to_s: i64| {
        let mut used: BTreeMap<(usize, &str), i128> = BTreeMap::new();
        for history in histories {
            let sum = used.entry((history.queue, &history.resource)).or_default();
            *sum = sum.saturating_add(integral(&history.steps, from_s, to_s));
        }
        let length_s = i128::from(to_s.saturating_sub(from_s));
        let shares = queues.iter().map(|(queue, _)| {
            let parts = capacity.iter().map(|(resource, capacity)| {
                let used = used.get(&(*queue, *resource));
                let used = used.copied().unwrap_or_default();
                // The capacity of an interval is the mean one.
                let used = used.saturating_mul(i128::from(until_s));
                ratio(used, capacity.saturating_mul(length_s))
            });
            parts.fold(0.0, f64::max)
        });
        shares.collect::<Vec<f64>>()
    };
    let weights: Vec<f64> = queues.iter().map(|(_, weight)| *weight).collect();
    let total = shares_in(0, until_s);
    let bounds = (0..=INTERVALS).map(|at| {
        let scaled = i128::from(until_s).saturating_mul(i128::from(at));
        let bound = scaled.checked_div(i128::from(INTERVALS));
        bound
            .and_then(|it| i64::try_from(it).ok())
            .unwrap_or_default()
    });
    let bounds: Vec<i64> = bounds.collect();
    let intervals = bounds.iter().zip(bounds.iter().skip(1));
    let intervals = intervals.filter(|(from_s, to_s)| from_s < to_s);
    let intervals = intervals.map(|(from_s, to_s)| {
        let dominant_shares = shares_in(*from_s, *to_s);
        ShareInterval {
            from: *from_s,
            to: *to_s,
            jain_index: jain_index(&dominant_shares, &weights),
            dominant_shares,
        }
    });
    let intervals = intervals.collect();
    let names = queues
        .iter()
        .filter_map(|(at, _)| trace.cluster_queues.get(*at));
    let shares = names.zip(&total).map(|(queue, share)| QueueShare {
        cluster_queue: queue.name.clone(),
        dominant_share: *share,
    });
    Fairness {
        jain_index: jain_index(&total, &weights),
        shares: shares.collect(),
        intervals,
    }
}

/// The amounts times seconds in a part of the time.
fn integral(steps: &[(i64, i64)], from_s: i64, to_s: i64) -> i128 {
    // The step before the first one in the interval lasts into it.
    let first = steps.partition_point(|(at_s, _)| *at_s <= from_s);
    let first = first.saturating_sub(1);
    let steps = steps.get(first..).unwrap_or_default();
    let ends = steps.iter().skip(1).map(|(at_s, _)| *at_s);
    let ends = ends.chain(std::iter::once(to_s));
    let parts = steps.iter().zip(ends);
    let parts = parts.take_while(|((at_s, _), _)| *at_s < to_s);
    let parts = parts.map(|((at_s, amount), end_s)| {
        let seconds = end_s.min(to_s).saturating_sub((*at_s).max(from_s)).max(0);
        i128::from(*amount).saturating_mul(i128::from(seconds))
    });
    parts.fold(0, i128::saturating_add)
}

/// Jain's index over the shares divided by the weights; 1 without use. Queues of weight 0 are left out.
#[allow(clippy::cast_precision_loss, reason = "the number of queues is small")]
fn jain_index(shares: &[f64], weights: &[f64]) -> f64 {
    let weighted = shares.iter().zip(weights);
    let weighted = weighted.filter(|(_, weight)| **weight > 0.0);
    let weighted: Vec<f64> = weighted.map(|(share, weight)| share / weight).collect();
    let sum: f64 = weighted.iter().sum();
    let squares: f64 = weighted.iter().map(|it| it * it).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let index = sum * sum / (weighted.len() as f64 * squares);
    (index * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::{integral, jain_index};

    #[test]
    #[allow(clippy::float_cmp, reason = "the index is rounded")]
    fn jain_index_is_one_for_equal_weighted_shares() {
        for (shares, weights, expected) in [
            (&[0.5, 0.5][..], &[1.0, 1.0][..], 1.0),
            (&[0.5, 0.0], &[1.0, 1.0], 0.5),
            (&[0.2, 0.4], &[1.0, 2.0], 1.0),
            (&[0.2, 0.4], &[1.0, 0.0], 1.0),
            (&[0.0, 0.0], &[1.0, 1.0], 1.0),
            (&[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0], 0.857),
        ] {
            assert_eq!(jain_index(shares, weights), expected, "{shares:?}");
        }
    }

    #[test]
    fn integral_of_part() {
        let steps = [(0, 2), (10, 5), (20, 0)];
        for (from_s, to_s, expected) in [(0, 20, 70), (5, 15, 35), (15, 30, 25), (20, 30, 0)] {
            assert_eq!(integral(&steps, from_s, to_s), expected);
        }
        assert_eq!(integral(&[(5, 3)], 0, 10), 15);
        assert_eq!(integral(&[], 0, 10), 0);
    }
}

//! The times from arrival to first admission, by group of workloads.

use crate::amount_text::{number_text, percent_text};
use crate::simulation::Simulation;
use crate::time_text::{duration_text, steps_s};

/// The most rows of a plot.
pub(crate) const ROWS_MAX: usize = 40;

/// The number of bounds between zero and the longest wait.
const BOUNDS: usize = 5;

/// The waits of a group of workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitGroup {
    pub(crate) name: String,
    /// In seconds, in any order.
    pub(crate) waits_s: Vec<i64>,
    pub(crate) never_admitted: usize,
}

impl WaitGroup {
    /// Adds a workload; `None` if it was never admitted.
    pub(crate) fn add(&mut self, wait_s: Option<i64>) {
        match wait_s {
            Some(wait_s) => self.waits_s.push(wait_s),
            None => self.never_admitted = self.never_admitted.saturating_add(1),
        }
    }

    /// Returns the number of workloads.
    pub(crate) fn count(&self) -> usize {
        self.waits_s.len().saturating_add(self.never_admitted)
    }
}

/// The numbers of workloads of a group by class of wait.
#[derive(Clone, Debug)]
pub(crate) struct WaitRow {
    pub(crate) name: String,
    /// By class of wait: the number of workloads; the last one is never admitted.
    pub(crate) counts: Vec<usize>,
    pub(crate) total: usize,
    /// Median, 95th percentile and maximum, in seconds.
    pub(crate) percentiles_s: [Option<i64>; 3],
}

/// Returns the upper bounds of the classes of waits in seconds, up to the longest wait: 0 and round durations.
pub(crate) fn wait_bounds_s(longest_s: i64) -> Vec<i64> {
    let above = steps_s().filter(|it| *it < longest_s);
    let mut bounds_s: Vec<i64> = above.collect();
    // The first one at or above the longest wait, or the wait itself beyond the last one.
    let last_s = steps_s().find(|it| *it >= longest_s);
    bounds_s.push(last_s.unwrap_or(longest_s));
    let every_second = bounds_s.iter().rev().step_by(2).take(BOUNDS);
    let mut bounds_s: Vec<i64> = every_second.copied().collect();
    bounds_s.push(0);
    bounds_s.reverse();
    bounds_s
}

/// Returns the groups with the most workloads, in their order.
pub(crate) fn largest(groups: Vec<WaitGroup>) -> Vec<WaitGroup> {
    if groups.len() <= ROWS_MAX {
        return groups;
    }
    let mut groups: Vec<(usize, WaitGroup)> = groups.into_iter().enumerate().collect();
    groups.sort_by_key(|(at, group)| (std::cmp::Reverse(group.count()), *at));
    groups.truncate(ROWS_MAX);
    groups.sort_by_key(|(at, _)| *at);
    groups.into_iter().map(|(_, group)| group).collect()
}

impl WaitRow {
    /// Classifies the waits by their bounds.
    pub(crate) fn new(mut group: WaitGroup, bounds_s: &[i64]) -> Self {
        group.waits_s.sort_unstable();
        let waits_s = &group.waits_s;
        let mut below = 0;
        let mut counts = Vec::new();
        for bound_s in bounds_s {
            let until = waits_s.partition_point(|it| it <= bound_s);
            counts.push(until.saturating_sub(below));
            below = until;
        }
        counts.push(group.never_admitted);
        let percentile = |percent: usize| {
            let rank = waits_s.len().saturating_mul(percent).div_ceil(100);
            waits_s.get(rank.checked_sub(1)?).copied()
        };
        Self {
            counts,
            total: group.count(),
            percentiles_s: [percentile(50), percentile(95), percentile(100)],
            name: group.name,
        }
    }

    /// Returns a number of workloads, and its part of all.
    pub(crate) fn share_text(&self, count: usize) -> String {
        let count = number(count);
        let part = percent_text(i128::from(count), i128::from(number(self.total)));
        format!("{} ({part})", number_text(count))
    }
}

/// Returns a count as a signed number.
pub(crate) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the names of the classes of waits; the last one is of workloads that were never admitted.
pub(crate) fn class_labels(bounds_s: &[i64]) -> Vec<String> {
    let labels = bounds_s.iter().map(|it| match *it {
        0 => "no wait".to_owned(),
        seconds => format!("up to {}", duration_text(seconds)),
    });
    labels
        .chain(std::iter::once("never admitted".to_owned()))
        .collect()
}

/// Returns a wait; `–` if there is none.
pub(crate) fn wait_text(wait_s: Option<i64>) -> String {
    wait_s.map_or_else(|| "–".to_owned(), duration_text)
}

/// Returns the bounds of the classes for the longest wait of all simulations.
pub(crate) fn common_wait_bounds_s(simulations: &[Simulation<'_>]) -> Vec<i64> {
    let longest_s = simulations.iter().map(|it| it.timeline.stats.wait.max);
    wait_bounds_s(longest_s.max().unwrap_or_default())
}

//! Workloads that preempt each other without end.
//!
//! Whether some exist for given queues is not decided by looking at policies alone: it takes amounts, priorities
//! and an order of events. The search draws small sets of workloads with the amounts that matter, plays each in the
//! core, and goes on from the draws that came nearest to a circle. What it finds is a proof; that it
//! finds nothing is none.

mod amounts;
mod sampling;
mod shrink;

use crate::queue_tree::SimulatedCluster;
use crate::run::{PreemptionLoop, SimulationRun};
use sampling::{Rng, WorkloadSampler};
use std::collections::BTreeSet;

/// Rounds after which a few workloads that have not come round will not.
const CYCLES_MAX: usize = 80;

/// Changes of a draw that came near a circle.
const CHANGES_MAX: u64 = 24;

/// How many workloads are tried, and how many percent of the draws have so many: what the loops that are kept need
/// in all but few of many searches that began otherwise.
const WORKLOAD_COUNTS: [(usize, u64); 4] = [(2, 10), (3, 25), (4, 45), (5, 20)];

/// What is searched for.
#[derive(Clone, Debug)]
pub struct LoopSearch<'a> {
    /// The priorities that workloads have.
    pub priorities: &'a BTreeSet<i32>,
    /// How many sets of workloads are tried in a tree.
    pub draws_max: u64,
}

/// The sizes of the sets that are tried, ascending. Each may be asked for on a thread of its own.
pub fn workload_counts() -> impl Iterator<Item = usize> {
    WORKLOAD_COUNTS.into_iter().map(|(size, _)| size)
}

/// A circle in a tree, if one is found: of the fewest workloads that were found to go round, the first.
#[must_use]
pub fn find_loop(field: &SimulatedCluster, search: &LoopSearch<'_>) -> Option<PreemptionLoop> {
    workload_counts().find_map(|size| find_loop_of_size(field, search, size))
}

/// The same among sets of one of the [`sizes`]. What is found does not depend on the other sizes.
#[must_use]
pub fn find_loop_of_size(
    field: &SimulatedCluster,
    search: &LoopSearch<'_>,
    size: usize,
) -> Option<PreemptionLoop> {
    let (_, percent) = WORKLOAD_COUNTS.into_iter().find(|(it, _)| *it == size)?;
    let cards = WorkloadSampler::new(field, search.priorities)?;
    let mut dice = Rng::default();
    let mut left = search.draws_max.saturating_mul(percent) / 100;
    while left > 0 {
        let (found, taken) = climb(field, &cards, &mut dice, size, left);
        if let Some(found) = found {
            return Some(shrink::simplify(field, &cards, found));
        }
        left = left.saturating_sub(taken);
    }
    None
}

/// Draws once and goes on from there as long as it comes nearer to a circle. Returns how many runs it took.
fn climb(
    field: &SimulatedCluster,
    cards: &WorkloadSampler<'_>,
    dice: &mut Rng,
    size: usize,
    runs_max: u64,
) -> (Option<PreemptionLoop>, u64) {
    let mut best = cards.sample(dice, size);
    let mut run = SimulationRun::new(field, &best);
    let mut taken = 1;
    if let Some(found) = run.find_loop(CYCLES_MAX) {
        return (Some(found), taken);
    }
    let mut height = run.thrash_count();
    let mut tries = 0;
    while height > 0 && tries < CHANGES_MAX && taken < runs_max {
        let next = cards.mutate(dice, &best);
        let mut run = SimulationRun::new(field, &next);
        taken = taken.saturating_add(1);
        tries = tries.saturating_add(1);
        if let Some(found) = run.find_loop(CYCLES_MAX) {
            return (Some(found), taken);
        }
        if run.thrash_count() >= height {
            if run.thrash_count() > height {
                tries = 0;
            }
            height = run.thrash_count();
            best = next;
        }
    }
    (None, taken)
}

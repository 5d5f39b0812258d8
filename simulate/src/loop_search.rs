//! The search for preemption loops: workloads that preempt each other without end.
//!
//! Whether queues permit a loop does not follow from their policies alone: it depends on amounts, priorities and the
//! order of events. The search samples small sets of workloads with relevant amounts, simulates each in the core, and
//! continues from the sets that came nearest to a loop. A loop that it finds is a proof; finding none proves nothing.

mod amounts;
mod sampling;
mod shrink;

use crate::queue_tree::SimulatedCluster;
use crate::rng::Rng;
use crate::run::{PreemptionLoop, SimulationRun};
use sampling::WorkloadSampler;
use std::collections::BTreeSet;

/// Cycles after which a few workloads without a loop will not enter one.
const CYCLES_MAX: usize = 80;

/// How many mutations of a set that came near a loop are tried.
const CHANGES_MAX: u64 = 24;

/// The sizes of the sets, and the percentage of samples of each size. Chosen so that the recorded loops are found in
/// nearly all of many searches with different seeds.
const WORKLOAD_COUNTS: [(usize, u64); 4] = [(2, 10), (3, 25), (4, 45), (5, 20)];

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct LoopSearch<'a> {
    /// The priorities of workloads.
    pub priorities: &'a BTreeSet<i32>,
    /// How many sets of workloads are simulated in a tree.
    pub draws_max: u64,
}

/// The sizes of the sets, ascending. Each size may be searched on a separate thread.
pub fn workload_counts() -> impl Iterator<Item = usize> {
    WORKLOAD_COUNTS.into_iter().map(|(size, _)| size)
}

/// Returns a preemption loop in a tree, if one is found: the first among those with the fewest workloads.
#[must_use]
pub fn find_loop(cluster: &SimulatedCluster, search: &LoopSearch<'_>) -> Option<PreemptionLoop> {
    workload_counts().find_map(|size| find_loop_of_size(cluster, search, size))
}

/// Like [`find_loop`], among sets of one of the [`workload_counts`]. The result does not depend on other sizes.
#[must_use]
pub fn find_loop_of_size(
    cluster: &SimulatedCluster,
    search: &LoopSearch<'_>,
    size: usize,
) -> Option<PreemptionLoop> {
    let (_, percent) = WORKLOAD_COUNTS.into_iter().find(|(it, _)| *it == size)?;
    let sampler = WorkloadSampler::new(cluster, search.priorities)?;
    // A new generator for each size: the result does not depend on the other sizes.
    let mut rng = Rng::default();
    let mut remaining = search.draws_max.saturating_mul(percent) / 100;
    while remaining > 0 {
        let (found, runs) = climb(cluster, &sampler, &mut rng, size, remaining);
        if let Some(found) = found {
            return Some(shrink::simplify(cluster, &sampler, found));
        }
        remaining = remaining.saturating_sub(runs);
    }
    None
}

/// Samples one set and mutates it as long as it comes nearer to a loop. Returns also how many runs were used.
fn climb(
    cluster: &SimulatedCluster,
    sampler: &WorkloadSampler<'_>,
    rng: &mut Rng,
    size: usize,
    runs_max: u64,
) -> (Option<PreemptionLoop>, u64) {
    let mut best = sampler.sample(rng, size);
    let mut run = SimulationRun::new(cluster, &best);
    let mut runs = 1;
    if let Some(found) = run.find_loop(CYCLES_MAX) {
        return (Some(found), runs);
    }
    let mut best_score = run.repeat_score();
    let mut tries = 0;
    // A set without any preemption is no good start: sample another one.
    while best_score > 0 && tries < CHANGES_MAX && runs < runs_max {
        let next = sampler.mutate(rng, &best);
        let mut run = SimulationRun::new(cluster, &next);
        runs = runs.saturating_add(1);
        tries = tries.saturating_add(1);
        if let Some(found) = run.find_loop(CYCLES_MAX) {
            return (Some(found), runs);
        }
        // An equal score is accepted too, or the search would stop on a plateau.
        if run.repeat_score() >= best_score {
            if run.repeat_score() > best_score {
                tries = 0;
            }
            best_score = run.repeat_score();
            best = next;
        }
    }
    (None, runs)
}

//! The free quota of a tree over time, while its admitted workloads end and no other one starts.

use crate::contenders::{Contest, Running};
use lockkeeper_preemption::{FlavorResource, NodeId, State, WorkloadId, quota_levels};
use std::collections::{BTreeMap, BTreeSet};

/// A flavor and resource as a ClusterQueue sees it.
pub(crate) type Cell = (NodeId, FlavorResource);

/// The most amounts of a timeline.
const AMOUNTS_MAX: usize = 200_000;

/// What is free from a time on.
#[derive(Clone, Debug)]
pub(crate) struct FreeQuota {
    /// In seconds since 1970.
    pub(crate) from_s: i64,
    pub(crate) free: BTreeMap<Cell, i64>,
}

/// The free quota of the cells that the blockers of a contest request, from `now_s` on, each time that more of it is free.
/// Removes the workloads that end from the state. `None` if it has too many amounts.
pub(crate) fn timeline(state: &mut State, contest: &Contest, now_s: i64) -> Option<Vec<FreeQuota>> {
    let mut cells: BTreeSet<Cell> = BTreeSet::new();
    for blocker in contest.blockers() {
        let requested = blocker.alternatives.iter().flat_map(|it| it.keys());
        cells.extend(requested.map(|of| (blocker.queue, *of)));
    }
    let requested: BTreeSet<FlavorResource> = cells.iter().map(|(_, of)| *of).collect();
    let is_relevant = |it: &&Running| it.usage.keys().any(|of| requested.contains(of));
    let mut ends: BTreeMap<i64, Vec<WorkloadId>> = BTreeMap::new();
    for running in contest.running.iter().filter(is_relevant) {
        if let Some(ends_s) = running.ends_s {
            ends.entry(ends_s.max(now_s)).or_default().push(running.id);
        }
    }
    let amounts = cells.len().saturating_mul(ends.len());
    if amounts > AMOUNTS_MAX {
        return None;
    }
    let ended_now = ends.remove(&now_s).unwrap_or_default();
    let ends = std::iter::once((now_s, ended_now)).chain(ends);
    let steps = ends.map(|(from_s, ids)| {
        for id in ids {
            state.remove(id);
        }
        FreeQuota {
            from_s,
            free: cells.iter().map(|it| (*it, free(state, *it))).collect(),
        }
    });
    Some(steps.collect())
}

/// What a ClusterQueue could use of a flavor and resource in addition.
pub(crate) fn free(state: &mut State, (queue, of): Cell) -> i64 {
    let levels = quota_levels(state, queue, of);
    levels.first().map_or(0, |it| it.available.get())
}

//! What an observer knows, and the states that follow from it without a decision.

use crate::history::Entry;
use crate::pending_index::PendingIndex;
use crate::preemptors::{Preemptors, mark_waiting};
use crate::settings::ObserveSettings;
use crate::workload_facts::is_pending;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::ClusterState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many workloads of each class of a queue are candidates. All of a class fit or none, so the core decides on the
/// first one; the second is the next head after its admission.
const OF_CLASS_MAX: usize = 2;

/// The most workloads and queues that the copies of a state have together in a part of a search.
const COPIED_OBJECTS_MAX: usize = 500_000;

/// The fewest copies of a state, however large it is.
const COPIES_MIN: usize = 16;

/// How many copies of a state a part of a search may have at a time, so that their memory is bounded.
pub(crate) fn copies_max(cluster: &ClusterState) -> usize {
    let state = cluster.state();
    let objects = state.queues().map(|(_, queue)| {
        let queue = state.node_view(queue);
        let pending = queue.pending_counts();
        let pending = pending.queued.saturating_add(pending.backing_off);
        let workloads = queue.admitted_count().saturating_add(pending);
        workloads.saturating_add(1)
    });
    let objects = objects.fold(1, usize::saturating_add);
    let copies = COPIED_OBJECTS_MAX.checked_div(objects);
    copies.unwrap_or_default().max(COPIES_MIN)
}

/// What an observer knows, for reading.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) settings: &'a ObserveSettings,
    /// The objects before the history, of workloads those with quota.
    pub(crate) base: &'a ClusterState,
    /// The pending workloads before the history.
    pub(crate) pending: &'a PendingIndex,
    /// The changes, also those after [`Self::until_ms`].
    pub(crate) all_history: &'a VecDeque<Entry>,
    /// Changes that were delivered later do not count, in milliseconds since 1970.
    pub(crate) until_ms: i64,
    pub(crate) preemptors: &'a Preemptors,
}

impl<'a> Known<'a> {
    /// The last changes.
    pub(crate) fn history(&self) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let until_ms = self.until_ms;
        let history = self.all_history.iter();
        history.take_while(move |it| it.delivered_ms <= until_ms)
    }

    /// The present state of all queues, for a decision.
    pub(crate) fn present_state(&self, now_ms: i64) -> ClusterState {
        let queues = self.base.state().queues();
        let queues: BTreeSet<Arc<str>> = queues.map(|(name, _)| Arc::from(name)).collect();
        let mut cluster = self.before_history(&queues);
        self.preemptors.mark(&mut cluster);
        cluster.set_now(now_ms);
        for entry in self.history() {
            apply(&mut cluster, &entry.key, entry.after.as_ref());
            mark_if_preemption(&mut cluster, entry);
        }
        cluster
    }

    /// The state before the history, with the pending workloads of these queues that the core may decide on. No preemptor waits.
    pub(crate) fn before_history(&self, queues: &BTreeSet<Arc<str>>) -> ClusterState {
        let mut cluster = self.base.clone();
        let mut changed: BTreeMap<&str, Option<&Arc<Workload>>> = BTreeMap::new();
        for entry in self.history() {
            if queues.contains(&entry.queue) {
                changed.entry(&entry.key).or_insert(entry.before.as_ref());
            }
        }
        for queue in queues {
            let is_unchanged = |key: &str| !changed.contains_key(key);
            for (key, version) in self.pending.first(queue, OF_CLASS_MAX, is_unchanged) {
                apply(&mut cluster, &key, Some(&version));
            }
        }
        for (key, version) in changed {
            if version.is_some_and(|it| is_pending(it)) {
                apply(&mut cluster, key, version);
            }
        }
        cluster
    }
}

/// Puts the preemptor of a preemption at the head of its queue.
pub(crate) fn mark_if_preemption(cluster: &mut ClusterState, entry: &Entry) {
    if entry.decided_on != entry.key {
        mark_waiting(cluster, &entry.decided_on);
    }
}

/// Applies a version of a workload. One that the core rejects is as in Kueue: it has no effect.
pub(crate) fn apply(cluster: &mut ClusterState, key: &str, version: Option<&Arc<Workload>>) {
    match version {
        Some(version) => drop(cluster.set_workload(Arc::clone(version))),
        None => cluster.remove_workload(key),
    }
}

//! The states on which Kueue may have decided.

use crate::decision::KueueDecision;
use crate::history::Entry;
use crate::pending_index::PendingIndex;
use crate::preemptors::Preemptors;
use crate::settings::ObserveSettings;
use crate::workload_facts::is_pending;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::ClusterState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many workloads of each class of a queue are candidates. All of a class fit or none, so the core decides on the
/// first one; the second is the next head after its admission.
const OF_CLASS_MAX: usize = 2;

/// The most states of a decision; the oldest are dropped.
const STATES_MAX: usize = 512;

/// What an observer knows, for reading.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) settings: &'a ObserveSettings,
    /// The objects before the history, of workloads those with quota.
    pub(crate) base: &'a ClusterState,
    /// The pending workloads before the history.
    pub(crate) pending: &'a PendingIndex,
    /// The present workloads.
    pub(crate) workloads: &'a BTreeMap<Arc<str>, Arc<Workload>>,
    pub(crate) history: &'a VecDeque<Entry>,
    pub(crate) preemptors: &'a Preemptors,
}

/// The changes of a tree of cohorts around a decision, in the order in which Kueue may have seen them.
pub(crate) struct Timeline<'a> {
    known: Known<'a>,
    decision: &'a KueueDecision,
    queues: &'a BTreeSet<Arc<str>>,
    /// The changes that are part of the latest state.
    changes: Vec<&'a Entry>,
    /// Other decisions of the same second: they may be older or newer.
    pub(crate) same_second: Vec<&'a Entry>,
}

/// A state, and from when.
pub(crate) struct TimedState {
    pub(crate) from_ms: i64,
    pub(crate) cluster: ClusterState,
}

impl<'a> Timeline<'a> {
    pub(crate) fn new(
        known: Known<'a>,
        decision: &'a KueueDecision,
        queues: &'a BTreeSet<Arc<str>>,
    ) -> Self {
        let end_ms = decision.decided_s.saturating_mul(1000).saturating_add(999);
        let end_ms = end_ms.saturating_add(known.settings.lag_ms);
        let mut same_second = Vec::new();
        let mut later: BTreeSet<&str> = BTreeSet::new();
        let mut changes: Vec<&Entry> = Vec::new();
        for entry in known.history {
            if !queues.contains(&entry.queue) || decision.seqs.contains(&entry.seq) {
                continue;
            }
            let is_later = match entry.decided_s {
                Some(second) if second == decision.decided_s => {
                    same_second.push(entry);
                    continue;
                }
                Some(second) => second > decision.decided_s,
                None => entry.seq > decision.first_seq || entry.at_ms > end_ms,
            };
            // What follows a later change of a workload is later, too.
            if is_later || later.contains(&*entry.key) {
                later.insert(&entry.key);
            } else {
                changes.push(entry);
            }
        }
        changes.sort_by_key(|it| (it.effective_ms(), it.seq));
        Self {
            known,
            decision,
            queues,
            changes,
            same_second,
        }
    }

    /// The latest state that Kueue may have decided on.
    pub(crate) fn latest(&self) -> ClusterState {
        let (mut cluster, mut applied) = (self.before_history(), BTreeMap::new());
        for entry in &self.changes {
            apply_entry(&mut cluster, entry, &mut applied);
        }
        self.mark_preemptors(&mut cluster);
        cluster
    }

    /// All states from `lag_ms` and `requeue_ms` before the decision, the oldest first.
    pub(crate) fn states(&self) -> VecDeque<TimedState> {
        let settings = self.known.settings;
        let begin_ms = self.first_candidate_ms();
        let begin_ms = begin_ms.saturating_sub(settings.requeue_ms);
        let (mut cluster, mut applied) = (self.before_history(), BTreeMap::new());
        let mut states = VecDeque::new();
        let mut has_begun = false;
        for entry in &self.changes {
            let at_ms = entry.effective_ms();
            if at_ms > begin_ms && !has_begun {
                has_begun = true;
                states.push_back(self.timed(begin_ms, &cluster));
            }
            apply_entry(&mut cluster, entry, &mut applied);
            if has_begun {
                if states.len() >= STATES_MAX {
                    states.pop_front();
                }
                states.push_back(self.timed(at_ms, &cluster));
            }
        }
        if states.is_empty() {
            states.push_back(self.timed(begin_ms, &cluster));
        }
        states
    }

    /// The time of the oldest state on which Kueue may have decided, in milliseconds since 1970.
    pub(crate) fn first_candidate_ms(&self) -> i64 {
        let decided_ms = self.decision.decided_s.saturating_mul(1000);
        decided_ms.saturating_sub(self.known.settings.lag_ms)
    }

    /// How long a workload that does not fit may be out of its queue, in milliseconds.
    pub(crate) const fn requeue_ms(&self) -> i64 {
        self.known.settings.requeue_ms
    }

    /// Applies other decisions of the same second that are written before `until`.
    pub(crate) fn apply_same_second(&self, cluster: &mut ClusterState, until: u64) {
        for entry in &self.same_second {
            // Its quota may be released already.
            let is_pending_now = cluster.state().workload(&entry.key).is_some();
            if entry.seq < until && is_pending_now {
                apply(cluster, &entry.key, entry.after.as_ref());
            }
        }
    }

    fn timed(&self, from_ms: i64, cluster: &ClusterState) -> TimedState {
        let mut cluster = cluster.clone();
        self.mark_preemptors(&mut cluster);
        TimedState { from_ms, cluster }
    }

    fn mark_preemptors(&self, cluster: &mut ClusterState) {
        let workloads = self.known.workloads;
        let version = |key: &str| workloads.get(key).map(Arc::as_ref);
        let until_s = self.decision.decided_s;
        self.known.preemptors.mark(cluster, until_s, version);
    }

    fn before_history(&self) -> ClusterState {
        let mut cluster = before_history(self.known, self.queues);
        cluster.set_now(self.decision.decided_s.saturating_mul(1000));
        cluster
    }
}

/// The present state of all queues, for a forecast.
pub(crate) fn present_state(known: Known<'_>, now_ms: i64) -> ClusterState {
    let queues = known.base.state().queues();
    let queues: BTreeSet<Arc<str>> = queues.map(|(name, _)| Arc::from(name)).collect();
    let mut cluster = before_history(known, &queues);
    cluster.set_now(now_ms);
    for entry in known.history {
        apply(&mut cluster, &entry.key, entry.after.as_ref());
    }
    let version = |key: &str| known.workloads.get(key).map(Arc::as_ref);
    known.preemptors.mark(&mut cluster, i64::MAX, version);
    cluster
}

/// The state before the history, with the pending workloads of these queues that the core may decide on.
fn before_history(known: Known<'_>, queues: &BTreeSet<Arc<str>>) -> ClusterState {
    let mut cluster = known.base.clone();
    let mut changed: BTreeMap<&str, Option<&Arc<Workload>>> = BTreeMap::new();
    for entry in known.history {
        if queues.contains(&entry.queue) {
            changed.entry(&entry.key).or_insert(entry.before.as_ref());
        }
    }
    for queue in queues {
        let is_unchanged = |key: &str| !changed.contains_key(key);
        for key in known.pending.first(queue, OF_CLASS_MAX, is_unchanged) {
            apply(&mut cluster, &key, known.workloads.get(&key));
        }
    }
    for (key, version) in changed {
        if version.is_some_and(|it| is_pending(it)) {
            apply(&mut cluster, key, version);
        }
    }
    cluster
}

fn apply_entry<'a>(
    cluster: &mut ClusterState,
    entry: &'a Entry,
    applied: &mut BTreeMap<&'a str, u64>,
) {
    // A decision may be effective before an older change of the workload was delivered.
    let last = applied.entry(&entry.key).or_default();
    if *last <= entry.seq {
        *last = entry.seq;
        apply(cluster, &entry.key, entry.after.as_ref());
    }
}

/// Applies a version of a workload. One that the core rejects is as in Kueue: it has no effect.
pub(crate) fn apply(cluster: &mut ClusterState, key: &str, version: Option<&Arc<Workload>>) {
    match version {
        Some(version) => drop(cluster.set_workload(Arc::clone(version))),
        None => cluster.remove_workload(key),
    }
}

//! The states on which Kueue may have decided.

use crate::decision::{KueueDecision, What};
use crate::history::Entry;
use crate::pending_index::PendingIndex;
use crate::preemptors::{Preemptors, mark_waiting};
use crate::settings::ObserveSettings;
use crate::workload_facts::{is_pending, transition_s};
use k8s_openapi::jiff::Timestamp;
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

/// A change of a state.
#[derive(Clone)]
struct TimedChange<'a> {
    at_ms: i64,
    entry: &'a Entry,
    /// Whether Kueue has decided it, and not seen it in its watch yet.
    is_assumed: bool,
}

/// The changes of a tree of cohorts around a decision, in the order in which Kueue may have seen them.
#[derive(Clone)]
pub(crate) struct Timeline<'a> {
    known: Known<'a>,
    decision: &'a KueueDecision,
    queues: &'a BTreeSet<Arc<str>>,
    /// The changes that are part of the latest state.
    changes: Vec<TimedChange<'a>>,
    /// Other decisions of the same second: they may be older or newer.
    pub(crate) same_second: Vec<&'a Entry>,
}

/// A state, and from when.
pub(crate) struct TimedState {
    pub(crate) from_ms: i64,
    pub(crate) cluster: ClusterState,
    /// How many changes of the timeline it has.
    changes: usize,
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
        let mut changes = Vec::new();
        for entry in known.history {
            if !queues.contains(&entry.queue) || decision.seqs.contains_key(&entry.seq) {
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
                continue;
            }
            let effective_ms = entry.effective_ms();
            let mut push = |at_ms: i64, is_assumed: bool| {
                changes.push(TimedChange {
                    at_ms,
                    entry,
                    is_assumed,
                });
            };
            if effective_ms < entry.at_ms {
                push(effective_ms, true);
            }
            if entry.at_ms <= end_ms {
                push(entry.at_ms, false);
            }
        }
        changes.sort_by_key(|it| (it.at_ms, it.entry.seq));
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
        for change in &self.changes {
            self.apply_change(&mut cluster, change, &mut applied);
        }
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
        for (position, change) in self.changes.iter().enumerate() {
            let at_ms = change.at_ms;
            if at_ms > begin_ms && !has_begun {
                has_begun = true;
                states.push_back(timed(begin_ms, &cluster, position));
            }
            self.apply_change(&mut cluster, change, &mut applied);
            if has_begun {
                if states.len() >= STATES_MAX {
                    states.pop_front();
                }
                states.push_back(timed(at_ms, &cluster, position.saturating_add(1)));
            }
        }
        if states.is_empty() {
            states.push_back(timed(begin_ms, &cluster, self.changes.len()));
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

    /// A state with the first `count` of the other decisions of the same second.
    pub(crate) fn with_same_second(&self, state: &TimedState, count: usize) -> ClusterState {
        let mut cluster = state.cluster.clone();
        for entry in self.same_second.iter().take(count) {
            self.apply_same_second(&mut cluster, entry, state.changes);
        }
        cluster
    }

    /// Applies the decisions on a workload of the same second to a state with the first `changes`; false if there are none.
    fn apply_decision_on(&self, cluster: &mut ClusterState, key: &str, changes: usize) -> bool {
        let mut is_found = false;
        for entry in &self.same_second {
            if *entry.decided_on == *key {
                self.apply_same_second(cluster, entry, changes);
                is_found = true;
            }
        }
        is_found
    }

    /// Applies a decision of the same second to a state with the first `changes`, unless they have a later version.
    fn apply_same_second(&self, cluster: &mut ClusterState, entry: &Entry, changes: usize) {
        let mut changes = self.changes.iter().take(changes);
        if !changes.any(|it| it.entry.key == entry.key && it.entry.seq > entry.seq) {
            self.apply_assumed(cluster, entry);
        }
        mark_if_preemption(cluster, entry);
    }

    fn apply_change(
        &self,
        cluster: &mut ClusterState,
        change: &TimedChange<'a>,
        applied: &mut BTreeMap<&'a str, u64>,
    ) {
        let entry = change.entry;
        // A decision may be effective before an older change of the workload was delivered.
        let last = applied.entry(&entry.key).or_default();
        if *last > entry.seq {
            return;
        }
        *last = entry.seq;
        if change.is_assumed {
            self.apply_assumed(cluster, entry);
        } else {
            apply(cluster, &entry.key, entry.after.as_ref());
        }
        mark_if_preemption(cluster, entry);
    }

    /// Applies a decision that Kueue has not seen in its watch yet. Its reservation has nanoseconds, so it is the newest of
    /// its second. Objects do not show which of several is the newest: a victim of the decision is, since the newest are
    /// preempted first.
    fn apply_assumed(&self, cluster: &mut ClusterState, entry: &Entry) {
        let Some(after) = &entry.after else {
            return;
        };
        let is_victim = match &self.decision.what {
            What::Preemption(victims) => victims.contains_key(&entry.key),
            What::Admission(_) => false,
        };
        let lead_s = if is_victim { 2 } else { 1 };
        let mut assumed = Workload::clone(after);
        let conditions = assumed.status.iter_mut().flat_map(|it| &mut it.conditions);
        for condition in conditions.filter(|it| it.type_ == "QuotaReserved") {
            let later = transition_s(condition).saturating_add(lead_s);
            if let Ok(later) = Timestamp::from_second(later) {
                condition.last_transition_time.0 = later;
            }
        }
        apply(cluster, &entry.key, Some(&Arc::new(assumed)));
    }

    /// All states on which Kueue may have decided, with the decisions of the same second that the core makes, too, as soon as
    /// it does: `decide` gets each state and returns the workloads on which the core decides, or `None` to stop.
    pub(crate) fn follow(&self, mut decide: impl FnMut(&ClusterState) -> Option<Vec<Arc<str>>>) {
        let first_ms = self.first_candidate_ms();
        let (mut cluster, mut applied) = (self.before_history(), BTreeMap::new());
        let mut followed: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut changes = self.changes.iter().peekable();
        let mut count = 0_usize;
        while let Some(change) = changes.next() {
            self.apply_change(&mut cluster, change, &mut applied);
            count = count.saturating_add(1);
            if changes.peek().is_some_and(|it| it.at_ms <= first_ms) {
                continue;
            }
            loop {
                let Some(decided) = decide(&cluster) else {
                    return;
                };
                let mut has_changed = false;
                for key in decided {
                    if !followed.contains(&key) && self.apply_decision_on(&mut cluster, &key, count)
                    {
                        followed.insert(key);
                        has_changed = true;
                    }
                }
                if !has_changed {
                    break;
                }
            }
        }
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
        mark_if_preemption(&mut cluster, entry);
    }
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
    known.preemptors.mark(&mut cluster);
    cluster
}

fn timed(from_ms: i64, cluster: &ClusterState, changes: usize) -> TimedState {
    TimedState {
        from_ms,
        cluster: cluster.clone(),
        changes,
    }
}

fn mark_if_preemption(cluster: &mut ClusterState, entry: &Entry) {
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

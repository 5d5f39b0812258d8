//! The changes around a decision, and the states on which Kueue may have made it.
//!
//! The API server orders the writes of all Workloads, and the watch of Kueue delivers them in this order. What Kueue has seen is
//! therefore a prefix of the changes, and ends within [`ObserveSettings::lag_ms`](crate::ObserveSettings::lag_ms) of the
//! decision. Kueue's own decisions count for it from when it makes them: those of earlier seconds are part of each state,
//! and those of the same second may be.

use crate::decision::{KueueDecision, What};
use crate::history::{Entry, end_of_second_ms};
use crate::known_state::{Known, apply, mark_if_preemption};
use crate::preemptors::mark_waiting;
use crate::workload_facts::{is_pending, transition_s};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::ClusterState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most prefixes of a decision; the oldest are dropped.
const PREFIXES_MAX: usize = 512;

/// The changes of a tree of cohorts around a decision.
pub(crate) struct CandidateStates<'a> {
    known: Known<'a>,
    decision: &'a KueueDecision,
    queues: &'a BTreeSet<Arc<str>>,
    /// The changes that Kueue may have seen, in the order of the writes.
    seen: Vec<&'a Entry>,
    /// How many of them Kueue has seen for certain in the first second.
    first: usize,
    /// Kueue's decisions of earlier seconds, in the order of the writes.
    earlier: Vec<&'a Entry>,
    /// The position of the last of them on each workload.
    last_earlier: BTreeMap<&'a str, u64>,
    /// The changes of the decision itself.
    own: Vec<&'a Entry>,
    /// The first second of the window.
    first_second: i64,
    assumptions: Assumptions,
    /// Whether there are more states than the bounds allow.
    is_cut_off: bool,
    /// Kueue's other decisions from the first second to that of the decision: each may be older or newer.
    pub(crate) window: Vec<&'a Entry>,
}

/// The preemptors of earlier seconds that come first in their queues. Objects show for which workload others were preempted,
/// and not which others wait for the same victims since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitingPreemptors {
    /// The last one of each queue for which others were preempted.
    Visible,
    /// In the queue of the decision, the workload that it is about.
    Decided,
    /// None: another one waited since, and waits no more.
    None,
}

/// What objects do not show, and is assumed of all candidate states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assumptions {
    pub(crate) waiting: WaitingPreemptors,
    /// Whether the victims of the decision are the newest of those that Kueue has admitted and not seen yet. The newest are
    /// preempted first, and objects do not show which of several in a second is newer.
    pub(crate) are_victims_newest: bool,
}

impl Assumptions {
    /// The most likely ones.
    pub(crate) const LIKELY: Self = Self {
        waiting: WaitingPreemptors::Visible,
        are_victims_newest: false,
    };
}

/// A state on which Kueue may have decided.
#[derive(Clone)]
pub(crate) struct CandidateState {
    pub(crate) cluster: ClusterState,
    /// The positions of the decisions of the window that it has.
    pub(crate) applied: BTreeSet<u64>,
}

impl<'a> CandidateStates<'a> {
    pub(crate) fn new(
        known: Known<'a>,
        decision: &'a KueueDecision,
        queues: &'a BTreeSet<Arc<str>>,
        window_s: i64,
        assumptions: Assumptions,
    ) -> Self {
        let first_second = decision.decided_s.saturating_sub(window_s);
        let end_ms = end_of_second_ms(decision.decided_s);
        let (mut seen, mut earlier, mut window) = (Vec::new(), Vec::new(), Vec::new());
        let mut own = Vec::new();
        let mut last_earlier = BTreeMap::new();
        let mut is_later = false;
        for entry in known.history() {
            if decision.seqs.contains_key(&entry.seq) {
                own.push(entry);
                continue;
            }
            if !queues.contains(&entry.queue) {
                continue;
            }
            match entry.decided_s {
                Some(second) if second < first_second => {
                    earlier.push(entry);
                    last_earlier.insert(&*entry.key, entry.seq);
                }
                Some(second) if second <= decision.decided_s => window.push(entry),
                _ => {}
            }
            // What follows a later change is later, too.
            is_later |= entry.seq > decision.first_seq || entry.earliest_ms > end_ms;
            if !is_later {
                seen.push(entry);
            }
        }
        let mut states = Self {
            known,
            decision,
            queues,
            seen,
            first: 0,
            earlier,
            last_earlier,
            own,
            first_second,
            assumptions,
            is_cut_off: false,
            window,
        };
        let first = states.certain_prefix(first_second);
        let first = first.max(states.needed_prefix());
        let oldest = states.seen.len().saturating_sub(PREFIXES_MAX);
        states.is_cut_off = oldest > first;
        states.first = first.max(oldest);
        states
    }

    /// Whether there are more states than the bounds allow.
    pub(crate) const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The number of changes of the shortest prefix.
    pub(crate) const fn first_prefix(&self) -> usize {
        self.first
    }

    /// The first second of the window.
    pub(crate) const fn first_second(&self) -> i64 {
        self.first_second
    }

    /// The change that follows a prefix.
    pub(crate) fn change(&self, prefix: usize) -> Option<&'a Entry> {
        self.seen.get(prefix).copied()
    }

    /// The number of changes of the longest prefix.
    pub(crate) const fn last_prefix(&self) -> usize {
        self.seen.len()
    }

    /// When Kueue saw the last change of a prefix at the latest, in milliseconds since 1970.
    pub(crate) fn prefix_ms(&self, prefix: usize) -> i64 {
        let last = self.seen.get(prefix.wrapping_sub(1));
        let first_ms = self.first_candidate_ms();
        last.map_or(first_ms, |it| it.at_ms.max(first_ms))
    }

    /// The time of the oldest state on which Kueue may have decided, in milliseconds since 1970.
    pub(crate) fn first_candidate_ms(&self) -> i64 {
        let decided_ms = self.first_second.saturating_mul(1000);
        decided_ms.saturating_sub(self.known.settings.lag_ms)
    }

    /// A prefix, and the decisions of Kueue before the window.
    pub(crate) fn state(&self, prefix: usize) -> CandidateState {
        let mut cluster = self.known.before_history(self.queues);
        if self.assumptions.waiting != WaitingPreemptors::None {
            self.known.preemptors.mark(&mut cluster);
        }
        cluster.set_now(self.decision.decided_s.saturating_mul(1000));
        let mut applied = BTreeSet::new();
        let mut last_seq = None;
        for entry in self.seen.iter().take(prefix) {
            apply(&mut cluster, &entry.key, entry.after.as_ref());
            if self.is_in_window(entry) {
                applied.insert(entry.seq);
            }
            self.mark_preemptor(&mut cluster, entry);
            last_seq = Some(entry.seq);
        }
        for entry in &self.earlier {
            if last_seq.is_none_or(|it| entry.seq > it) {
                self.apply_assumed(&mut cluster, entry);
                self.mark_preemptor(&mut cluster, entry);
            }
        }
        if self.assumptions.waiting == WaitingPreemptors::Decided {
            mark_waiting(&mut cluster, &self.decision.key);
        }
        CandidateState { cluster, applied }
    }

    /// What is assumed of all states.
    pub(crate) const fn assumptions(&self) -> Assumptions {
        self.assumptions
    }

    /// Whether a preemptor comes first in its queue in the oldest or the latest state.
    pub(crate) fn has_waiting_preemptor(&self) -> bool {
        [self.first_prefix(), self.last_prefix()].iter().any(|it| {
            let state = self.state(*it);
            let state = state.cluster.state();
            let mut queues = state.queues();
            queues.any(|(_, it)| state.node_view(it).waiting_preemptor().is_some())
        })
    }

    /// Whether a workload was preempted of which others may have waited for the quota.
    pub(crate) fn has_preemption(&self) -> bool {
        let mut changes = self.known.history();
        changes.any(|it| self.queues.contains(&it.queue) && it.decided_on != it.key)
    }

    /// Puts the preemptor of a preemption at the head of its queue.
    fn mark_preemptor(&self, cluster: &mut ClusterState, entry: &Entry) {
        if self.assumptions.waiting != WaitingPreemptors::None || self.is_in_window(entry) {
            mark_if_preemption(cluster, entry);
        }
    }

    /// Makes a state with a prefix that of the next longer prefix.
    pub(crate) fn advance(&self, state: &mut CandidateState, prefix: usize) {
        let Some(entry) = self.seen.get(prefix) else {
            return;
        };
        let is_new = self.is_in_window(entry) && state.applied.insert(entry.seq);
        if !self.has_later_decision(state, entry) {
            apply(&mut state.cluster, &entry.key, entry.after.as_ref());
        }
        if is_new {
            mark_if_preemption(&mut state.cluster, entry);
        }
    }

    /// Adds a decision of the window to a state, whose write Kueue has not seen yet.
    pub(crate) fn assume(&self, state: &mut CandidateState, entry: &Entry) {
        if state.applied.insert(entry.seq) {
            if !self.has_later_decision(state, entry) {
                self.apply_assumed(&mut state.cluster, entry);
            }
            mark_if_preemption(&mut state.cluster, entry);
        }
    }

    /// Whether a state has the preemptions for the same workload that came before the decision.
    pub(crate) fn has_preceding_part(&self, state: &CandidateState) -> bool {
        let is_older = |seq: &u64| self.earlier.iter().any(|it| it.seq == *seq);
        let mut preceding = self.decision.preceding.iter();
        preceding.all(|it| state.applied.contains(it) || is_older(it))
    }

    /// Adds the preemption of some victims of the decision to a state. Returns the victims of the decision that are preempted
    /// now.
    pub(crate) fn assume_victims(
        &self,
        state: &mut CandidateState,
        victims: &BTreeSet<Arc<str>>,
    ) -> BTreeSet<Arc<str>> {
        let mut preempted = BTreeSet::new();
        for entry in &self.own {
            if victims.contains(&entry.key) {
                self.assume(state, entry);
            }
            if state.applied.contains(&entry.seq) {
                preempted.insert(Arc::clone(&entry.key));
            }
        }
        preempted
    }

    fn is_in_window(&self, entry: &Entry) -> bool {
        entry.decided_s.is_some_and(|it| it >= self.first_second)
    }

    /// Whether a state has a decision on the workload of a change that was written after the change.
    fn has_later_decision(&self, state: &CandidateState, entry: &Entry) -> bool {
        let last_earlier = self.last_earlier.get(&*entry.key);
        let mut applied = self.window.iter().filter(|it| it.key == entry.key);
        last_earlier.is_some_and(|it| *it > entry.seq)
            || applied.any(|it| it.seq > entry.seq && state.applied.contains(&it.seq))
    }

    /// How many changes Kueue has seen for certain in a second: those before the lag.
    pub(crate) fn certain_prefix(&self, second: i64) -> usize {
        let lag_ms = self.known.settings.lag_ms;
        let first_ms = second.saturating_mul(1000).saturating_sub(lag_ms);
        let mut latest_ms = i64::MAX;
        let mut certain = self.seen.len();
        for entry in self.seen.iter().rev() {
            latest_ms = latest_ms.min(entry.at_ms);
            if latest_ms < first_ms {
                break;
            }
            certain = certain.saturating_sub(1);
        }
        certain
    }

    /// The length of the prefix after which each workload on which Kueue has decided before the window is pending.
    fn needed_prefix(&self) -> usize {
        let mut decided: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in &self.earlier {
            decided.insert(&entry.decided_on, entry.seq);
        }
        let mut needed = 0_usize;
        for (position, entry) in self.seen.iter().enumerate() {
            let is_needed = decided.get(&*entry.key).is_some_and(|it| entry.seq < *it);
            let was_pending = entry.before.as_ref().is_some_and(|it| is_pending(it));
            let is_pending = entry.after.as_ref().is_some_and(|it| is_pending(it));
            if is_needed && is_pending && !was_pending {
                needed = position.saturating_add(1);
            }
        }
        needed
    }

    /// Applies a decision that Kueue has not seen in its watch yet. Its reservation has nanoseconds, so it is the newest of
    /// its second.
    fn apply_assumed(&self, cluster: &mut ClusterState, entry: &Entry) {
        let Some(after) = &entry.after else {
            return;
        };
        let is_victim = match &self.decision.what {
            What::Preemption(victims) => victims.contains_key(&entry.key),
            What::Admission(_) => false,
        };
        let is_newest = is_victim && self.assumptions.are_victims_newest;
        let lead_s = if is_newest { 2 } else { 1 };
        let mut assumed = Workload::clone(after);
        if let Some(status) = assumed.status.as_mut().filter(|_| entry.is_admission()) {
            // An eviction that was written before the admission came after it.
            status
                .conditions
                .retain(|it| it.type_ != "Evicted" && it.type_ != "Preempted");
        }
        let conditions = assumed.status.iter_mut().flat_map(|it| &mut it.conditions);
        for condition in conditions.filter(|it| it.type_ == "QuotaReserved") {
            let later = transition_s(condition).saturating_add(lead_s);
            if let Ok(later) = Timestamp::from_second(later) {
                condition.last_transition_time.0 = later;
            }
        }
        apply(cluster, &entry.key, Some(&Arc::new(assumed)));
    }
}

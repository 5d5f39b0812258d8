//! The search for a state on which the core decides as Kueue.

use crate::candidate_states::{CandidateState, CandidateStates};
use crate::core_cycles::{CoreDecision, OtherDecision, decide};
use crate::cycle_replay::{CycleReplay, ReplayBounds};
use crate::decision::KueueDecision;
use crate::known_state::Known;
use crate::past_states::PastStates;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::QueueingStrategy;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most decisions on one state, each without some workloads that may be out of their queues.
const RETRIES_MAX: usize = 16;

/// The most states with the same prefix.
const STATES_MAX: usize = 64;

/// The most decisions on states in a search.
const DECIDED_MAX: usize = 4_000;

/// The most cycles of replays, and decisions on states, for one decision of Kueue.
pub(crate) const EFFORT_MAX: usize = 100_000;

/// [`EFFORT_MAX`] for a decision whose difference has an explanation.
pub(crate) const EXPLAINED_EFFORT_MAX: usize = 2_000;

/// How many seconds before the decision replays begin at most.
const WINDOW_MAX_S: i64 = 1;

/// The bounds of the first replays: nearly all agree within them.
const SHORT: ReplayBounds = ReplayBounds {
    cycles: 1_500,
    replays: 256,
};

/// The bounds of the replays after all else has failed.
const LONG: ReplayBounds = ReplayBounds {
    cycles: 30_000,
    replays: 4_096,
};

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchResult {
    /// The core decides as Kueue on one of the states.
    Found,
    /// It does on none of them.
    NotFound,
    /// It does on none of those that the bounds allow, and there are more.
    CutOff,
}

/// A search.
pub(crate) struct Search<'a> {
    states: &'a CandidateStates<'a>,
    known: Known<'a>,
    queues: &'a BTreeSet<Arc<str>>,
    decision: &'a KueueDecision,
    /// Created when it is needed.
    past: Option<PastStates>,
    /// Sets of some, not all, of the victims, each of which the core preempts, too, on one of the states.
    parts: BTreeSet<BTreeSet<Arc<str>>>,
    /// How many cycles of replays and decisions on states are left for the decision of Kueue.
    effort: &'a mut usize,
    /// How many decisions on states are left.
    left: usize,
    /// Whether the bounds have ended a part of the search that decides on states.
    are_states_cut_off: bool,
    /// Whether they have ended the last replay.
    is_replay_cut_off: bool,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        states: &'a CandidateStates<'a>,
        known: Known<'a>,
        decision: &'a KueueDecision,
        queues: &'a BTreeSet<Arc<str>>,
        effort: &'a mut usize,
    ) -> Self {
        Self {
            states,
            known,
            queues,
            decision,
            past: None,
            parts: BTreeSet::new(),
            effort,
            left: 0,
            are_states_cut_off: states.is_cut_off(),
            is_replay_cut_off: false,
        }
    }

    /// Sets of some, not all, of the victims, each of which the core preempts, too, on one of the states; the largest first.
    pub(crate) fn into_parts(self) -> Vec<BTreeSet<Arc<str>>> {
        let mut parts: Vec<_> = self.parts.into_iter().collect();
        parts.sort_by_key(|it| std::cmp::Reverse(it.len()));
        parts
    }

    /// Searches for a state on which the core decides as Kueue.
    pub(crate) fn run(&mut self) -> SearchResult {
        let mut is_found = self.agrees_in_replay(0, SHORT);
        let is_first_cut_off = self.is_replay_cut_off;
        is_found = is_found
            || self.agrees_after_cycles()
            || self.agrees_in_replay(WINDOW_MAX_S, SHORT)
            || (self.is_replay_cut_off && self.agrees_in_replay(WINDOW_MAX_S, LONG));
        let is_second_cut_off = self.is_replay_cut_off;
        is_found = is_found || (is_first_cut_off && self.agrees_in_replay(0, LONG));
        if is_found {
            SearchResult::Found
        } else if self.are_states_cut_off || is_second_cut_off || self.is_replay_cut_off {
            SearchResult::CutOff
        } else {
            SearchResult::NotFound
        }
    }

    /// Follows the cycles of the second: on each state that Kueue may have seen, the core decides. If Kueue has made one of
    /// its decisions in the second, too, that may have been before.
    fn agrees_after_cycles(&mut self) -> bool {
        let most = DECIDED_MAX.min(*self.effort);
        self.left = most;
        let agrees = self.agrees_on_reached_states();
        *self.effort = self.effort.saturating_sub(most.saturating_sub(self.left));
        agrees
    }

    fn agrees_on_reached_states(&mut self) -> bool {
        let first = self.states.first_prefix();
        let mut reached = vec![self.states.state(first)];
        for prefix in first..=self.states.last_prefix() {
            let mut known = BTreeSet::new();
            reached.retain(|it| known.insert(it.applied.clone()));
            let mut waiting = reached.clone();
            while let Some(state) = waiting.pop() {
                let Err(cycles) = self.agrees_without_others(&state, prefix) else {
                    return true;
                };
                if self.left == 0 {
                    self.are_states_cut_off = true;
                    return false;
                }
                for cycle in cycles {
                    let next = self.after_cycle(&state, &cycle);
                    if !known.insert(next.applied.clone()) {
                        continue;
                    }
                    if reached.len() >= STATES_MAX {
                        self.are_states_cut_off = true;
                        break;
                    }
                    reached.push(next.clone());
                    waiting.push(next);
                }
            }
            for state in &mut reached {
                self.states.advance(state, prefix);
            }
        }
        false
    }

    /// Whether the core decides as Kueue in a replay that begins some seconds before the decision.
    fn agrees_in_replay(&mut self, window_s: i64, bounds: ReplayBounds) -> bool {
        let bounds = ReplayBounds {
            cycles: bounds.cycles.min(*self.effort),
            ..bounds
        };
        let states = CandidateStates::new(
            self.known,
            self.decision,
            self.queues,
            window_s,
            self.states.assumptions(),
        );
        let outcome = CycleReplay::new(&states, self.decision, bounds).run();
        *self.effort = self.effort.saturating_sub(outcome.cycles);
        self.is_replay_cut_off = outcome.is_cut_off || states.is_cut_off();
        self.parts.extend(outcome.parts);
        outcome.is_agreed
    }

    /// A state after the decisions of a cycle that Kueue has made in the same second, too.
    fn after_cycle(&self, state: &CandidateState, cycle: &[OtherDecision]) -> CandidateState {
        let mut next = state.clone();
        for own in cycle {
            for entry in &self.states.window {
                if entry.is_decision(own) {
                    self.states.assume(&mut next, entry);
                }
            }
        }
        next
    }

    /// `Err` with the decisions of the first cycle if the core does not decide as Kueue, with or without workloads that may
    /// be out of their queues.
    fn agrees_without_others(
        &mut self,
        state: &CandidateState,
        prefix: usize,
    ) -> Result<(), Vec<Vec<OtherDecision>>> {
        let mut cluster = state.cluster.clone();
        let is_possible = self.states.has_preceding_part(state);
        let at_ms = self.states.prefix_ms(prefix);
        let mut cycles = Vec::new();
        let mut without_unfit = None;
        for retry in 0..RETRIES_MAX.min(self.left) {
            self.left = self.left.saturating_sub(1);
            let mut result = decide(&mut cluster.clone(), self.decision, false);
            match result.decision {
                CoreDecision::Same if is_possible => return Ok(()),
                CoreDecision::PartOfVictims(victims) if is_possible => {
                    self.parts.insert(victims);
                }
                _ => {}
            }
            let mut has_changed = false;
            let unfit = without_unfit.get_or_insert_with(|| {
                has_changed = true;
                std::mem::take(&mut result.unfit)
            });
            if has_changed {
                for key in &*unfit {
                    has_changed |= remove_class(&mut cluster, key, &self.decision.key);
                }
            }
            for other in &result.before {
                if self.may_be_inadmissible(&other.key, at_ms) {
                    has_changed |= remove_class(&mut cluster, &other.key, &self.decision.key);
                }
            }
            result.before.truncate(result.in_first_cycle);
            cycles.push(result.before);
            if !has_changed {
                break;
            }
            self.are_states_cut_off |= retry.saturating_add(1) == RETRIES_MAX;
        }
        Err(cycles)
    }

    fn may_be_inadmissible(&mut self, key: &Arc<str>, at_ms: i64) -> bool {
        let begin_ms = self.states.first_candidate_ms();
        let (known, decision, queues) = (self.known, self.decision, self.queues);
        let past = self
            .past
            .get_or_insert_with(|| PastStates::new(known, decision, queues, begin_ms));
        past.may_be_inadmissible(key, at_ms)
    }
}

/// Removes a pending workload and the equivalent ones of its queue, which are out of the queue together. Returns false, and
/// removes none, if `kept` is one of them.
fn remove_class(cluster: &mut ClusterState, key: &str, kept: &str) -> bool {
    let state = cluster.state();
    let Some(id) = state.workload(key) else {
        return false;
    };
    let view = state.workload_view(id);
    let Some(queue) = view.queue() else {
        return false;
    };
    // A StrictFIFO queue keeps its head.
    if state.node_view(queue).strategy() != QueueingStrategy::BestEffortFifo {
        return false;
    }
    let pending = state.node_view(queue).pending().into_iter();
    let equivalent = pending.filter(|it| {
        let other = state.workload_view(*it);
        other.priority() == view.priority() && other.pod_sets() == view.pod_sets()
    });
    let keys: Vec<String> = equivalent
        .map(|it| state.workload_name(it).to_owned())
        .collect();
    if keys.iter().any(|it| it == kept) {
        return false;
    }
    for key in &keys {
        cluster.remove_workload(key);
    }
    !keys.is_empty()
}

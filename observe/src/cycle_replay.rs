//! Replays the scheduling cycles of the last seconds before a decision.
//!
//! A cycle leaves traces that objects do not show: workloads that do not fit leave their queues until quota is released, and a
//! workload that lost its quota to others continues at its next flavor. The [`CandidateStates`] do not have these. Here, cycles
//! run from a second or two before the decision on, between all changes that Kueue may have seen. A replay goes on
//! while the core makes the decisions that Kueue has made; at the end of a second, it gets those that are missing.

use crate::candidate_states::{CandidateState, CandidateStates};
use crate::core_cycles::{Action, CoreDecision, OtherDecision, decided_cycle};
use crate::decision::KueueDecision;
use crate::history::{Entry, end_of_second_ms};
use crate::known_state::copies_max;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{ResourceId, WorkloadId, has_heads};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The flavors that a workload has tried.
type TriedFlavors = Vec<(usize, ResourceId, usize)>;

/// The queues: the preemptor that waits of each, and its workloads with whether they are active.
type Queued = Vec<(Option<WorkloadId>, Vec<(WorkloadId, bool, TriedFlavors)>)>;

/// The bounds of a search.
#[derive(Clone, Copy)]
pub(crate) struct ReplayBounds {
    /// The most cycles.
    pub(crate) cycles: usize,
    /// The most replays with the same prefix; fewer if the states are large.
    pub(crate) replays: usize,
}

/// The cycles up to some state.
#[derive(Clone)]
struct Replay {
    state: CandidateState,
    /// The second of the next cycle.
    second: i64,
    /// How many decisions of Kueue the core did not make.
    missed: usize,
}

/// What a cycle makes of a replay.
enum CycleResult {
    /// The core decides as Kueue.
    Agreed,
    /// The core decides on a workload on which Kueue has not decided.
    Diverged,
    /// The core makes decisions of Kueue, or none.
    Continued(Box<Replay>),
}

/// The result of a search.
pub(crate) struct Outcome {
    /// Whether the core decides as Kueue in one of the replays.
    pub(crate) is_agreed: bool,
    /// Whether the bounds have ended the search.
    pub(crate) is_cut_off: bool,
    /// How many cycles ran.
    pub(crate) cycles: usize,
    /// Sets of some, not all, of Kueue's victims, each of which the core preempts, too, in one of the replays.
    pub(crate) parts: BTreeSet<BTreeSet<Arc<str>>>,
}

/// The search for a replay in which the core decides as Kueue.
pub(crate) struct CycleReplay<'a> {
    states: &'a CandidateStates<'a>,
    decision: &'a KueueDecision,
    bounds: ReplayBounds,
    parts: BTreeSet<BTreeSet<Arc<str>>>,
    cycles: usize,
    is_cut_off: bool,
}

impl<'a> CycleReplay<'a> {
    /// Creates a search over the changes around a decision, from the first second of the states on.
    pub(crate) const fn new(
        states: &'a CandidateStates<'a>,
        decision: &'a KueueDecision,
        bounds: ReplayBounds,
    ) -> Self {
        Self {
            states,
            decision,
            bounds,
            parts: BTreeSet::new(),
            cycles: 0,
            is_cut_off: false,
        }
    }

    /// Runs the search.
    pub(crate) fn run(mut self) -> Outcome {
        let is_agreed = self.finds_agreement();
        Outcome {
            is_agreed,
            is_cut_off: self.is_cut_off,
            cycles: self.cycles,
            parts: self.parts,
        }
    }

    fn finds_agreement(&mut self) -> bool {
        let first = self.states.first_prefix();
        let state = self.states.state(first);
        self.bounds.replays = self.bounds.replays.min(copies_max(&state.cluster));
        let mut replays = vec![Replay {
            state,
            second: self.states.first_second(),
            missed: 0,
        }];
        for prefix in first..=self.states.last_prefix() {
            let Some(reached) = self.all_with_prefix(replays, prefix) else {
                return true;
            };
            replays = reached;
            if self.cycles >= self.bounds.cycles {
                return false;
            }
            for replay in &mut replays {
                self.advance(replay, prefix);
            }
        }
        false
    }

    /// All replays that cycles reach with a prefix; `None` if the core decides as Kueue in one of the cycles.
    fn all_with_prefix(&mut self, replays: Vec<Replay>, prefix: usize) -> Option<Vec<Replay>> {
        let mut known = BTreeSet::new();
        let mut reached = Vec::new();
        let mut waiting = replays;
        // The ones with the fewest missed decisions first.
        waiting.sort_by_key(|it| std::cmp::Reverse(it.missed));
        while let Some(replay) = waiting.pop() {
            let queued = queued(&replay.state.cluster);
            if !known.insert((replay.second, replay.state.applied.clone(), queued)) {
                continue;
            }
            if reached.len() >= self.bounds.replays || self.cycles >= self.bounds.cycles {
                self.is_cut_off = true;
                break;
            }
            if self.states.certain_prefix(replay.second) <= prefix {
                if has_heads(replay.state.cluster.state()) {
                    match self.after_cycle(&replay) {
                        CycleResult::Agreed => return None,
                        CycleResult::Continued(next) => waiting.push(*next),
                        CycleResult::Diverged => {}
                    }
                }
                if replay.second < self.decision.decided_s {
                    waiting.push(self.after_second(replay.clone()));
                }
            }
            reached.push(replay);
        }
        Some(reached)
    }

    /// Runs a cycle.
    fn after_cycle(&mut self, replay: &Replay) -> CycleResult {
        self.cycles = self.cycles.saturating_add(1);
        let mut next = replay.clone();
        let cycle = decided_cycle(&mut next.state.cluster, next.second, self.decision);
        let is_possible =
            next.second == self.decision.decided_s && self.states.has_preceding_part(&next.state);
        match cycle.decision {
            CoreDecision::Same | CoreDecision::PartOfVictims(_) if !is_possible => {
                return CycleResult::Diverged;
            }
            CoreDecision::Same => return CycleResult::Agreed,
            // Kueue may have preempted the others in a later cycle.
            CoreDecision::PartOfVictims(victims) => {
                let preempted = self.states.assume_victims(&mut next.state, &victims);
                if self.decision.has_all_victims(&preempted) {
                    return CycleResult::Agreed;
                }
                self.parts.insert(preempted);
            }
            CoreDecision::Other(_) | CoreDecision::NotConsidered => {}
        }
        for own in &cycle.others {
            if !self.follow(&mut next, own) {
                return CycleResult::Diverged;
            }
        }
        CycleResult::Continued(Box::new(next))
    }

    /// Applies what Kueue has decided in the place of a decision of the core; false if it has not decided on the workload.
    fn follow(&self, replay: &mut Replay, own: &OtherDecision) -> bool {
        let state = &replay.state;
        let is_same = |it: &&&Entry| {
            it.decided_s == Some(replay.second)
                && !state.applied.contains(&it.seq)
                && it.is_decision(own)
        };
        let count = match &own.action {
            Action::Admission => 1,
            Action::Preemption(victims) => victims.len(),
        };
        let same = self.states.window.iter().filter(is_same).take(count);
        let same: Vec<&Entry> = same.copied().collect();
        let is_complete = same.len() == count;
        for entry in same {
            self.states.assume(&mut replay.state, entry);
        }
        is_complete
    }

    /// The replay in the next second, with all decisions of Kueue in this one.
    fn after_second(&self, mut replay: Replay) -> Replay {
        for entry in &self.states.window {
            if entry.decided_s == Some(replay.second) && !replay.state.applied.contains(&entry.seq)
            {
                self.states.assume(&mut replay.state, entry);
                replay.missed = replay.missed.saturating_add(1);
            }
        }
        replay.second = replay.second.saturating_add(1);
        replay
    }

    /// Makes a replay with a prefix one with the next longer prefix.
    fn advance(&self, replay: &mut Replay, prefix: usize) {
        let Some(entry) = self.states.change(prefix) else {
            return;
        };
        while entry.earliest_ms > end_of_second_ms(replay.second)
            && replay.second < self.decision.decided_s
        {
            *replay = self.after_second(replay.clone());
        }
        if self.states.window.iter().any(|it| it.seq == entry.seq)
            && !replay.state.applied.contains(&entry.seq)
        {
            replay.missed = replay.missed.saturating_add(1);
        }
        self.states.advance(&mut replay.state, prefix);
    }
}

/// The workloads in the queues of a state.
fn queued(cluster: &ClusterState) -> Queued {
    let state = cluster.state();
    let queues = state.queues().map(|(_, queue)| {
        let queue = state.node_view(queue);
        let active = queue.active().into_iter().map(|it| (it, true));
        let inadmissible = queue.inadmissible().into_iter().map(|it| (it, false));
        let workloads = active.chain(inadmissible);
        let workloads = workloads.map(|(id, is_active)| {
            let tried = state.workload_view(id).tried_flavors().to_vec();
            (id, is_active, tried)
        });
        (queue.waiting_preemptor(), workloads.collect())
    });
    queues.collect()
}

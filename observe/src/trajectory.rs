//! The cycles of the last seconds before a decision, one after the other.
//!
//! A cycle leaves traces that objects do not show: workloads that do not fit leave their queues until quota is released, and a
//! workload that lost its quota to others continues at its next flavor. The states of a [`Timeline`] do not have these. Here, cycles
//! run from a second or two before the decision on, between all changes that Kueue may have seen. A trajectory goes on
//! while the core makes the decisions that Kueue has made; at the end of a second, it gets those that are missing.

use crate::decision::KueueDecision;
use crate::forecast::{Action, CoreDecision, OtherDecision, decided_cycle};
use crate::history::{Entry, end_of_second_ms};
use crate::timeline::{Hypothesis, Timeline};
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{ResourceId, WorkloadId, has_heads};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most trajectories with the same prefix.
const TRAJECTORIES_MAX: usize = 256;

/// The most cycles of a search.
const CYCLES_MAX: usize = 1_500;

/// The flavors that a workload has tried.
type TriedFlavors = Vec<(usize, ResourceId, usize)>;

/// The queues: the preemptor that waits of each, and its workloads with whether they are active.
type Queued = Vec<(Option<WorkloadId>, Vec<(WorkloadId, bool, TriedFlavors)>)>;

/// A trajectory after some cycles.
#[derive(Clone)]
struct Trajectory {
    state: Hypothesis,
    /// The second of the next cycle.
    second: i64,
    /// How many decisions of Kueue the core did not make.
    missed: usize,
}

/// What a cycle makes of a trajectory.
enum CycleResult {
    /// The core decides as Kueue.
    Agreed,
    /// The core decides on a workload on which Kueue has not decided.
    Diverged,
    /// The core makes decisions of Kueue, or none.
    Continued(Box<Trajectory>),
}

/// The result of a search.
pub(crate) struct Outcome {
    /// Whether the core decides as Kueue on one of the trajectories.
    pub(crate) is_agreed: bool,
    /// Victims that the core preempts, too, on one of them.
    pub(crate) confirmed_victims: BTreeSet<Arc<str>>,
}

/// The search for a trajectory on which the core decides as Kueue.
pub(crate) struct TrajectorySearch<'a> {
    timeline: &'a Timeline<'a>,
    decision: &'a KueueDecision,
    confirmed_victims: BTreeSet<Arc<str>>,
    cycles: usize,
}

impl<'a> TrajectorySearch<'a> {
    /// Creates a search over the changes of a timeline, from its first second on.
    pub(crate) const fn new(timeline: &'a Timeline<'a>, decision: &'a KueueDecision) -> Self {
        Self {
            timeline,
            decision,
            confirmed_victims: BTreeSet::new(),
            cycles: 0,
        }
    }

    /// Runs the search.
    pub(crate) fn run(mut self) -> Outcome {
        Outcome {
            is_agreed: self.finds_agreement(),
            confirmed_victims: self.confirmed_victims,
        }
    }

    fn finds_agreement(&mut self) -> bool {
        let first = self.timeline.first_prefix();
        let mut trajectories = vec![Trajectory {
            state: self.timeline.state(first),
            second: self.timeline.first_second(),
            missed: 0,
        }];
        for prefix in first..=self.timeline.last_prefix() {
            let Some(reached) = self.all_with_prefix(trajectories, prefix) else {
                return true;
            };
            trajectories = reached;
            if self.cycles >= CYCLES_MAX {
                return false;
            }
            for trajectory in &mut trajectories {
                self.advance(trajectory, prefix);
            }
        }
        false
    }

    /// All trajectories that cycles reach with a prefix; `None` if the core decides as Kueue in one of the cycles.
    fn all_with_prefix(
        &mut self,
        trajectories: Vec<Trajectory>,
        prefix: usize,
    ) -> Option<Vec<Trajectory>> {
        let mut known = BTreeSet::new();
        let mut reached = Vec::new();
        let mut waiting = trajectories;
        // The ones with the fewest missed decisions first.
        waiting.sort_by_key(|it| std::cmp::Reverse(it.missed));
        while let Some(trajectory) = waiting.pop() {
            let queued = queued(&trajectory.state.cluster);
            if reached.len() >= TRAJECTORIES_MAX
                || self.cycles >= CYCLES_MAX
                || !known.insert((trajectory.second, trajectory.state.applied.clone(), queued))
            {
                continue;
            }
            if self.timeline.certain_prefix(trajectory.second) <= prefix {
                if has_heads(trajectory.state.cluster.state()) {
                    match self.after_cycle(&trajectory) {
                        CycleResult::Agreed => return None,
                        CycleResult::Continued(next) => waiting.push(*next),
                        CycleResult::Diverged => {}
                    }
                }
                if trajectory.second < self.decision.decided_s {
                    waiting.push(self.after_second(trajectory.clone()));
                }
            }
            reached.push(trajectory);
        }
        Some(reached)
    }

    /// Runs a cycle.
    fn after_cycle(&mut self, trajectory: &Trajectory) -> CycleResult {
        self.cycles = self.cycles.saturating_add(1);
        let mut next = trajectory.clone();
        let is_last_second = next.second == self.decision.decided_s;
        let cycle = decided_cycle(&mut next.state.cluster, next.second, self.decision);
        if is_last_second {
            match cycle.decision {
                CoreDecision::Same => return CycleResult::Agreed,
                CoreDecision::PartOfVictims(victims) => {
                    self.confirmed_victims.extend(victims);
                    return CycleResult::Diverged;
                }
                CoreDecision::Other(_) | CoreDecision::NotConsidered => {}
            }
        }
        for own in &cycle.others {
            if !self.follow(&mut next, own) {
                return CycleResult::Diverged;
            }
        }
        CycleResult::Continued(Box::new(next))
    }

    /// Applies what Kueue has decided in the place of a decision of the core; false if it has not decided on the workload.
    fn follow(&self, trajectory: &mut Trajectory, own: &OtherDecision) -> bool {
        let state = &trajectory.state;
        let is_same = |it: &&&Entry| {
            it.decided_s == Some(trajectory.second)
                && !state.applied.contains(&it.seq)
                && it.is_decision(own)
        };
        let count = match &own.action {
            Action::Admission => 1,
            Action::Preemption(victims) => victims.len(),
        };
        let same = self.timeline.window.iter().filter(is_same).take(count);
        let same: Vec<&Entry> = same.copied().collect();
        let is_complete = same.len() == count;
        for entry in same {
            self.timeline.assume(&mut trajectory.state, entry);
        }
        is_complete
    }

    /// The trajectory in the next second, with all decisions of Kueue in this one.
    fn after_second(&self, mut trajectory: Trajectory) -> Trajectory {
        for entry in &self.timeline.window {
            if entry.decided_s == Some(trajectory.second)
                && !trajectory.state.applied.contains(&entry.seq)
            {
                self.timeline.assume(&mut trajectory.state, entry);
                trajectory.missed = trajectory.missed.saturating_add(1);
            }
        }
        trajectory.second = trajectory.second.saturating_add(1);
        trajectory
    }

    /// Makes a trajectory with a prefix one with the next longer prefix.
    fn advance(&self, trajectory: &mut Trajectory, prefix: usize) {
        let Some(entry) = self.timeline.change(prefix) else {
            return;
        };
        while entry.earliest_ms > end_of_second_ms(trajectory.second)
            && trajectory.second < self.decision.decided_s
        {
            *trajectory = self.after_second(trajectory.clone());
        }
        if self.timeline.window.iter().any(|it| it.seq == entry.seq)
            && !trajectory.state.applied.contains(&entry.seq)
        {
            trajectory.missed = trajectory.missed.saturating_add(1);
        }
        self.timeline.advance(&mut trajectory.state, prefix);
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

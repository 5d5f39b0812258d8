//! Queues and workloads, left to themselves: a cycle after the other, and whoever is told to go goes at once
//! and waits again. Nobody finishes.

#[cfg(test)]
mod tests;

use crate::queue_tree::SimulatedCluster;
use lockkeeper_preemption::{
    Amount, DampingView, Decision, FlavorResource, PodSet, PreemptionReason, ResourceId, State,
    WorkloadId, WorkloadSpec,
};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds in a row in which nothing happens after which nothing more comes: all flavors have been tried by then.
const QUIET_CYCLES: usize = 5;

/// A workload that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimWorkload {
    /// Its ClusterQueue.
    pub queue: String,
    /// Its priority.
    pub priority: i32,
    /// What it asks for, in units of the core.
    pub requests: BTreeMap<ResourceId, i64>,
    /// Whether it comes when all that came before are at rest, or together with the one before it.
    pub arrives_when_idle: bool,
}

/// A victim, by its number, and why it goes.
pub type Eviction = (usize, PreemptionReason);

/// What happened in one cycle. Guests go by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleEvents {
    /// Who came before it.
    pub arrived: Vec<usize>,
    /// Who was admitted.
    pub admitted: Vec<usize>,
    /// Who has told whom to go.
    pub preempted: BTreeMap<usize, Vec<Eviction>>,
}

/// Rounds that come again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionLoop {
    /// Who takes part, in the order in which they come.
    pub workloads: Vec<SimWorkload>,
    /// All rounds, the first turn of the circle included.
    pub cycles: Vec<CycleEvents>,
    /// The round, from 0, before which all is as after the last one.
    pub loop_start: usize,
}

/// Where a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkloadPhase {
    NotArrived,
    /// It waits: actively or parked, and whether the queue looks at more flavors for it.
    Pending(bool, bool),
    /// Of how many flavors and resources it holds something, and its rank by the time of its reservation.
    Admitted(usize, usize),
}

/// All that decides what happens next, without the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StateSnapshot {
    phases: Vec<WorkloadPhase>,
    /// What those who run hold, one after the other.
    usage: Vec<(FlavorResource, Amount)>,
}

impl StateSnapshot {
    fn any_phase(&self, is_so: impl FnMut(&WorkloadPhase) -> bool) -> bool {
        self.phases.iter().any(is_so)
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct SimulationRun<'a> {
    state: State,
    workloads: &'a [SimWorkload],
    ids: Vec<WorkloadId>,
    now_s: i64,
    cycles: Vec<CycleEvents>,
    /// Before the round of the same number.
    snapshots: Vec<StateSnapshot>,
}

impl<'a> SimulationRun<'a> {
    /// Guests come to queues in which nobody is.
    #[must_use]
    pub fn new(field: &SimulatedCluster, workloads: &'a [SimWorkload]) -> Self {
        Self {
            state: field.state.clone(),
            workloads,
            ids: Vec::new(),
            now_s: 0,
            cycles: Vec::new(),
            snapshots: Vec::new(),
        }
    }

    /// What has happened so far.
    #[must_use]
    pub fn cycles(&self) -> &[CycleEvents] {
        &self.cycles
    }

    /// How many preemptions were undone, and how many undone ones were made again: how near a circle it was.
    #[must_use]
    pub fn thrash_count(&self) -> u64 {
        let thrash = DampingView::new(&self.state).thrash_stats();
        let again = thrash.preempted_again.saturating_mul(4);
        let readmitted = thrash.readmitted.saturating_mul(2);
        again
            .saturating_add(readmitted)
            .saturating_add(thrash.preempted)
    }

    /// Goes on until it rests, comes round, or has taken so many rounds.
    pub fn find_loop(&mut self, rounds_max: usize) -> Option<PreemptionLoop> {
        let mut now = self.snapshot();
        while self.cycles.len() < rounds_max {
            let is_complete = self.ids.len() == self.workloads.len();
            if is_complete && let Some(found) = self.detect_loop(&now) {
                return Some(found);
            }
            if self.is_quiescent(&now) {
                if is_complete {
                    return None;
                }
                self.snapshots.clear();
            }
            self.run_cycle(now);
            now = self.snapshot();
        }
        None
    }

    /// One cycle, before which guests come if it is time for them.
    fn run_cycle(&mut self, mut now: StateSnapshot) {
        let mut round = CycleEvents::default();
        if self.snapshots.is_empty() {
            self.arrive(&mut round);
            now = self.snapshot();
        }
        self.snapshots.push(now);
        let cycle = self.state.next_cycle(self.now_s, false);
        self.now_s = self.now_s.saturating_add(1);
        for entry in &cycle.entries {
            let Some(guest) = self.workload_index(entry.workload) else {
                continue;
            };
            match &entry.decision {
                Decision::Admit => round.admitted.push(guest),
                Decision::Preempt(victims) => {
                    let gone = victims
                        .iter()
                        .filter_map(|it| Some((self.workload_index(it.workload)?, it.reason)));
                    round.preempted.insert(guest, gone.collect());
                }
                _ => {}
            }
        }
        let gone: BTreeSet<usize> = round
            .preempted
            .values()
            .flatten()
            .map(|(guest, _)| *guest)
            .collect();
        for guest in gone {
            if let Some(id) = self.ids.get(guest) {
                self.state.release(*id);
            }
        }
        round.admitted.sort_unstable();
        self.cycles.push(round);
    }

    /// The next guest comes, and those who come with it.
    fn arrive(&mut self, round: &mut CycleEvents) {
        let first = self.ids.len();
        for (number, guest) in self.workloads.iter().enumerate().skip(first) {
            if number > first && guest.arrives_when_idle {
                break;
            }
            let name = format!("{number:02}");
            let requests = guest.requests.iter();
            let requests = requests.map(|(of, amount)| (*of, Amount::new(*amount)));
            let id = self.state.add_pending(WorkloadSpec {
                name: &name,
                uid: &name,
                queue: &guest.queue,
                priority: guest.priority,
                order_time: i64::try_from(number).unwrap_or(i64::MAX),
                pod_sets: vec![PodSet {
                    name: "main".into(),
                    count: 1,
                    count_min: None,
                    requests: requests.collect(),
                    ineligible: Box::new([]),
                    template_hash: 0,
                }],
                is_in_scope: true,
                preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
            });
            self.ids.push(id);
            round.arrived.push(number);
        }
    }

    fn workload_index(&self, id: WorkloadId) -> Option<usize> {
        self.ids.iter().position(|it| *it == id)
    }

    fn snapshot(&self) -> StateSnapshot {
        let mut standing = StateSnapshot {
            phases: Vec::with_capacity(self.workloads.len()),
            usage: Vec::new(),
        };
        let since = |id: &WorkloadId| {
            self.state
                .workload_view(*id)
                .reserved_usage()
                .map(|(at_s, _)| at_s)
        };
        let mut times: Vec<i64> = self.ids.iter().filter_map(since).collect();
        times.sort_unstable();
        times.dedup();
        for id in &self.ids {
            let place = if let Some((at_s, usage)) = self.state.workload_view(*id).reserved_usage()
            {
                let before = standing.usage.len();
                standing.usage.extend(usage);
                let count = standing.usage.len().saturating_sub(before);
                WorkloadPhase::Admitted(count, times.partition_point(|it| *it < at_s))
            } else {
                WorkloadPhase::Pending(
                    self.state.workload_view(*id).is_active(),
                    self.state.workload_view(*id).has_untried_flavors(),
                )
            };
            standing.phases.push(place);
        }
        standing
            .phases
            .resize(self.workloads.len(), WorkloadPhase::NotArrived);
        standing
    }

    /// Whether nothing happens any more: nobody waits but who is parked, or a cycle changed nothing, and so does the
    /// next one, unless a head goes on to its next flavors. One that keeps its queue may try them again and again, so
    /// a standing that was there before will do when nothing has happened for some rounds.
    fn is_quiescent(&self, now: &StateSnapshot) -> bool {
        if self.snapshots.is_empty() {
            return false;
        }
        let is_active = |it: &WorkloadPhase| matches!(it, WorkloadPhase::Pending(true, _));
        let goes_on = |it: &WorkloadPhase| matches!(it, WorkloadPhase::Pending(true, true));
        let is_quiet = |it: &CycleEvents| it.admitted.is_empty() && it.preempted.is_empty();
        let quiet = self.cycles.iter().rev().take(self.snapshots.len());
        let quiet = quiet.take_while(|it| is_quiet(it)).count();
        let before = self.snapshots.iter().rev();
        let is_same = quiet > 0 && before.clone().next() == Some(now);
        !now.any_phase(is_active)
            || (is_same && !now.any_phase(goes_on))
            || (quiet >= QUIET_CYCLES && before.take(QUIET_CYCLES).any(|it| it == now))
    }

    /// Where the state now was before, if something was preempted since. What a queue remembers beyond its
    /// places is not seen in a standing, so the circle has to be gone through twice more.
    fn detect_loop(&mut self, now: &StateSnapshot) -> Option<PreemptionLoop> {
        let offset = self.cycles.len().checked_sub(self.snapshots.len())?;
        let at = self.snapshots.iter().rposition(|it| it == now)?;
        let from = at.checked_add(offset)?;
        let turn = self.cycles.get(from..)?.to_vec();
        if turn.iter().all(|it| it.preempted.is_empty()) {
            return None;
        }
        let mut rounds = self.cycles.clone();
        for expected in turn.iter().chain(&turn) {
            let now = self.snapshot();
            self.run_cycle(now);
            let same = |round: &CycleEvents| {
                round.admitted == expected.admitted && round.preempted == expected.preempted
            };
            if !self.cycles.last().is_some_and(same) {
                return None;
            }
        }
        let mut from = from;
        let is_joined = turn.first().is_some_and(|it| !it.arrived.is_empty());
        if is_joined {
            // Nobody comes in a round that comes again.
            let again = self.cycles.iter().skip(rounds.len()).take(turn.len());
            from = rounds.len();
            rounds.extend(again.cloned());
        }
        Some(PreemptionLoop {
            workloads: self.workloads.to_vec(),
            cycles: rounds,
            loop_start: from,
        })
    }
}

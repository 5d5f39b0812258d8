//! Simulation of queues and workloads: one cycle after another. Victims release their quota immediately and become
//! pending again; no workload finishes.

#[cfg(test)]
mod tests;

use crate::queue_tree::SimulatedCluster;
use lockkeeper_preemption::{
    Amount, DampingView, Decision, FlavorResource, PodSet, PreemptionReason, ResourceId, State,
    WorkloadId, WorkloadSpec,
};
use std::collections::{BTreeMap, BTreeSet};

/// After this many cycles in a row without events there will be none: all flavors have been tried by then.
const QUIET_CYCLES: usize = 5;

/// A simulated workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimWorkload {
    /// Its ClusterQueue.
    pub queue: String,
    /// Its priority.
    pub priority: i32,
    /// Its requests, in units of the core.
    pub requests: BTreeMap<ResourceId, i64>,
    /// Whether it arrives once nothing happens any more, or together with the workload before it.
    pub arrives_when_idle: bool,
}

/// A victim, by index, with the reason of its preemption.
pub type Eviction = (usize, PreemptionReason);

/// The events of one cycle. Workloads are identified by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleEvents {
    /// The workloads that arrived before the cycle.
    pub arrived: Vec<usize>,
    /// The admitted workloads.
    pub admitted: Vec<usize>,
    /// The victims by preemptor.
    pub preempted: BTreeMap<usize, Vec<Eviction>>,
}

/// A sequence of cycles that repeats without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionLoop {
    /// The workloads, in order of arrival.
    pub workloads: Vec<SimWorkload>,
    /// All cycles, including the first pass of the loop.
    pub cycles: Vec<CycleEvents>,
    /// The index of the cycle at which the loop starts: the state before it equals that after the last cycle.
    pub loop_start: usize,
}

/// The phase of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkloadPhase {
    NotArrived,
    /// Pending: whether it is in the active queue, and whether it has untried flavors.
    Pending(bool, bool),
    /// Admitted: how many flavor resources it uses, and its rank by the time of its reservation.
    Admitted(usize, usize),
}

/// Everything that determines the next cycle, except the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StateSnapshot {
    phases: Vec<WorkloadPhase>,
    /// The usage of the admitted workloads, concatenated.
    usage: Vec<(FlavorResource, Amount)>,
}

impl StateSnapshot {
    fn any_phase(&self, predicate: impl FnMut(&WorkloadPhase) -> bool) -> bool {
        self.phases.iter().any(predicate)
    }
}

/// A running simulation.
#[derive(Clone, Debug)]
pub struct SimulationRun<'a> {
    state: State,
    workloads: &'a [SimWorkload],
    ids: Vec<WorkloadId>,
    now_s: i64,
    cycles: Vec<CycleEvents>,
    /// The states before the last cycles, oldest first; emptied when workloads are about to arrive.
    snapshots: Vec<StateSnapshot>,
}

impl<'a> SimulationRun<'a> {
    /// A simulation that starts with empty queues.
    #[must_use]
    pub fn new(cluster: &SimulatedCluster, workloads: &'a [SimWorkload]) -> Self {
        Self {
            state: cluster.state.clone(),
            workloads,
            ids: Vec::new(),
            now_s: 0,
            cycles: Vec::new(),
            snapshots: Vec::new(),
        }
    }

    /// The cycles so far.
    #[must_use]
    pub fn cycles(&self) -> &[CycleEvents] {
        &self.cycles
    }

    /// Returns how close the run came to a loop: a weighted sum of preemptions, readmissions and repeated preemptions.
    #[must_use]
    pub fn repeat_score(&self) -> u64 {
        let repeats = DampingView::new(&self.state).repeat_stats();
        let again = repeats.preempted_again.saturating_mul(4);
        let readmitted = repeats.readmitted.saturating_mul(2);
        again
            .saturating_add(readmitted)
            .saturating_add(repeats.preempted)
    }

    /// Runs cycles until nothing happens any more, a loop is found, or the limit is reached.
    pub fn find_loop(&mut self, cycles_max: usize) -> Option<PreemptionLoop> {
        let mut now = self.snapshot();
        while self.cycles.len() < cycles_max {
            let is_complete = self.ids.len() == self.workloads.len();
            // A workload that arrives later could end the repetition.
            if is_complete && let Some(found) = self.detect_loop(&now) {
                return Some(found);
            }
            if self.is_quiescent(&now) {
                if is_complete {
                    return None;
                }
                // Lets the next workloads arrive in `run_cycle`; states before that cannot recur.
                self.snapshots.clear();
            }
            self.run_cycle(now);
            now = self.snapshot();
        }
        None
    }

    /// Runs one cycle, after the next arrivals if they are due.
    fn run_cycle(&mut self, mut now: StateSnapshot) {
        let mut events = CycleEvents::default();
        if self.snapshots.is_empty() {
            self.arrive(&mut events);
            now = self.snapshot();
        }
        self.snapshots.push(now);
        let cycle = self.state.next_cycle(self.now_s, false);
        self.now_s = self.now_s.saturating_add(1);
        for entry in &cycle.entries {
            let Some(workload) = self.workload_index(entry.workload) else {
                continue;
            };
            match &entry.decision {
                Decision::Admit => events.admitted.push(workload),
                Decision::Preempt(victims) => {
                    let gone = victims
                        .iter()
                        .filter_map(|it| Some((self.workload_index(it.workload)?, it.reason)));
                    events.preempted.insert(workload, gone.collect());
                }
                _ => {}
            }
        }
        let gone: BTreeSet<usize> = events
            .preempted
            .values()
            .flatten()
            .map(|(workload, _)| *workload)
            .collect();
        // After the cycle: within it, victims keep their quota, as in Kueue.
        for workload in gone {
            if let Some(id) = self.ids.get(workload) {
                self.state.release(*id);
            }
        }
        events.admitted.sort_unstable();
        self.cycles.push(events);
    }

    /// Adds the next workload and those that arrive with it.
    fn arrive(&mut self, events: &mut CycleEvents) {
        let first = self.ids.len();
        for (number, workload) in self.workloads.iter().enumerate().skip(first) {
            if number > first && workload.arrives_when_idle {
                break;
            }
            // Padded, since the UID is the last criterion and UIDs are compared bytewise.
            let name = format!("{number:02}");
            let requests = workload.requests.iter();
            let requests = requests.map(|(of, amount)| (*of, Amount::new(*amount)));
            let id = self.state.add_pending(WorkloadSpec {
                name: &name,
                uid: &name,
                queue: &workload.queue,
                priority: workload.priority,
                preemption_priority: None,
                order_time: i64::try_from(number).unwrap_or(i64::MAX),
                waiting_since_s: 0,
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
            events.arrived.push(number);
        }
    }

    fn workload_index(&self, id: WorkloadId) -> Option<usize> {
        self.ids.iter().position(|it| *it == id)
    }

    fn snapshot(&self) -> StateSnapshot {
        let mut snapshot = StateSnapshot {
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
        // Ranks instead of times: a loop repeats the order of reservations, not their times.
        times.sort_unstable();
        times.dedup();
        for id in &self.ids {
            let place = if let Some((at_s, usage)) = self.state.workload_view(*id).reserved_usage()
            {
                let before = snapshot.usage.len();
                snapshot.usage.extend(usage);
                let count = snapshot.usage.len().saturating_sub(before);
                WorkloadPhase::Admitted(count, times.partition_point(|it| *it < at_s))
            } else {
                WorkloadPhase::Pending(
                    self.state.workload_view(*id).is_active(),
                    self.state.workload_view(*id).has_untried_flavors(),
                )
            };
            snapshot.phases.push(place);
        }
        snapshot
            .phases
            .resize(self.workloads.len(), WorkloadPhase::NotArrived);
        snapshot
    }

    /// Whether nothing happens any more: all pending workloads are inadmissible, or the last cycle changed nothing and
    /// no workload at the head has untried flavors.
    fn is_quiescent(&self, now: &StateSnapshot) -> bool {
        if self.snapshots.is_empty() {
            return false;
        }
        let is_active = |it: &WorkloadPhase| matches!(it, WorkloadPhase::Pending(true, _));
        let has_untried = |it: &WorkloadPhase| matches!(it, WorkloadPhase::Pending(true, true));
        let is_quiet = |it: &CycleEvents| it.admitted.is_empty() && it.preempted.is_empty();
        let quiet = self.cycles.iter().rev().take(self.snapshots.len());
        let quiet = quiet.take_while(|it| is_quiet(it)).count();
        let before = self.snapshots.iter().rev();
        let is_same = quiet > 0 && before.clone().next() == Some(now);
        !now.any_phase(is_active)
            || (is_same && !now.any_phase(has_untried))
            // A head that keeps its position may try its flavors again and again, so after some
            // cycles without events an earlier equal state is sufficient.
            || (quiet >= QUIET_CYCLES && before.take(QUIET_CYCLES).any(|it| it == now))
    }

    /// Finds an earlier cycle with the same state and a preemption since.
    fn detect_loop(&mut self, now: &StateSnapshot) -> Option<PreemptionLoop> {
        let offset = self.cycles.len().checked_sub(self.snapshots.len())?;
        // The last equal state gives the shortest loop.
        let at = self.snapshots.iter().rposition(|it| it == now)?;
        let from = at.checked_add(offset)?;
        let pass = self.cycles.get(from..)?.to_vec();
        // Equal states also occur while nothing happens.
        if pass.iter().all(|it| it.preempted.is_empty()) {
            return None;
        }
        let mut cycles = self.cycles.clone();
        // A snapshot does not contain everything that a queue stores, so the loop must repeat
        // twice more before it counts.
        for expected in pass.iter().chain(&pass) {
            let now = self.snapshot();
            self.run_cycle(now);
            let same = |events: &CycleEvents| {
                events.admitted == expected.admitted && events.preempted == expected.preempted
            };
            if !self.cycles.last().is_some_and(same) {
                return None;
            }
        }
        let mut from = from;
        let is_joined = pass.first().is_some_and(|it| !it.arrived.is_empty());
        if is_joined {
            // Arrivals do not repeat, so the loop starts with the second pass.
            let again = self.cycles.iter().skip(cycles.len()).take(pass.len());
            from = cycles.len();
            cycles.extend(again.cloned());
        }
        Some(PreemptionLoop {
            workloads: self.workloads.to_vec(),
            cycles,
            loop_start: from,
        })
    }
}

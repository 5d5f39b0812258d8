//! A cluster without outside changes: it runs cycle after cycle, and victims become pending again.

use crate::model::cluster_model::{ClusterModel, ModelReservation, Pair, Workload};
use crate::model::live::LiveState;
use crate::model::named_decisions::{NamedDecision, NamedVictim, QueueContents};
use crate::reference::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The time of the first cycle, in seconds. Workloads that run at the start were admitted before.
const START_S: i64 = 3000;

/// When victims release their quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionPace {
    /// All of them right after the cycle.
    Immediate,
    /// One before each cycle, in the order of their eviction.
    OnePerCycle,
}

/// The results of one cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CycleEvents {
    /// Workloads that released their quota before the cycle.
    pub released: Vec<String>,
    pub admitted: Vec<String>,
    /// Preemptors with their victims.
    pub preempted: BTreeMap<String, Vec<NamedVictim>>,
}

/// The part of the state that determines the next cycles, without the time.
#[derive(Clone, Debug, PartialEq)]
struct StateKey {
    /// For each admitted workload: its usage, the rank of its reservation, and whether it is evicted.
    running: BTreeMap<String, (BTreeMap<Pair, i64>, usize, bool)>,
    places: Vec<QueueContents>,
    evicting: VecDeque<String>,
}

pub struct LoopRun {
    pub live: LiveState,
    /// Workloads that are created during the run, one before every second cycle.
    later_arrivals: VecDeque<Workload>,
    pub start: ClusterModel,
    pub arrived: Vec<Workload>,
    pub cluster_model: ClusterModel,
    pub pace: EvictionPace,
    evicting: VecDeque<String>,
    now_s: i64,
    pub cycles: Vec<CycleEvents>,
    /// The state before the cycle of the same index.
    state_keys: Vec<StateKey>,
}

/// A sequence of cycles that repeats without end.
#[derive(Clone, Debug)]
pub struct Loop {
    pub pace: EvictionPace,
    /// The cluster at the start of the run.
    pub start: ClusterModel,
    /// The cycles before the loop.
    pub lead_in: Vec<CycleEvents>,
    /// The cluster at the start of the loop.
    pub cluster_model: ClusterModel,
    /// The cycles of the loop.
    pub cycles: Vec<CycleEvents>,
}

impl LoopRun {
    pub fn new(cluster_model: &ClusterModel, late: &[Workload], pace: EvictionPace) -> Self {
        Self {
            live: LiveState::from_model(cluster_model),
            later_arrivals: late.iter().cloned().collect(),
            start: cluster_model.clone(),
            arrived: Vec::new(),
            cluster_model: cluster_model.clone(),
            pace,
            evicting: VecDeque::new(),
            now_s: START_S,
            cycles: Vec::new(),
            state_keys: Vec::new(),
        }
    }

    pub fn run_cycle(&mut self) {
        if self.cycles.len() % 2 == 1
            && let Some(workload) = self.later_arrivals.pop_front()
        {
            self.live.add(&workload);
            self.arrived.push(workload.clone());
            self.cluster_model
                .workloads
                .insert(workload.name.clone(), workload);
        }
        self.state_keys.push(self.state_key());
        let mut round = CycleEvents::default();
        if self.pace == EvictionPace::OnePerCycle
            && let Some(name) = self.evicting.pop_front()
        {
            self.release(&name, &mut round);
        }
        let cycle = self.live.next_cycle(self.now_s);
        for entry in &cycle.entries {
            let name = &entry.workload;
            match &entry.decision {
                NamedDecision::Admit => {
                    let plan = entry.recomputed.as_ref().unwrap_or(&entry.nominated.plan);
                    self.workload(name).reservation = Some(ModelReservation {
                        usage: plan.usage.clone(),
                        reserved_at_s: self.now_s,
                        is_evicted: false,
                    });
                    round.admitted.push(name.clone());
                }
                NamedDecision::Preempt(victims) => {
                    round.preempted.insert(name.clone(), victims.clone());
                }
                _ => {}
            }
        }
        self.mark_evicted(&cycle.victims(), &mut round);
        self.now_s += 1;
        self.cycles.push(round);
    }

    fn workload(&mut self, name: &str) -> &mut Workload {
        self.cluster_model.workloads.get_mut(name).expect(name)
    }

    /// Evicts the victims at the configured pace.
    fn mark_evicted(&mut self, victims: &[String], round: &mut CycleEvents) {
        for name in victims {
            match self.pace {
                EvictionPace::Immediate => self.release(name, &mut CycleEvents::default()),
                EvictionPace::OnePerCycle if self.evicting.contains(name) => {}
                EvictionPace::OnePerCycle => {
                    let id = self.live.id(name);
                    self.live.state.mark_evicted(id);
                    let held = self.workload(name).reservation.as_mut();
                    held.expect("a victim is admitted").is_evicted = true;
                    self.evicting.push_back(name.clone());
                }
            }
        }
        round.admitted.sort();
    }

    fn release(&mut self, name: &str, round: &mut CycleEvents) {
        let id = self.live.id(name);
        self.live.state.release(id);
        self.workload(name).reservation = None;
        round.released.push(name.to_owned());
    }

    fn state_key(&self) -> StateKey {
        let times: BTreeSet<i64> = self
            .cluster_model
            .admitted()
            .map(|(_, held)| held.reserved_at_s)
            .collect();
        let running = self.cluster_model.admitted().map(|(workload, held)| {
            let rank = times.range(..held.reserved_at_s).count();
            let holds = (held.usage.clone(), rank, held.is_evicted);
            (workload.name.clone(), holds)
        });
        let queues = self.cluster_model.queues.keys();
        StateKey {
            running: running.collect(),
            places: queues.map(|it| self.live.queue_contents(it)).collect(),
            evicting: self.evicting.clone(),
        }
    }

    /// The cycle that had the current state before it, if a workload was preempted since and none arrives later.
    fn repeats_cycle(&self) -> Option<usize> {
        if !self.later_arrivals.is_empty() {
            return None;
        }
        let now = self.state_key();
        let from = self.state_keys.iter().rposition(|it| *it == now)?;
        let mut rounds = self.cycles[from..].iter();
        rounds.any(|it| !it.preempted.is_empty()).then_some(from)
    }

    pub fn has_repeated(&self) -> bool {
        self.repeats_cycle().is_some()
    }

    /// Whether the state did not change for four cycles: then no flavor is left to try.
    pub fn is_quiescent(&self) -> bool {
        let now = self.state_key();
        let mut last = self.state_keys.iter().rev().take(4);
        self.later_arrivals.is_empty() && last.len() == 4 && last.all(|it| *it == now)
    }

    pub fn tree(&self) -> Tree {
        Tree::new(&self.cluster_model)
    }

    pub fn preemptions(&self) -> usize {
        self.cycles.iter().map(|it| it.preempted.len()).sum()
    }

    /// The current loop. A state key lacks the flavors that a queue tried, so the loop must repeat two more times.
    fn current_loop(&mut self) -> Option<Loop> {
        let (lead, rounds) = self.cycles.split_at(self.repeats_cycle()?);
        let (lead, rounds) = (lead.to_vec(), rounds.to_vec());
        let cluster_model = self.cluster_model.clone();
        for _ in 0..2 {
            for expected in &rounds {
                self.run_cycle();
                if self.cycles.last() != Some(expected) {
                    return None;
                }
            }
        }
        Some(Loop {
            pace: self.pace,
            start: self.start.clone(),
            lead_in: lead,
            cluster_model,
            cycles: rounds,
        })
    }

    /// The loop that the run enters within this number of cycles.
    pub fn find_loop(mut self, rounds_max: usize) -> Option<Loop> {
        while self.cycles.len() < rounds_max && !self.is_quiescent() {
            self.run_cycle();
            if let Some(found) = self.current_loop() {
                return Some(found);
            }
        }
        None
    }
}

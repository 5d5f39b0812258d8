//! A world left to itself: cycle after cycle; whoever is told to go goes, and waits again.

use crate::model::live::Live;
use crate::model::told::{Decided, Gone, Places};
use crate::model::world::{Held, Pair, Workload, World};
use crate::plain::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The time of the first cycle, in seconds. What runs at the start was admitted before.
const START_S: i64 = 3000;

/// How fast victims go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All right after the cycle.
    AtOnce,
    /// One before each cycle, in the order in which they were told.
    OneARound,
}

/// What happened in one cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Who went before it.
    pub left: Vec<String>,
    pub admitted: Vec<String>,
    /// Who has told whom to go.
    pub preempted: BTreeMap<String, Vec<Gone>>,
}

/// All that decides what happens next, without the time.
#[derive(Clone, Debug, PartialEq)]
struct Standing {
    /// What each holds, the rank of its reservation, and whether it was told to go.
    running: BTreeMap<String, (BTreeMap<Pair, i64>, usize, bool)>,
    places: Vec<Places>,
    leaving: VecDeque<String>,
}

pub struct Run {
    pub live: Live,
    /// Who comes later, one before every second round.
    late: VecDeque<Workload>,
    pub start: World,
    pub arrived: Vec<Workload>,
    pub world: World,
    pub pace: Pace,
    leaving: VecDeque<String>,
    now_s: i64,
    pub rounds: Vec<Round>,
    /// Before the round of the same number.
    standings: Vec<Standing>,
}

/// A state that comes back, and always will.
#[derive(Clone, Debug)]
pub struct Loop {
    pub pace: Pace,
    /// At the very start.
    pub start: World,
    /// The rounds before the loop.
    pub lead: Vec<Round>,
    /// As it is when the loop begins.
    pub world: World,
    /// The rounds before it comes back.
    pub rounds: Vec<Round>,
}

impl Run {
    pub fn of(world: &World, late: &[Workload], pace: Pace) -> Self {
        Self {
            live: Live::of(world),
            late: late.iter().cloned().collect(),
            start: world.clone(),
            arrived: Vec::new(),
            world: world.clone(),
            pace,
            leaving: VecDeque::new(),
            now_s: START_S,
            rounds: Vec::new(),
            standings: Vec::new(),
        }
    }

    pub fn round(&mut self) {
        if self.rounds.len() % 2 == 1
            && let Some(workload) = self.late.pop_front()
        {
            self.live.add(&workload);
            self.arrived.push(workload.clone());
            self.world.workloads.insert(workload.name.clone(), workload);
        }
        self.standings.push(self.standing());
        let mut round = Round::default();
        if self.pace == Pace::OneARound
            && let Some(name) = self.leaving.pop_front()
        {
            self.release(&name, &mut round);
        }
        let cycle = self.live.next_cycle(self.now_s);
        for entry in &cycle.entries {
            let name = &entry.workload;
            match &entry.decided {
                Decided::Admit => {
                    let plan = entry.recomputed.as_ref().unwrap_or(&entry.nominated.plan);
                    self.workload(name).held = Some(Held {
                        usage: plan.usage.clone(),
                        reserved_at_s: self.now_s,
                        is_evicted: false,
                    });
                    round.admitted.push(name.clone());
                }
                Decided::Preempt(victims) => {
                    round.preempted.insert(name.clone(), victims.clone());
                }
                _ => {}
            }
        }
        self.tell(&cycle.victims(), &mut round);
        self.now_s += 1;
        self.rounds.push(round);
    }

    fn workload(&mut self, name: &str) -> &mut Workload {
        self.world.workloads.get_mut(name).expect(name)
    }

    /// Victims hear that they have to go.
    fn tell(&mut self, victims: &[String], round: &mut Round) {
        for name in victims {
            match self.pace {
                Pace::AtOnce => self.release(name, &mut Round::default()),
                Pace::OneARound if self.leaving.contains(name) => {}
                Pace::OneARound => {
                    let id = self.live.id(name);
                    self.live.state.mark_evicted(id);
                    let held = self.workload(name).held.as_mut();
                    held.expect("a victim runs").is_evicted = true;
                    self.leaving.push_back(name.clone());
                }
            }
        }
        round.admitted.sort();
    }

    fn release(&mut self, name: &str, round: &mut Round) {
        let id = self.live.id(name);
        self.live.state.release(id);
        self.workload(name).held = None;
        round.left.push(name.to_owned());
    }

    fn standing(&self) -> Standing {
        let times: BTreeSet<i64> = self
            .world
            .running()
            .map(|(_, held)| held.reserved_at_s)
            .collect();
        let running = self.world.running().map(|(workload, held)| {
            let rank = times.range(..held.reserved_at_s).count();
            let holds = (held.usage.clone(), rank, held.is_evicted);
            (workload.name.clone(), holds)
        });
        let queues = self.world.queues.keys();
        Standing {
            running: running.collect(),
            places: queues.map(|it| self.live.places(it)).collect(),
            leaving: self.leaving.clone(),
        }
    }

    /// Where the state now was before, if something was preempted since and nobody has come.
    fn returned_to(&self) -> Option<usize> {
        if !self.late.is_empty() {
            return None;
        }
        let now = self.standing();
        let from = self.standings.iter().rposition(|it| *it == now)?;
        let mut rounds = self.rounds[from..].iter();
        rounds.any(|it| !it.preempted.is_empty()).then_some(from)
    }

    pub fn has_returned(&self) -> bool {
        self.returned_to().is_some()
    }

    /// Whether so many rounds in a row have changed nothing that no flavor is left to be tried.
    pub fn is_at_rest(&self) -> bool {
        let now = self.standing();
        let mut last = self.standings.iter().rev().take(4);
        self.late.is_empty() && last.len() == 4 && last.all(|it| *it == now)
    }

    pub fn tree(&self) -> Tree {
        Tree::of(&self.world)
    }

    pub fn preemptions(&self) -> usize {
        self.rounds.iter().map(|it| it.preempted.len()).sum()
    }

    /// The loop it is in. What a queue remembers beyond its places is not seen in a state that returns, so
    /// the loop has to go round twice more.
    fn is_in_loop(&mut self) -> Option<Loop> {
        let (lead, rounds) = self.rounds.split_at(self.returned_to()?);
        let (lead, rounds) = (lead.to_vec(), rounds.to_vec());
        let world = self.world.clone();
        for _ in 0..2 {
            for expected in &rounds {
                self.round();
                if self.rounds.last() != Some(expected) {
                    return None;
                }
            }
        }
        Some(Loop {
            pace: self.pace,
            start: self.start.clone(),
            lead,
            world,
            rounds,
        })
    }

    /// The loop that it ends in, if it does so within so many rounds.
    pub fn find_loop(mut self, rounds_max: usize) -> Option<Loop> {
        while self.rounds.len() < rounds_max && !self.is_at_rest() {
            self.round();
            if let Some(found) = self.is_in_loop() {
                return Some(found);
            }
        }
        None
    }
}

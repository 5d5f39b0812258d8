//! Cycles in a row, with nothing from outside: do they come to rest?

use crate::model::live::Live;
use crate::model::told::{Cycle, Decided};
use crate::model::world::{Pair, World};
use lockkeeper_preemption::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// What decisions depend on; times only by their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    /// The running workloads, those that have run longest first.
    running: Vec<(String, BTreeMap<Pair, i64>)>,
    /// The active and the parked workloads of each queue.
    places: Vec<(Vec<String>, Vec<String>)>,
}

/// What came of a row of cycles.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing happens any more.
    AtRest,
    /// The same comes again, with these preemptions each time: preemptor, victim and reason.
    Loop {
        /// In cycles.
        period: usize,
        preemptions: BTreeSet<(String, String, Reason)>,
    },
    /// Neither was seen.
    Unknown,
}

/// What the cycles work on.
pub struct Row {
    live: Live,
    /// Who runs and with what, in the order in which they were admitted.
    running: Vec<(String, BTreeMap<Pair, i64>)>,
    now_s: i64,
    queues: Vec<String>,
}

impl Row {
    pub fn of(world: &World) -> Self {
        let mut running: Vec<_> = world.running().collect();
        running.sort_by_key(|(workload, held)| (held.reserved_at_s, &workload.uid));
        Self {
            live: Live::of(world),
            running: running
                .iter()
                .map(|(it, held)| (it.name.clone(), held.usage.clone()))
                .collect(),
            now_s: 3000,
            queues: world.queues.keys().cloned().collect(),
        }
    }

    fn standing(&self) -> Standing {
        let queues = self.queues.iter();
        Standing {
            running: self.running.clone(),
            places: queues.map(|it| self.live.places(it)).collect(),
        }
    }

    /// One cycle; its victims go at once.
    pub fn step(&mut self) -> Cycle {
        self.now_s += 1;
        let cycle = self.live.next_cycle(self.now_s);
        for entry in &cycle.entries {
            if entry.decided == Decided::Admit {
                let plan = entry.recomputed.as_ref().unwrap_or(&entry.nominated.plan);
                let it = (entry.workload.clone(), plan.usage.clone());
                self.running.push(it);
            }
        }
        for victim in cycle.victims() {
            self.running.retain(|(it, _)| *it != victim);
            let id = self.live.id(&victim);
            self.live.state.release(id);
        }
        cycle
    }

    /// Cycles until nothing happens, or until the same comes again.
    pub fn run(&mut self, cycles_max: usize) -> Outcome {
        let mut seen: Vec<Standing> = Vec::new();
        let mut preemptions: Vec<Vec<(String, String, Reason)>> = Vec::new();
        let mut at_rest = 0;
        for _ in 0..cycles_max {
            let standing = self.standing();
            if let Some(at) = seen.iter().position(|it| *it == standing) {
                let since: BTreeSet<_> = preemptions[at..].iter().flatten().cloned().collect();
                if !since.is_empty() {
                    return Outcome::Loop {
                        period: seen.len() - at,
                        preemptions: since,
                    };
                }
            }
            seen.push(standing);
            let cycle = self.step();
            let mut of_cycle = Vec::new();
            let mut is_quiet = true;
            for entry in &cycle.entries {
                is_quiet &= entry.decided != Decided::Admit;
                if let Decided::Preempt(victims) = &entry.decided {
                    let by = &entry.workload;
                    let each = victims.iter();
                    of_cycle.extend(each.map(|(it, reason)| (by.clone(), it.clone(), *reason)));
                }
            }
            is_quiet &= of_cycle.is_empty();
            preemptions.push(of_cycle);
            at_rest = if is_quiet { at_rest + 1 } else { 0 };
            // A marker of tried flavors is good for two cycles; more of them change nothing.
            if at_rest > 6 {
                return Outcome::AtRest;
            }
        }
        Outcome::Unknown
    }
}

#[test]
fn explore() {
    use crate::model::dice::{Dice, Seeded, WORLD_BYTES};
    use crate::model::generate::Kind;
    let mut seeds = Seeded(std::env::var("SEED").map_or(1, |s| s.parse().unwrap()));
    let n: usize = std::env::var("N").map_or(2000, |s| s.parse().unwrap());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for is_strict in [true, false] {
        for is_fair in [false, true] {
            for _ in 0..n {
                let tape = seeds.bytes(WORLD_BYTES);
                let kind = Kind {
                    is_strict,
                    is_fair: Some(is_fair),
                    may_overcommit: false,
                    is_plain: true,
                    is_calm: true,
                };
                let world = crate::model::generate::duel(&mut Dice::of(&tape), kind);
                let outcome = Row::of(&world).run(80);
                let key = match outcome {
                    Outcome::AtRest => "rest".to_owned(),
                    Outcome::Unknown => "unknown".to_owned(),
                    Outcome::Loop {
                        period,
                        preemptions,
                    } => {
                        let tree = crate::plain::tree::Tree::of(&world);
                        let hier = preemptions.iter().any(|(by, _, _)| {
                            let q = tree.index(&world.workloads[by].queue, true);
                            tree.height(tree.root(q)) > 1
                        });
                        let reasons: BTreeSet<Reason> = preemptions.iter().map(|it| it.2).collect();
                        let mut own = "";
                        if kind.is_strict && std::env::var("SHOW").is_ok() {
                            println!("{world:?}\n{preemptions:?}\n");
                        }
                        if world
                            .queues
                            .values()
                            .any(|q| q.groups[0].resources.len() > 1 || q.groups.len() > 1)
                        {
                            own = "2res";
                        }
                        format!("loop {own} hier={hier} period {period} {reasons:?}")
                    }
                };
                *counts
                    .entry(format!("strict={is_strict} fair={is_fair} {key}"))
                    .or_default() += 1;
            }
        }
    }
    for (k, v) in counts {
        println!("{v:6} {k}");
    }
}

//! What happens to a world, told at once to the `State` and to the plain reference.

use super::dice::Dice;
use super::generate::{self, Kind};
use super::live::Live;
use super::told::{Cycle, Gone, Nominated, Places};
use super::world::{COHORTS, Pair, QUEUES, World};
use crate::plain::scheduler::Scheduler;
use lockkeeper_preemption::{Amount, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// The time at the start, in seconds.
const START_S: i64 = 3000;

pub struct Both {
    pub live: Live,
    pub plain: Scheduler,
    kind: Kind,
    now_s: i64,
    made: usize,
    layout: usize,
    /// What has happened, for the reader of a failure.
    pub story: Vec<String>,
    /// The kinds of decisions that were compared.
    pub seen: BTreeSet<String>,
}

/// What both said, where they were asked.
#[derive(Debug)]
pub enum Answers<T> {
    Same,
    Differ { live: T, plain: T },
}

fn compare<T: PartialEq>(live: T, plain: T) -> Answers<T> {
    if live == plain {
        Answers::Same
    } else {
        Answers::Differ { live, plain }
    }
}

impl Both {
    pub fn new(tape: &[u8], kind: Kind) -> Self {
        let mut dice = Dice::of(tape);
        let world = if dice.one_in(2) {
            generate::duel(&mut dice, kind)
        } else {
            generate::crowded(&mut dice, kind)
        };
        let mut plain = Scheduler::new(world.options.clone());
        world.cohorts.values().for_each(|it| plain.set_cohort(it));
        world.queues.values().for_each(|it| plain.set_queue(it));
        world.workloads.values().for_each(|it| plain.add(it));
        Self {
            live: Live::of(&world),
            plain,
            kind,
            now_s: START_S,
            made: 200,
            layout: dice.below(5),
            story: vec![format!("{world:?}")],
            seen: BTreeSet::new(),
        }
    }

    pub fn world(&self) -> &World {
        &self.plain.world
    }

    fn say(&mut self, what: String) {
        self.story.push(what);
    }

    /// One event; a cycle also gives what differs in its decisions.
    pub fn step(&mut self, tape: &[u8]) -> Answers<Cycle> {
        let mut dice = Dice::of(tape);
        let what = dice.below(20);
        if self.kind.is_calm && matches!(what, 10 | 14 | 15 | 18 | 19) {
            return self.cycle(&mut dice);
        }
        match what {
            0..=6 => return self.cycle(&mut dice),
            7..=9 => self.arrive(&mut dice, false),
            10 => self.arrive(&mut dice, true),
            11 => self.leave(&mut dice),
            12 | 13 => self.release(&mut dice),
            14 => self.change_queue(&mut dice),
            15 => self.change_cohort(&mut dice),
            16 => self.evict(&mut dice),
            17 => self.hold(&mut dice),
            18 => self.reserve(&mut dice),
            _ => self.take_away(&mut dice),
        }
        Answers::Same
    }

    fn some(dice: &mut Dice<'_>, names: &[String]) -> Option<String> {
        (!names.is_empty()).then(|| dice.pick(names))
    }

    /// A cycle; most of the victims go at once, others take their time.
    fn cycle(&mut self, dice: &mut Dice<'_>) -> Answers<Cycle> {
        self.now_s += 1 + dice.amount(0, 2);
        self.say(format!("cycle at {}", self.now_s));
        let live = self.live.next_cycle(self.now_s);
        let plain = self.plain.next_cycle(self.now_s);
        if live != plain {
            return Answers::Differ { live, plain };
        }
        self.seen.extend(live.kinds());
        for victim in live.victims() {
            if dice.one_in(4) {
                self.say(format!("{victim} is told to go"));
                let id = self.live.id(&victim);
                self.live.state.mark_evicted(id);
                self.plain.mark_evicted(&victim);
            } else {
                self.release_now(&victim);
            }
        }
        Answers::Same
    }

    fn release_now(&mut self, name: &str) {
        self.say(format!("{name} is released"));
        let id = self.live.id(name);
        self.live.state.release(id);
        self.plain.release(name);
    }

    /// A workload is added, or an old one comes changed.
    fn arrive(&mut self, dice: &mut Dice<'_>, is_running: bool) {
        let mut workload = generate::workload(dice, self.made, self.world());
        self.made += 1;
        if is_running {
            workload.held = Some(generate::held(dice, &workload, self.world()));
        }
        let known: Vec<String> = self.world().workloads.keys().cloned().collect();
        if dice.one_in(8)
            && let Some(name) = Self::some(dice, &known)
        {
            workload.name = name;
        }
        self.say(format!("{workload:?} arrives"));
        self.live.add(&workload);
        self.plain.add(&workload);
    }

    fn leave(&mut self, dice: &mut Dice<'_>) {
        let known: Vec<String> = self.world().workloads.keys().cloned().collect();
        if let Some(name) = Self::some(dice, &known) {
            self.say(format!("{name} is gone"));
            let id = self.live.id(&name);
            self.live.state.remove(id);
            self.plain.remove(&name);
        }
    }

    fn release(&mut self, dice: &mut Dice<'_>) {
        if let Some(name) = Self::some(dice, &self.world().names(true)) {
            self.release_now(&name);
        }
    }

    fn evict(&mut self, dice: &mut Dice<'_>) {
        if let Some(name) = Self::some(dice, &self.world().names(true)) {
            self.say(format!("{name} is evicted"));
            let id = self.live.id(&name);
            self.live.state.mark_evicted(id);
            self.plain.mark_evicted(&name);
        }
    }

    fn hold(&mut self, dice: &mut Dice<'_>) {
        if let Some(name) = Self::some(dice, &self.world().names(false)) {
            let until_s = self.now_s + dice.amount(0, 6);
            self.say(format!("{name} waits until {until_s}"));
            let id = self.live.id(&name);
            self.live.state.hold(id, until_s);
            self.plain.hold(&name, until_s);
        }
    }

    fn reserve(&mut self, dice: &mut Dice<'_>) {
        let known: Vec<String> = self.world().workloads.keys().cloned().collect();
        if let Some(name) = Self::some(dice, &known) {
            let workload = self.world().workloads[&name].clone();
            let held = generate::held(dice, &workload, self.world());
            self.say(format!("{name} gets {held:?}"));
            let id = self.live.id(&name);
            let reservation = self.live.reservation(&held);
            self.live.state.reserve(id, &reservation);
            self.plain.reserve(&name, &held);
        }
    }

    fn change_queue(&mut self, dice: &mut Dice<'_>) {
        let name = dice.pick(&QUEUES);
        let mut queue = generate::queue(dice, name, self.layout, self.kind);
        let cohorts: Vec<String> = self.world().cohort_names().into_iter().collect();
        queue.cohort = Self::some(dice, &cohorts);
        self.say(format!("{queue:?}"));
        self.live.set_queue(&queue);
        self.plain.set_queue(&queue);
    }

    fn change_cohort(&mut self, dice: &mut Dice<'_>) {
        let name = dice.pick(&COHORTS);
        let mut cohort = generate::cohort(dice, name, self.layout);
        // Circles may come of it.
        cohort.parent = dice.one_in(2).then(|| dice.pick(&COHORTS).to_owned());
        self.say(format!("{cohort:?}"));
        self.live.set_cohort(&cohort);
        self.plain.set_cohort(&cohort);
    }

    fn take_away(&mut self, dice: &mut Dice<'_>) {
        let (queue, cohort) = (dice.pick(&QUEUES), dice.pick(&COHORTS));
        if dice.one_in(2) {
            self.say(format!("{queue} is gone"));
            self.live.state.remove_queue(queue);
            self.plain.remove_queue(queue);
        } else {
            self.say(format!("{cohort} is gone"));
            self.live.state.remove_cohort(cohort);
            self.plain.remove_cohort(cohort);
        }
    }

    /// Asks for a nomination of every pending workload.
    pub fn ask(&mut self) -> Answers<BTreeMap<String, Nominated>> {
        let mut names = self.world().names(false);
        names.retain(|it| {
            self.world()
                .queues
                .contains_key(&self.world().workloads[it].queue)
        });
        let plain = names.iter().map(|it| (it.clone(), self.plain.nominate(it)));
        let plain = plain.collect();
        let live = names.into_iter().map(|it| {
            let (nominated, _) = self.live.nominate(&it, Trace::off());
            (it, nominated)
        });
        compare(live.collect(), plain)
    }

    /// Asks for victims for a request that is made up.
    pub fn search(&mut self, tape: &[u8]) -> Answers<Vec<Gone>> {
        let mut dice = Dice::of(tape);
        let mut names = self.world().names(false);
        names.retain(|it| {
            self.world()
                .queues
                .contains_key(&self.world().workloads[it].queue)
        });
        let Some(name) = Self::some(&mut dice, &names) else {
            return Answers::Same;
        };
        let mut request: BTreeMap<Pair, i64> = BTreeMap::new();
        for _ in 0..=dice.below(3) {
            request.insert((dice.below(3), 1 + dice.below(2)), dice.amount(0, 8));
        }
        let needs: Vec<Pair> = request
            .keys()
            .copied()
            .filter(|_| !dice.one_in(3))
            .collect();
        let plain = self.plain.search(&name, &needs, &request);
        let needs: Vec<_> = needs.iter().map(|it| self.live.pair(*it)).collect();
        let request = request.iter();
        let request: Vec<_> = request
            .map(|(pair, amount)| (self.live.pair(*pair), Amount::new(*amount)))
            .collect();
        let id = self.live.id(&name);
        let live = self
            .live
            .state
            .search(id, &needs, &request, &mut Trace::off());
        compare(self.live.victims(&live), plain)
    }

    /// The places of all queues, and the usage of all nodes.
    pub fn places(&self) -> Answers<BTreeMap<&'static str, Places>> {
        let all = |of: &dyn Fn(&str) -> Places| QUEUES.iter().map(|it| (*it, of(it))).collect();
        compare(
            all(&|it| self.live.places(it)),
            all(&|it| self.plain.places(it)),
        )
    }

    pub fn usage(&mut self) -> Answers<BTreeMap<String, BTreeMap<Pair, i64>>> {
        compare(self.live.usage(), self.plain.usage())
    }
}

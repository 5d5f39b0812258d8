//! Applies each event to the `State` and to the plain reference.

use super::choices::Choices;
use super::cluster_model::{COHORTS, ClusterModel, Pair, QUEUES};
use super::generate::{self, GeneratorOptions};
use super::live::LiveState;
use super::named_decisions::{NamedCycle, NamedNomination, NamedVictim, QueueContents};
use crate::reference::scheduler::Scheduler;
use lockkeeper_preemption::{Amount, Trace, WhatIf};
use std::collections::{BTreeMap, BTreeSet};

/// The time at the start, in seconds.
const START_S: i64 = 3000;

pub struct Comparison {
    pub live: LiveState,
    pub reference: Scheduler,
    kind: GeneratorOptions,
    now_s: i64,
    workloads_created: usize,
    layout: usize,
    /// The events so far, for the failure message.
    pub event_log: Vec<String>,
    /// The kinds of decisions that were compared.
    pub compared_kinds: BTreeSet<String>,
}

/// The answers of both to one query.
#[derive(Debug)]
pub enum ComparedAnswers<T> {
    Same,
    Differ { live: T, reference: T },
}

fn compare<T: PartialEq>(live: T, plain: T) -> ComparedAnswers<T> {
    if live == plain {
        ComparedAnswers::Same
    } else {
        ComparedAnswers::Differ {
            live,
            reference: plain,
        }
    }
}

impl Comparison {
    pub fn new(tape: &[u8], kind: GeneratorOptions) -> Self {
        let mut dice = Choices::new(tape);
        let cluster_model = if dice.one_in(2) {
            generate::contended_cluster(&mut dice, kind)
        } else {
            generate::with_pending_workloads(&mut dice, kind)
        };
        let mut reference = Scheduler::new(cluster_model.options.clone());
        cluster_model
            .cohorts
            .values()
            .for_each(|it| reference.set_cohort(it));
        cluster_model
            .queues
            .values()
            .for_each(|it| reference.set_queue(it));
        cluster_model
            .workloads
            .values()
            .for_each(|it| reference.add(it));
        Self {
            live: LiveState::from_model(&cluster_model),
            reference,
            kind,
            now_s: START_S,
            workloads_created: 200,
            layout: dice.below(5),
            event_log: vec![format!("{cluster_model:?}")],
            compared_kinds: BTreeSet::new(),
        }
    }

    pub fn cluster_model(&self) -> &ClusterModel {
        &self.reference.cluster_model
    }

    fn log_event(&mut self, what: String) {
        self.event_log.push(what);
    }

    /// Applies one event; for a cycle also returns the difference between the two.
    pub fn step(&mut self, tape: &[u8]) -> ComparedAnswers<NamedCycle> {
        let mut dice = Choices::new(tape);
        let what = dice.below(20);
        if self.kind.has_fixed_queues && matches!(what, 10 | 14 | 15 | 18 | 19) {
            return self.cycle(&mut dice);
        }
        match what {
            0..=6 => return self.cycle(&mut dice),
            7..=9 => self.arrive(&mut dice, false),
            10 => self.arrive(&mut dice, true),
            11 => self.remove_workload(&mut dice),
            12 | 13 => self.release(&mut dice),
            14 => self.change_queue(&mut dice),
            15 => self.change_cohort(&mut dice),
            16 => self.evict(&mut dice),
            17 => self.hold(&mut dice),
            18 => self.reserve(&mut dice),
            _ => self.remove_queue_or_cohort(&mut dice),
        }
        ComparedAnswers::Same
    }

    fn pick_name(dice: &mut Choices<'_>, names: &[String]) -> Option<String> {
        (!names.is_empty()).then(|| dice.pick(names))
    }

    /// Runs a cycle; most of the victims release their quota immediately, others later.
    fn cycle(&mut self, dice: &mut Choices<'_>) -> ComparedAnswers<NamedCycle> {
        self.now_s += 1 + dice.amount(0, 2);
        self.log_event(format!("cycle at {}", self.now_s));
        let live = self.live.next_cycle(self.now_s);
        let plain = self.reference.next_cycle(self.now_s);
        if live != plain {
            return ComparedAnswers::Differ {
                live,
                reference: plain,
            };
        }
        self.compared_kinds.extend(live.kinds());
        for victim in live.victims() {
            if dice.one_in(4) {
                self.log_event(format!("{victim} is evicted"));
                let id = self.live.id(&victim);
                self.live.state.mark_evicted(id);
                self.reference.mark_evicted(&victim);
            } else {
                self.release_now(&victim);
            }
        }
        ComparedAnswers::Same
    }

    fn release_now(&mut self, name: &str) {
        self.log_event(format!("{name} is released"));
        let id = self.live.id(name);
        self.live.state.release(id);
        self.reference.release(name);
    }

    /// Adds a workload, or changes an existing one.
    fn arrive(&mut self, dice: &mut Choices<'_>, is_running: bool) {
        let mut workload = generate::workload(dice, self.workloads_created, self.cluster_model());
        self.workloads_created += 1;
        if is_running {
            workload.reservation =
                Some(generate::reservation(dice, &workload, self.cluster_model()));
        }
        let known: Vec<String> = self.cluster_model().workloads.keys().cloned().collect();
        if dice.one_in(8)
            && let Some(name) = Self::pick_name(dice, &known)
        {
            workload.name = name;
        }
        self.log_event(format!("{workload:?} arrives"));
        self.live.add(&workload);
        self.reference.add(&workload);
    }

    fn remove_workload(&mut self, dice: &mut Choices<'_>) {
        let known: Vec<String> = self.cluster_model().workloads.keys().cloned().collect();
        if let Some(name) = Self::pick_name(dice, &known) {
            self.log_event(format!("{name} is gone"));
            let id = self.live.id(&name);
            self.live.state.remove(id);
            self.reference.remove(&name);
        }
    }

    fn release(&mut self, dice: &mut Choices<'_>) {
        if let Some(name) = Self::pick_name(dice, &self.cluster_model().names(true)) {
            self.release_now(&name);
        }
    }

    fn evict(&mut self, dice: &mut Choices<'_>) {
        if let Some(name) = Self::pick_name(dice, &self.cluster_model().names(true)) {
            self.log_event(format!("{name} is evicted"));
            let id = self.live.id(&name);
            self.live.state.mark_evicted(id);
            self.reference.mark_evicted(&name);
        }
    }

    fn hold(&mut self, dice: &mut Choices<'_>) {
        if let Some(name) = Self::pick_name(dice, &self.cluster_model().names(false)) {
            let until_s = self.now_s + dice.amount(0, 6);
            self.log_event(format!("{name} is in backoff until {until_s}"));
            let id = self.live.id(&name);
            self.live.state.set_backoff(id, until_s);
            self.reference.set_backoff(&name, until_s);
        }
    }

    fn reserve(&mut self, dice: &mut Choices<'_>) {
        let known: Vec<String> = self.cluster_model().workloads.keys().cloned().collect();
        if let Some(name) = Self::pick_name(dice, &known) {
            let workload = self.cluster_model().workloads[&name].clone();
            let held = generate::reservation(dice, &workload, self.cluster_model());
            self.log_event(format!("{name} gets {held:?}"));
            let id = self.live.id(&name);
            let reservation = self.live.reservation(&held);
            self.live.state.reserve(id, &reservation);
            self.reference.reserve(&name, &held);
        }
    }

    fn change_queue(&mut self, dice: &mut Choices<'_>) {
        let name = dice.pick(&QUEUES);
        let mut queue = generate::queue(dice, name, self.layout, self.kind);
        let cohorts: Vec<String> = self.cluster_model().cohort_names().into_iter().collect();
        queue.cohort = Self::pick_name(dice, &cohorts);
        self.log_event(format!("{queue:?}"));
        self.live.set_queue(&queue);
        self.reference.set_queue(&queue);
    }

    fn change_cohort(&mut self, dice: &mut Choices<'_>) {
        let name = dice.pick(&COHORTS);
        let mut cohort = generate::cohort(dice, name, self.layout);
        // This may close a cycle of cohorts.
        cohort.parent = dice.one_in(2).then(|| dice.pick(&COHORTS).to_owned());
        self.log_event(format!("{cohort:?}"));
        self.live.set_cohort(&cohort);
        self.reference.set_cohort(&cohort);
    }

    fn remove_queue_or_cohort(&mut self, dice: &mut Choices<'_>) {
        let (queue, cohort) = (dice.pick(&QUEUES), dice.pick(&COHORTS));
        if dice.one_in(2) {
            self.log_event(format!("{queue} is gone"));
            self.live.state.remove_queue(queue);
            self.reference.remove_queue(queue);
        } else {
            self.log_event(format!("{cohort} is gone"));
            self.live.state.remove_cohort(cohort);
            self.reference.remove_cohort(cohort);
        }
    }

    /// Nominates every pending workload.
    pub fn compare_nominations(&mut self) -> ComparedAnswers<BTreeMap<String, NamedNomination>> {
        let mut names = self.cluster_model().names(false);
        names.retain(|name| {
            self.cluster_model()
                .queues
                .contains_key(&self.cluster_model().workloads[name].queue)
        });
        let plain = names
            .iter()
            .map(|it| (it.clone(), self.reference.nominate(it)));
        let plain = plain.collect();
        let live = names.into_iter().map(|name| {
            let (nominated, _) = self.live.nominate(&name, Trace::off());
            (name, nominated)
        });
        compare(live.collect(), plain)
    }

    /// Searches victims for a random request.
    pub fn compare_search(&mut self, tape: &[u8]) -> ComparedAnswers<Vec<NamedVictim>> {
        let mut dice = Choices::new(tape);
        let mut names = self.cluster_model().names(false);
        names.retain(|name| {
            self.cluster_model()
                .queues
                .contains_key(&self.cluster_model().workloads[name].queue)
        });
        let Some(name) = Self::pick_name(&mut dice, &names) else {
            return ComparedAnswers::Same;
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
        let plain = self.reference.search(&name, &needs, &request);
        let needs: Vec<_> = needs.iter().map(|it| self.live.pair(*it)).collect();
        let request = request.iter();
        let request: Vec<_> = request
            .map(|(pair, amount)| (self.live.pair(*pair), Amount::new(*amount)))
            .collect();
        let id = self.live.id(&name);
        let live =
            WhatIf::new(&mut self.live.state).search(id, &needs, &request, &mut Trace::off());
        compare(self.live.victims(&live), plain)
    }

    /// The contents of all queues, and the usage of all nodes.
    pub fn compare_queue_contents(&self) -> ComparedAnswers<BTreeMap<&'static str, QueueContents>> {
        let all =
            |of: &dyn Fn(&str) -> QueueContents| QUEUES.iter().map(|it| (*it, of(it))).collect();
        compare(
            all(&|it| self.live.queue_contents(it)),
            all(&|it| self.reference.queue_contents(it)),
        )
    }

    pub fn compare_usage(&mut self) -> ComparedAnswers<BTreeMap<String, BTreeMap<Pair, i64>>> {
        compare(self.live.usage(), self.reference.usage())
    }
}

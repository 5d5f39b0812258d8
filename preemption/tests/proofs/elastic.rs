//! Elastic queues in cycles: their gates, recomputed from a mirror of the state, hold in every decision.

use crate::model::choices::{Choices, Tapes, cases_from_env, check, tapes};
use lockkeeper_preemption::job::{ElasticDefaults, LabelValue, Preemptibility, PreemptionLabels};
use lockkeeper_preemption::{
    Amount, Decision, Entry, FlavorFungibility, FlavorId, FlavorQuotas, FlavorVerdict, Options,
    PodSet, Possibility, Preemption, QueueSpec, QueueingStrategy, Quota, ReclaimWithinCohort,
    ResourceGroup, State, Step, Victim, WithinClusterQueue, WorkloadSpec,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::cell::Cell;
use std::collections::BTreeMap;

const CASES: u32 = 1_500;
const EVENTS_MAX: usize = 30;
const QUEUES: usize = 2;

#[derive(Clone, Debug)]
struct Queue {
    elastic: Option<ElasticDefaults>,
    has_cohort: bool,
    /// For each flavor: nominal quota and borrowing limit.
    quotas: Vec<(i64, Option<i64>)>,
}

impl Queue {
    fn random(dice: &mut Choices<'_>, flavors: usize, has_cohort: bool) -> Self {
        let quotas = (0..flavors).map(|_| {
            let limit = has_cohort && dice.one_in(2);
            (dice.amount(0, 6), limit.then(|| dice.amount(0, 4)))
        });
        Self {
            quotas: quotas.collect(),
            has_cohort,
            elastic: (!dice.one_in(4)).then(|| ElasticDefaults {
                disable_default_preemptible: dice.one_in(3),
                disable_default_trigger: dice.one_in(3),
                delete_victims: false,
            }),
        }
    }

    fn max(&self, flavor: usize) -> i64 {
        match self.quotas[flavor] {
            (nominal, Some(limit)) => nominal + limit,
            (nominal, None) if !self.has_cohort => nominal,
            (_, None) => i64::MAX,
        }
    }
}

#[derive(Clone, Debug)]
struct TestWorkload {
    queue: usize,
    priority: i32,
    preemption_labels: PreemptionLabels,
    amount: i64,
    /// The flavor of an admitted workload.
    admitted_flavor: Option<usize>,
}

struct ElasticModel {
    state: State,
    flavors: Vec<FlavorId>,
    queues: Vec<Queue>,
    workloads: BTreeMap<String, TestWorkload>,
    next_number: usize,
    /// Nominations that pass the max of their queue by preemption.
    recycled: Cell<u32>,
}

impl ElasticModel {
    fn random(dice: &mut Choices<'_>) -> Self {
        let mut state = State::new(Options::default());
        let flavors = 1 + dice.below(2);
        let has_cohort = !dice.one_in(3);
        let queues = (0..QUEUES).map(|_| Queue::random(dice, flavors, has_cohort));
        let queues: Vec<Queue> = queues.collect();
        let flavors = (0..flavors).map(|at| state.flavor(&format!("f{at}")));
        let mut mirror = Self {
            flavors: flavors.collect(),
            state,
            queues,
            workloads: BTreeMap::new(),
            next_number: 0,
            recycled: Cell::new(0),
        };
        for at in 0..QUEUES {
            mirror.set_queue(at);
        }
        mirror
    }

    fn set_queue(&mut self, at: usize) {
        let cpu = self.state.resource("cpu");
        let queue = &self.queues[at];
        let flavors = self.flavors.iter().zip(&queue.quotas);
        let flavors = flavors.map(|(flavor, (nominal, limit))| {
            let quota = Quota {
                nominal: Amount::new(*nominal),
                borrowing_limit: limit.map(Amount::new),
                lending_limit: None,
            };
            FlavorQuotas {
                flavor: *flavor,
                quotas: vec![(cpu, quota)],
            }
        });
        self.state.set_queue(QueueSpec {
            name: &format!("q{at}"),
            cohort: queue.has_cohort.then_some("c"),
            groups: vec![ResourceGroup {
                resources: vec![cpu],
                flavors: flavors.collect(),
            }],
            preemption: Preemption {
                within_cluster_queue: WithinClusterQueue::LowerPriority,
                reclaim_within_cohort: ReclaimWithinCohort::LowerPriority,
                ..Preemption::default()
            },
            fungibility: FlavorFungibility::default(),
            strategy: QueueingStrategy::BestEffortFifo,
            backfill: None,
            weight: 1.0,
            elastic: queue.elastic,
            is_active: true,
        });
    }

    fn spec<'a>(&mut self, name: &'a str, queue: &'a str, work: &TestWorkload) -> WorkloadSpec<'a> {
        let cpu = self.state.resource("cpu");
        WorkloadSpec {
            name,
            uid: name,
            queue,
            priority: work.priority,
            preemption_priority: None,
            order_time: 0,
            waiting_since_s: 0,
            pod_sets: vec![PodSet {
                name: "main".into(),
                count: 1,
                count_min: None,
                requests: Box::new([(cpu, Amount::new(work.amount))]),
                ineligible: Box::new([]),
                template_hash: 0,
            }],
            is_in_scope: true,
            preemption_labels: work.preemption_labels,
        }
    }

    fn random_workload(dice: &mut Choices<'_>) -> TestWorkload {
        let labels = [LabelValue::Missing, LabelValue::Yes, LabelValue::No];
        TestWorkload {
            queue: dice.below(QUEUES),
            priority: i32::try_from(dice.below(5)).unwrap(),
            preemption_labels: PreemptionLabels {
                preemptible: dice.pick(&labels),
                can_preempt: dice.pick(&labels),
                never_preempts: dice.one_in(8),
            },
            amount: dice.amount(1, 4),
            admitted_flavor: None,
        }
    }

    fn apply_random_event(&mut self, dice: &mut Choices<'_>) -> TestCaseResult {
        let names: Vec<String> = self.workloads.keys().cloned().collect();
        match dice.below(8) {
            0..=2 => {
                let work = Self::random_workload(dice);
                let (name, queue) = (
                    format!("w{:02}", self.next_number),
                    format!("q{}", work.queue),
                );
                self.next_number += 1;
                let spec = self.spec(&name, &queue, &work);
                self.state.add_pending(spec);
                self.workloads.insert(name, work);
            }
            3 if !names.is_empty() => {
                let name = dice.pick(&names);
                let id = self.state.workload(&name).unwrap();
                self.state.remove(id);
                self.workloads.remove(&name);
            }
            4 if !names.is_empty() => {
                let name = dice.pick(&names);
                let (runs, mut work) = (
                    self.workloads[&name].admitted_flavor,
                    Self::random_workload(dice),
                );
                // The usage does not change.
                work.admitted_flavor = runs;
                if runs.is_some() {
                    work.amount = self.workloads[&name].amount;
                    work.queue = self.workloads[&name].queue;
                }
                let queue = format!("q{}", work.queue);
                let spec = self.spec(&name, &queue, &work);
                let id = self.state.workload(&name).unwrap();
                self.state.update_workload(id, spec);
                self.workloads.insert(name, work);
            }
            5 => {
                let at = dice.below(QUEUES);
                let flavors = self.flavors.len();
                self.queues[at] = Queue::random(dice, flavors, self.queues[at].has_cohort);
                self.set_queue(at);
            }
            _ => self.cycle()?,
        }
        Ok(())
    }

    fn cycle(&mut self) -> TestCaseResult {
        let cycle = self.state.next_cycle(0, true);
        for entry in &cycle.entries {
            self.check_entry(entry)?;
        }
        for entry in &cycle.entries {
            let name = self.state.workload_name(entry.workload).to_owned();
            match &entry.decision {
                Decision::Admit => {
                    let flavor = entry.assignment().usage[0].0.flavor;
                    let at = self.flavors.iter().position(|it| *it == flavor);
                    self.workloads.get_mut(&name).unwrap().admitted_flavor = at;
                }
                Decision::Preempt(victims) => {
                    for victim in victims {
                        let name = self.state.workload_name(victim.workload).to_owned();
                        self.state.release(victim.workload);
                        self.workloads.get_mut(&name).unwrap().admitted_flavor = None;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn preemptibility(&self, work: &TestWorkload) -> Option<Preemptibility> {
        Some(
            self.queues[work.queue]
                .elastic?
                .preemptibility(work.preemption_labels),
        )
    }

    /// The usage of a flavor by the workloads of a class, or the requests of those without a flavor.
    fn sum(&self, queue: usize, class: Preemptibility, runs: Option<usize>) -> i64 {
        let all = self.workloads.values();
        let counted = all.filter(|it| it.queue == queue && it.admitted_flavor == runs);
        let counted = counted.filter(|it| self.preemptibility(it) == Some(class));
        counted.map(|it| it.amount).sum()
    }

    fn reserved_for_non_preemptible(&self, queue: usize, flavor: usize) -> i64 {
        let mut rest = self.sum(queue, Preemptibility::NonPreemptible, None);
        let mut reserved = 0;
        for at in 0..=flavor {
            let min = self.queues[queue].quotas[at].0;
            let used = self.sum(queue, Preemptibility::NonPreemptible, Some(at));
            reserved = min.min(used + rest);
            rest -= rest.min((min - used).max(0));
        }
        reserved
    }

    /// The usage of a flavor by these workloads of a queue.
    fn usage_of(&self, victims: &[Victim], queue: usize, flavor: usize) -> i64 {
        let names = victims.iter().map(|it| it.workload);
        let victims = names.map(|id| &self.workloads[self.state.workload_name(id)]);
        let own = victims.filter(|it| it.queue == queue && it.admitted_flavor == Some(flavor));
        own.map(|it| it.amount).sum()
    }

    /// Whether a workload that exceeds its gate may preempt in its queue instead: a preemptible one that may trigger
    /// preemption, if max permits it once all preemptible workloads of the queue are gone.
    fn may_recycle(&self, work: &TestWorkload, flavor: usize) -> bool {
        let queue = &self.queues[work.queue];
        let reserved = self.reserved_for_non_preemptible(work.queue, flavor);
        let elastic = queue.elastic.unwrap();
        elastic.preemptibility(work.preemption_labels) == Preemptibility::Preemptible
            && elastic.may_trigger_preemption(work.preemption_labels)
            && reserved + work.amount <= queue.max(flavor)
    }

    /// The gate of a workload's queue for a flavor: the sum, the reserve, the limit.
    fn gate(&self, work: &TestWorkload, flavor: usize) -> Option<(i64, i64, i64)> {
        let queue = &self.queues[work.queue];
        let used = |class| self.sum(work.queue, class, Some(flavor));
        match self.preemptibility(work)? {
            Preemptibility::NonPreemptible => {
                let sum = used(Preemptibility::NonPreemptible) + work.amount;
                Some((sum, 0, queue.quotas[flavor].0))
            }
            Preemptibility::Preemptible => {
                let reserved = self.reserved_for_non_preemptible(work.queue, flavor);
                let sum = reserved + used(Preemptibility::Preemptible) + work.amount;
                Some((sum, reserved, queue.max(flavor)))
            }
        }
    }

    fn check_entry(&self, entry: &Entry) -> TestCaseResult {
        let name = self.state.workload_name(entry.workload);
        let work = &self.workloads[name];
        let queue = &self.queues[work.queue];
        for step in entry.trace.steps() {
            let Step::Flavor {
                flavor, verdict, ..
            } = step
            else {
                continue;
            };
            let at = self.flavors.iter().position(|it| it == flavor).unwrap();
            let gate = self.gate(work, at);
            let number = |it: Amount| it.get();
            let actual = match verdict {
                FlavorVerdict::ExceedsMin { sum, min, .. } => Some((number(*sum), 0, number(*min))),
                FlavorVerdict::ExceedsMax {
                    sum, reserved, max, ..
                } => Some((number(*sum), number(*reserved), number(*max))),
                FlavorVerdict::ExceedsMaxQuota { .. } => continue,
                _ => None,
            };
            let expected = gate.filter(|(sum, _, limit)| sum > limit);
            // Preemption in the queue itself lets it pass.
            let preempts = matches!(
                verdict,
                FlavorVerdict::Possible {
                    possibility: Possibility::Preempt,
                    ..
                }
            );
            if actual.is_none() && expected.is_some() && preempts {
                prop_assert!(self.may_recycle(work, at), "{} on flavor {}", name, at);
                self.recycled.set(self.recycled.get() + 1);
                continue;
            }
            prop_assert_eq!(actual, expected, "{} on flavor {}: {:?}", name, at, work);
        }
        let victims: &[Victim] = match &entry.decision {
            Decision::Preempt(victims) => victims,
            _ => &[],
        };
        if let Decision::Admit | Decision::Preempt(_) = &entry.decision {
            let flavor = entry.assignment().usage[0].0.flavor;
            let at = self.flavors.iter().position(|it| *it == flavor).unwrap();
            let gate = self.gate(work, at);
            // With the victims in its own queue gone, it passes the gate.
            let freed = self.usage_of(victims, work.queue, at);
            prop_assert!(
                gate.is_none_or(|(sum, _, limit)| sum - freed <= limit),
                "{}: {:?}",
                name,
                gate
            );
        }
        if let Decision::Preempt(victims) = &entry.decision {
            let may = queue
                .elastic
                .is_none_or(|it| it.may_trigger_preemption(work.preemption_labels));
            prop_assert!(may, "{} may not trigger", name);
            for victim in victims {
                let victim = &self.workloads[self.state.workload_name(victim.workload)];
                prop_assert_ne!(
                    self.preemptibility(victim),
                    Some(Preemptibility::NonPreemptible)
                );
                prop_assert!(victim.priority < work.priority);
            }
        }
        Ok(())
    }
}

#[test]
fn elastic_queues_respect_min_and_max() {
    let preemptions = Cell::new(0);
    let recycled = Cell::new(0);
    check(
        CASES,
        &tapes(EVENTS_MAX),
        |Tapes {
             cluster_model,
             events,
         }| {
            let mut mirror = ElasticModel::random(&mut Choices::new(&cluster_model));
            for event in &events {
                mirror.apply_random_event(&mut Choices::new(event))?;
            }
            mirror.cycle()?;
            let more = mirror.workloads.keys().map(|name| {
                let id = mirror.state.workload(name).unwrap();
                mirror.state.workload_view(id).preemption_count()
            });
            preemptions.set(preemptions.get() + more.sum::<u32>());
            recycled.set(recycled.get() + mirror.recycled.get());
            Ok(())
        },
    );
    println!(
        "{} preemptions, {} recycled",
        preemptions.get(),
        recycled.get()
    );
    let are_enough = preemptions.get() > 50 && recycled.get() > 10;
    assert!(cases_from_env().is_some() || are_enough);
}

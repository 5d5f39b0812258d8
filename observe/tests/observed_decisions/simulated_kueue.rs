//! A Kueue that decides with the core, on a view that lags behind, and whose decisions are written late. A mutation makes
//! it decide otherwise.

use crate::api::Api;
use crate::objects::{
    BEGIN_MS, Rng, applied, queues, replace_condition, set_condition, time, workload,
};
use lockkeeper_api::Workload;
use lockkeeper_api::workload::Admission;
use lockkeeper_cluster_state::{
    ClusterState, Completeness, PreemptionCause, admission, preemption_conditions,
};
use lockkeeper_explain::KueueObject;
use lockkeeper_observe::{ObserveSettings, Observer, Report};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{
    Compatibility, Damping, Decision, Options, PreemptionReason, has_heads,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How the simulated Kueue differs from Kueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    None,
    /// It admits with the other flavor, if the queue has two and the other has room.
    OtherFlavor,
    /// It preempts another workload of the same queue than the core.
    OtherVictim,
    /// The reason of a preemption is another one.
    OtherReason,
    /// It takes the workload with the lowest priority first.
    LowestPriorityFirst,
    /// It admits no workload of one queue.
    IdleQueue,
}

/// A write that is due later.
enum Write {
    Create(Box<Workload>),
    Admit(String, Admission, i64),
    Evict(String, String, PreemptionReason, i64),
    Release(String),
    Finish(String),
}

/// The result of a simulation.
pub struct Outcome {
    pub report: Report,
    /// How many decisions the mutation has changed. The preemptions for a workload within a second are one decision, as for
    /// the observer.
    pub mutated: u64,
}

struct Simulation {
    rng: Rng,
    now_ms: i64,
    mutation: Mutation,
    mutated: u64,
    /// The second of the last mutated decision on each workload.
    mutated_s: BTreeMap<String, i64>,
    kueue: ClusterState,
    api: Api,
    observer: Observer,
    writes: BTreeMap<(i64, u64), Write>,
    next_write: u64,
    run_ms: BTreeMap<String, i64>,
    /// When the last decision on each workload is written.
    decision_ms: BTreeMap<String, i64>,
    /// Victims whose eviction Kueue has not seen yet: it preempts none of them again (`preemptexpectations`).
    evicting: BTreeSet<String>,
    /// When the last decision of earlier cycles is written: the client of Kueue writes in order, and only decisions of one
    /// cycle may overtake each other.
    earlier_cycles_ms: i64,
}

/// How many workloads a world has.
pub const WORKLOADS: u64 = 120;

/// Runs a world without a mutation until nothing happens any more.
pub fn simulate(seed: u64, has_cohorts: bool) -> Outcome {
    simulate_mutated(seed, has_cohorts, Mutation::None, WORKLOADS)
}

/// Runs a world with a mutation and some workloads until nothing happens any more.
pub fn simulate_mutated(
    seed: u64,
    has_cohorts: bool,
    mutation: Mutation,
    workloads: u64,
) -> Outcome {
    let mut simulation = Simulation::new(seed, has_cohorts, mutation);
    simulation.create(workloads);
    let end_ms = BEGIN_MS + 600_000;
    while simulation.now_ms < end_ms {
        simulation.step();
        let is_idle = simulation.writes.is_empty() && !has_heads(simulation.kueue.state());
        if is_idle && mutation != Mutation::IdleQueue {
            break;
        }
    }
    // The last decisions settle.
    for _ in 0..100 {
        simulation.now_ms += 100;
        simulation.deliver();
        simulation.observer.poll(simulation.now_ms);
    }
    Outcome {
        report: simulation.observer.report(),
        mutated: simulation.mutated,
    }
}

impl Simulation {
    fn new(seed: u64, has_cohorts: bool, mutation: Mutation) -> Self {
        let mut rng = Rng(seed);
        let options = Options {
            compatibility: Compatibility::Kueue,
            damping: Damping::Off,
            ..Options::default()
        };
        let mut kueue =
            ClusterState::new(options, RequeueSettings::default(), Completeness::Complete);
        kueue.state_mut().treat_new_as_newest();
        let mut observer = Observer::new(ObserveSettings::default());
        for object in queues(&mut rng, has_cohorts) {
            match &object {
                KueueObject::ClusterQueue(it) => kueue.set_cluster_queue(Arc::clone(it)).unwrap(),
                KueueObject::ResourceFlavor(it) => kueue.set_resource_flavor(it),
                KueueObject::LocalQueue(it) => kueue.set_local_queue(it),
                KueueObject::Namespace(it) => {
                    kueue.set_namespace(it.metadata.name.as_deref().unwrap(), BTreeMap::new());
                }
                _ => unreachable!(),
            }
            observer.apply(BEGIN_MS - 60_000, applied(object));
        }
        observer.start(BEGIN_MS - 60_000);
        Self {
            rng,
            now_ms: BEGIN_MS,
            mutation,
            mutated: 0,
            mutated_s: BTreeMap::new(),
            kueue,
            api: Api::default(),
            observer,
            writes: BTreeMap::new(),
            next_write: 0,
            run_ms: BTreeMap::new(),
            decision_ms: BTreeMap::new(),
            evicting: BTreeSet::new(),
            earlier_cycles_ms: 0,
        }
    }

    fn create(&mut self, count: u64) {
        for at in 0..count {
            let at_ms = BEGIN_MS + self.rng.ms(count * 60);
            let name = format!("w{at}");
            let (queue, cpu) = (self.rng.below(6), 1 + self.rng.below(4));
            let priority = self.rng.below(3) * 100;
            self.run_ms.insert(name.clone(), 200 + self.rng.ms(4_000));
            let created = workload(&name, queue, cpu, priority, at_ms);
            self.write_at(at_ms, Write::Create(Box::new(created)));
        }
    }

    fn write_at(&mut self, at_ms: i64, write: Write) {
        self.next_write += 1;
        self.writes.insert((at_ms, self.next_write), write);
    }

    /// Writes a decision on a workload after all earlier ones on it.
    fn write_decision(&mut self, name: &str, delay_ms: i64, write: Write) {
        let last_ms = self.decision_ms.get(name).copied().unwrap_or_default();
        let mut at_ms = last_ms.max(self.now_ms + delay_ms);
        // A cycle waits for the writes of its preemptions.
        if !matches!(write, Write::Evict(..)) {
            at_ms = at_ms.max(self.earlier_cycles_ms);
        }
        self.decision_ms.insert(name.to_owned(), at_ms);
        self.write_at(at_ms, write);
    }

    fn step(&mut self) {
        self.now_ms += 20 + self.rng.ms(100);
        while let Some(entry) = self.writes.first_entry()
            && entry.key().0 <= self.now_ms
        {
            let ((at_ms, _), write) = entry.remove_entry();
            self.execute(at_ms, write);
        }
        self.deliver();
        if has_heads(self.kueue.state()) {
            self.run_cycle();
        }
        self.observer.poll(self.now_ms);
    }

    fn deliver(&mut self) {
        while let Some((_, version)) = self.api.due_for_kueue(self.now_ms) {
            let version = self.as_kueue_sees(&version);
            self.kueue.set_now(self.now_ms);
            let name = version.metadata.name.clone().unwrap();
            if is_true(&version, "Evicted") {
                self.evicting.remove(&name);
            }
            self.kueue.set_workload(version).unwrap();
            let id = self.kueue.state().workload(&format!("n/{name}"));
            if let Some(id) = id.filter(|_| self.evicting.contains(&name)) {
                self.kueue.state_mut().mark_evicted(id);
            }
        }
        while let Some((at_ms, version)) = self.api.due_for_observer(self.now_ms) {
            self.observer
                .apply(at_ms, applied(KueueObject::Workload(version)));
        }
    }

    fn as_kueue_sees(&self, version: &Arc<Workload>) -> Arc<Workload> {
        if self.mutation != Mutation::LowestPriorityFirst {
            return Arc::clone(version);
        }
        let mut version = Workload::clone(version);
        let status = version.status.as_mut().unwrap();
        status.priority = status.priority.map(|it| -it);
        Arc::new(version)
    }

    fn execute(&mut self, at_ms: i64, write: Write) {
        let stored = |name: &str| Workload::clone(&self.api.stored[name]);
        let written = match write {
            Write::Create(workload) => *workload,
            Write::Admit(name, admission, decided_ms) => {
                let mut workload = stored(&name);
                workload.status.as_mut().unwrap().admission = Some(admission);
                for (of, status) in [
                    ("QuotaReserved", true),
                    ("Admitted", true),
                    ("Evicted", false),
                    ("Preempted", false),
                ] {
                    set_condition(&mut workload, of, status, "QuotaReserved", decided_ms);
                }
                let run_ms = self.run_ms[&name];
                self.write_at(at_ms + run_ms, Write::Finish(name));
                workload
            }
            Write::Evict(name, preemptor, reason, decided_ms) => {
                // Kueue does not check whether the victim has finished in the meantime.
                let mut workload = stored(&name);
                let cause = PreemptionCause::Quota(reason);
                for condition in
                    preemption_conditions(cause, &preemptor, "", &time(decided_ms), None)
                {
                    replace_condition(&mut workload, condition);
                }
                let at_ms = at_ms + 50 + self.rng.ms(500);
                self.write_at(at_ms, Write::Release(name));
                workload
            }
            Write::Release(name) => {
                let mut workload = stored(&name);
                if is_true(&workload, "Finished") {
                    return;
                }
                workload.status.as_mut().unwrap().admission = None;
                for of in ["QuotaReserved", "Admitted"] {
                    set_condition(&mut workload, of, false, "Pending", at_ms);
                }
                workload
            }
            Write::Finish(name) => {
                let mut workload = stored(&name);
                if is_true(&workload, "Evicted") || !is_true(&workload, "Admitted") {
                    return;
                }
                set_condition(&mut workload, "Finished", true, "Done", at_ms);
                workload
            }
        };
        self.api.write(at_ms, written, &mut self.rng);
    }

    fn run_cycle(&mut self) {
        let last_ms = self.decision_ms.values().max();
        self.earlier_cycles_ms = last_ms.copied().unwrap_or_default();
        let cycle = self.kueue.next_cycle(self.now_ms, false);
        for entry in &cycle.entries {
            let name = name_of(&self.kueue, entry.workload);
            // Some writes are much later than others.
            let delay_ms = self.rng.ms(if self.rng.0.is_multiple_of(8) {
                1_500
            } else {
                60
            });
            match &entry.decision {
                Decision::Admit => {
                    let own = admission(self.kueue.state(), entry.workload, entry.assignment());
                    let own = own.unwrap();
                    if self.mutation == Mutation::IdleQueue && own.cluster_queue == "q0" {
                        self.mutated += 1;
                        self.kueue.hold_until(&format!("n/{name}"), i64::MAX);
                        continue;
                    }
                    let own = self.mutated_admission(&name, own);
                    let admit = Write::Admit(name.clone(), own, self.now_ms);
                    self.write_decision(&name, delay_ms, admit);
                }
                Decision::Preempt(victims) => {
                    for victim in victims {
                        let view = self.kueue.state().workload_view(victim.workload);
                        if view.reservation().is_none_or(|it| it.is_evicted) {
                            continue;
                        }
                        self.kueue.state_mut().mark_evicted(victim.workload);
                        let own = name_of(&self.kueue, victim.workload);
                        self.evicting.insert(own.clone());
                        let (own, reason) = self.mutated_victim(&name, own, victim.reason);
                        let preemptor = format!("uid-{name}");
                        let evict = Write::Evict(own.clone(), preemptor, reason, self.now_ms);
                        self.write_decision(&own, 0, evict);
                    }
                }
                _ => {}
            }
        }
    }

    fn mutated_admission(&mut self, name: &str, mut own: Admission) -> Admission {
        if self.mutation != Mutation::OtherFlavor {
            return own;
        }
        for flavor in own.pod_set_assignments[0].flavors.values_mut() {
            let other = if flavor == "a" { "b" } else { "a" };
            other.clone_into(flavor);
        }
        self.count_mutation(name);
        own
    }

    /// Counts a mutated decision on a workload.
    fn count_mutation(&mut self, name: &str) {
        let second = self.now_ms.div_euclid(1000);
        let last = self.mutated_s.insert(name.to_owned(), second);
        self.mutated += u64::from(last != Some(second));
    }

    fn mutated_victim(
        &mut self,
        preemptor: &str,
        own: String,
        reason: PreemptionReason,
    ) -> (String, PreemptionReason) {
        match self.mutation {
            Mutation::OtherReason => {
                self.count_mutation(preemptor);
                let other = match reason {
                    PreemptionReason::InClusterQueue => PreemptionReason::InCohortReclamation,
                    _ => PreemptionReason::InClusterQueue,
                };
                (own, other)
            }
            Mutation::OtherVictim => {
                let is_other = |it: &&String| {
                    let stored = &self.api.stored[*it];
                    **it != own
                        && is_true(stored, "Admitted")
                        && !is_true(stored, "Finished")
                        && !is_true(stored, "Evicted")
                };
                match self.api.stored.keys().find(is_other).cloned() {
                    Some(other) => {
                        self.count_mutation(preemptor);
                        (other, reason)
                    }
                    None => (own, reason),
                }
            }
            _ => (own, reason),
        }
    }
}

fn is_true(workload: &Workload, of: &str) -> bool {
    let mut conditions = workload.status.iter().flat_map(|it| &it.conditions);
    conditions.any(|it| it.type_ == of && it.status == "True")
}

fn name_of(cluster: &ClusterState, id: lockkeeper_preemption::WorkloadId) -> String {
    let key = cluster.state().workload_name(id);
    key.strip_prefix("n/").unwrap().to_owned()
}

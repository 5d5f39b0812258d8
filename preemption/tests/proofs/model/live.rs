//! The `State` under test, spoken to by name.

use super::told::{Cycle, Decided, Entry, FlavorPlan, Gone, Nominated, Plan, PodPlan};
use super::world::{
    COHORTS, Cohort, FLAVORS, Held, Limits, Pair, QUEUES, Queue, RESOURCES, Workload, World,
};
use lockkeeper_preemption as core;
use lockkeeper_preemption::{
    Amount, Assignment, CohortSpec, Decision, FlavorId, FlavorQuotas, FlavorResource, NodeId,
    Options, PodSet, QueueSpec, Quota, Reservation, ResourceGroup, ResourceId, State, Trace,
    Victim, WorkloadId, WorkloadSpec,
};
use std::collections::BTreeMap;

#[derive(Clone)]
pub struct Live {
    pub state: State,
    flavors: Vec<FlavorId>,
    resources: Vec<ResourceId>,
    /// The cohorts by name; the `State` gives their numbers once.
    cohorts: BTreeMap<String, NodeId>,
    /// A workload of no queue.
    probe: WorkloadId,
}

impl Live {
    pub fn new(options: Options) -> Self {
        let mut state = State::new(options);
        let mut live = Self {
            flavors: FLAVORS.iter().map(|it| state.flavor(it)).collect(),
            resources: RESOURCES.iter().map(|it| state.resource(it)).collect(),
            cohorts: BTreeMap::new(),
            probe: state.add_pending(WorkloadSpec {
                name: "probe",
                uid: "probe",
                queue: "nowhere",
                priority: 0,
                order_time_s: 0,
                pod_sets: Vec::new(),
                is_in_scope: true,
            }),
            state,
        };
        for name in COHORTS {
            live.cohort_node(name);
        }
        live
    }

    /// Everything of a world, in the order of `order`: the numbers of cohorts, queues and workloads.
    pub fn of(world: &World) -> Self {
        let mut live = Self::new(world.options.clone());
        world.cohorts.values().for_each(|it| live.set_cohort(it));
        world.queues.values().for_each(|it| live.set_queue(it));
        world.workloads.values().for_each(|it| live.add(it));
        live
    }

    fn cohort_node(&mut self, name: &str) {
        let spec = CohortSpec {
            name,
            parent: None,
            quotas: Vec::new(),
            weight: 1.0,
        };
        let id = self.state.set_cohort(spec);
        self.cohorts.insert(name.to_owned(), id);
    }

    pub fn pair(&self, pair: Pair) -> FlavorResource {
        FlavorResource {
            flavor: self.flavors[pair.0],
            resource: self.resources[pair.1],
        }
    }

    pub fn pair_back(&self, of: FlavorResource) -> Pair {
        let flavor = self.flavors.iter().position(|it| *it == of.flavor);
        let resource = self.resources.iter().position(|it| *it == of.resource);
        (flavor.unwrap(), resource.unwrap())
    }

    pub fn set_queue(&mut self, queue: &Queue) {
        let groups = queue.groups.iter().map(|group| {
            let flavors = group.flavors.iter().map(|(flavor, limits)| FlavorQuotas {
                flavor: self.flavors[*flavor],
                quotas: group
                    .resources
                    .iter()
                    .zip(limits)
                    .map(|(resource, limits)| (self.resources[*resource], quota(limits)))
                    .collect(),
            });
            let resources = group.resources.iter();
            ResourceGroup {
                resources: resources.map(|it| self.resources[*it]).collect(),
                flavors: flavors.collect(),
            }
        });
        let groups = groups.collect();
        self.state.set_queue(QueueSpec {
            name: &queue.name,
            cohort: queue.cohort.as_deref(),
            groups,
            preemption: queue.preemption,
            fungibility: queue.fungibility,
            strategy: queue.strategy,
            weight: queue.weight,
            is_active: queue.is_active,
        });
    }

    pub fn set_cohort(&mut self, cohort: &Cohort) {
        let quotas = cohort.quotas.iter();
        let quotas = quotas.map(|(pair, limits)| (self.pair(*pair), quota(limits)));
        let quotas = quotas.collect();
        let id = self.state.set_cohort(CohortSpec {
            name: &cohort.name,
            parent: cohort.parent.as_deref(),
            quotas,
            weight: cohort.weight,
        });
        assert_eq!(self.cohorts.get(&cohort.name), Some(&id));
    }

    /// Adds a workload, pending or running.
    pub fn add(&mut self, workload: &Workload) {
        let pod_sets = workload.pods.iter().map(|pods| PodSet {
            name: "main".into(),
            count: pods.count,
            count_min: pods.least,
            requests: pods
                .requests
                .iter()
                .map(|(resource, amount)| (self.resources[*resource], Amount::new(*amount)))
                .collect(),
            ineligible: pods.ineligible.iter().map(|it| self.flavors[*it]).collect(),
            shape: 0,
        });
        let pod_sets = pod_sets.collect();
        let spec = WorkloadSpec {
            name: &workload.name,
            uid: &workload.uid,
            queue: &workload.queue,
            priority: workload.priority,
            order_time_s: workload.order_time_s,
            pod_sets,
            is_in_scope: workload.is_in_scope,
        };
        match &workload.held {
            Some(held) => {
                let held = self.reservation(held);
                self.state.add_running(spec, &held);
            }
            None => {
                self.state.add_pending(spec);
            }
        }
    }

    pub fn reservation(&self, held: &Held) -> Reservation {
        let usage = held.usage.iter();
        Reservation {
            usage: usage
                .map(|(pair, amount)| (self.pair(*pair), Amount::new(*amount)))
                .collect(),
            reserved_at_s: held.reserved_at_s,
            is_evicted: held.is_evicted,
        }
    }

    pub fn id(&self, workload: &str) -> WorkloadId {
        self.state.workload(workload).expect(workload)
    }

    /// The usage of all nodes, without what is nothing. Changes of queues and cohorts take effect at
    /// a decision, so there has to be one before.
    pub fn usage(&mut self) -> BTreeMap<String, BTreeMap<Pair, i64>> {
        self.state.nominate(self.probe, Trace::off());
        let queues = QUEUES.iter();
        let queues = queues.filter_map(|name| Some(((*name).to_owned(), self.state.queue(name)?)));
        let cohorts = self.cohorts.iter().map(|(name, id)| (name.clone(), *id));
        let mut all = BTreeMap::new();
        for (name, id) in queues.chain(cohorts) {
            let usage = self.amounts(&self.state.usage(id));
            if !usage.is_empty() {
                all.insert(name, usage);
            }
        }
        all
    }

    /// The active and the parked workloads of a queue.
    pub fn places(&self, queue: &str) -> (Vec<String>, Vec<String>) {
        let Some(id) = self.state.queue(queue) else {
            return (Vec::new(), Vec::new());
        };
        let names = |ids: Vec<WorkloadId>| ids.into_iter().map(|it| self.name(it)).collect();
        (names(self.state.active(id)), names(self.state.parked(id)))
    }

    pub fn name(&self, id: WorkloadId) -> String {
        self.state.workload_name(id).to_owned()
    }

    pub fn amounts(&self, usage: &[(FlavorResource, Amount)]) -> BTreeMap<Pair, i64> {
        let usage = usage.iter().filter(|(_, amount)| amount.get() != 0);
        usage
            .map(|(of, amount)| (self.pair_back(*of), amount.get()))
            .collect()
    }

    pub fn victims(&self, victims: &[Victim]) -> Vec<Gone> {
        let victims = victims.iter();
        victims
            .map(|it| (self.name(it.workload), it.reason))
            .collect()
    }

    pub fn plan(&self, assignment: &Assignment) -> Plan {
        let pod_sets = assignment.pod_sets.iter().map(|pod_set| PodPlan {
            count: pod_set.count,
            mode: pod_set.mode,
            flavors: pod_set
                .flavors
                .iter()
                .map(|it| {
                    let (flavor, resource) = self.pair_back(FlavorResource {
                        flavor: it.flavor,
                        resource: it.resource,
                    });
                    FlavorPlan {
                        resource,
                        flavor,
                        mode: it.mode,
                        level: it.borrowing_level,
                        tried: it.tried,
                    }
                })
                .collect(),
        });
        Plan {
            mode: assignment.mode,
            level: assignment.borrowing_level,
            pod_sets: pod_sets.collect(),
            usage: self.amounts(&assignment.usage),
        }
    }

    pub fn nominate(&mut self, workload: &str, trace: Trace) -> (Nominated, Trace) {
        let id = self.id(workload);
        let got = self.state.nominate(id, trace).expect("a known workload");
        let nominated = Nominated {
            plan: self.plan(&got.assignment),
            victims: self.victims(&got.victims),
        };
        (nominated, got.trace)
    }

    pub fn next_cycle(&mut self, now_s: i64) -> Cycle {
        let cycle = self.state.next_cycle(now_s, false);
        self.told(&cycle)
    }

    pub fn told(&self, cycle: &core::Cycle) -> Cycle {
        let entry = |it: &core::Entry| Entry {
            workload: self.name(it.workload),
            nominated: Nominated {
                plan: self.plan(&it.nominated),
                victims: self.victims(&it.nominated_victims),
            },
            recomputed: it.recomputed.as_ref().map(|it| self.plan(it)),
            decided: match &it.decision {
                Decision::Admit => Decided::Admit,
                Decision::Preempt(victims) => Decided::Preempt(self.victims(victims)),
                Decision::Skip(reason) => Decided::Skip(*reason),
                Decision::DeferredFit => Decided::DeferredFit,
                Decision::NoCandidates => Decided::NoCandidates,
                Decision::NoFit => Decided::NoFit,
            },
            reserved: self.amounts(&it.reserved),
            requeued: it.requeued,
        };
        let heads = cycle.heads.iter();
        let out_of_scope = cycle.out_of_scope.iter();
        Cycle {
            heads: heads
                .map(|it| (self.name(it.workload), it.is_sticky))
                .collect(),
            out_of_scope: out_of_scope.map(|it| self.name(*it)).collect(),
            entries: cycle.entries.iter().map(entry).collect(),
        }
    }
}

fn quota(limits: &Limits) -> Quota {
    Quota {
        nominal: Amount::new(limits.nominal),
        borrowing_limit: limits.borrowing.map(Amount::new),
        lending_limit: limits.lending.map(Amount::new),
    }
}

//! The `State` under test, with access by name.

use super::cluster_model::{
    COHORTS, ClusterModel, Cohort, FLAVORS, Limits, ModelReservation, Pair, Queue, RESOURCES,
    Workload,
};
use lockkeeper_preemption::{
    Amount, CohortSpec, FlavorId, FlavorQuotas, FlavorResource, NodeId, Options, PodSet, QueueSpec,
    Quota, Reservation, ResourceGroup, ResourceId, State, WorkloadId, WorkloadSpec,
};
use std::collections::BTreeMap;

#[derive(Clone)]
pub struct LiveState {
    pub state: State,
    flavors: Vec<FlavorId>,
    resources: Vec<ResourceId>,
    /// The cohorts by name; the `State` assigns each number once.
    pub cohorts: BTreeMap<String, NodeId>,
    /// A workload without a queue.
    pub probe: WorkloadId,
}

/// One object of a cluster.
#[derive(Clone, Copy)]
enum Object<'a> {
    Cohort(&'a Cohort),
    Queue(&'a Queue),
    Workload(&'a Workload),
}

impl LiveState {
    /// A state with names only. The names of flavors and resources are interned from the given position on: their order
    /// must not matter.
    pub fn new(options: Options, first: usize) -> Self {
        let mut state = State::new(options);
        for at in first..first + FLAVORS.len() {
            state.flavor(FLAVORS[at % FLAVORS.len()]);
            state.resource(RESOURCES[at % RESOURCES.len()]);
        }
        let mut live = Self {
            flavors: FLAVORS.iter().map(|it| state.flavor(it)).collect(),
            resources: RESOURCES.iter().map(|it| state.resource(it)).collect(),
            cohorts: BTreeMap::new(),
            probe: state.add_pending(WorkloadSpec {
                name: "probe",
                uid: "probe",
                queue: "nowhere",
                priority: 0,
                preemption_priority: None,
                order_time: 0,
                waiting_since_s: 0,
                pod_sets: Vec::new(),
                is_in_scope: true,
                preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
            }),
            state,
        };
        for name in COHORTS {
            live.cohort_node(name);
        }
        live
    }

    /// A state with all objects of a cluster.
    pub fn from_model(cluster_model: &ClusterModel) -> Self {
        Self::from_model_in_order(cluster_model, &[])
    }

    /// The same, in the order that the tape determines.
    pub fn from_model_in_order(cluster_model: &ClusterModel, tape: &[u8]) -> Self {
        let first = usize::from(tape.first().copied().unwrap_or(0)) % FLAVORS.len();
        let mut live = Self::new(cluster_model.options.clone(), first);
        let cohorts = cluster_model.cohorts.values().map(Object::Cohort);
        let queues = cluster_model.queues.values().map(Object::Queue);
        let workloads = cluster_model.workloads.values().map(Object::Workload);
        let all: Vec<Object<'_>> = cohorts.chain(queues).chain(workloads).collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|at| (tape.get(*at).copied().unwrap_or(0), *at));
        for at in order {
            match all[at] {
                Object::Cohort(cohort) => live.set_cohort(cohort),
                Object::Queue(queue) => live.set_queue(queue),
                Object::Workload(workload) => live.add(workload),
            }
        }
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

    pub fn pair_of(&self, of: FlavorResource) -> Pair {
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
            backfill: None,
            weight: queue.weight,
            is_active: queue.is_active,
            elastic: None,
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
            count_min: pods.count_min,
            requests: pods
                .requests
                .iter()
                .map(|(resource, amount)| (self.resources[*resource], Amount::new(*amount)))
                .collect(),
            ineligible: pods.ineligible.iter().map(|it| self.flavors[*it]).collect(),
            template_hash: 0,
        });
        let pod_sets = pod_sets.collect();
        let spec = WorkloadSpec {
            name: &workload.name,
            uid: &workload.uid,
            queue: &workload.queue,
            priority: workload.priority,
            preemption_priority: Some(workload.preemption_priority),
            order_time: workload.order_time,
            waiting_since_s: 0,
            pod_sets,
            is_in_scope: workload.is_in_scope,
            preemption_labels: lockkeeper_preemption::job::PreemptionLabels::default(),
        };
        match &workload.reservation {
            Some(held) => {
                let held = self.reservation(held);
                self.state.add_admitted(spec, &held);
            }
            None => {
                self.state.add_pending(spec);
            }
        }
    }

    pub fn reservation(&self, held: &ModelReservation) -> Reservation {
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
}

fn quota(limits: &Limits) -> Quota {
    Quota {
        nominal: Amount::new(limits.nominal),
        borrowing_limit: limits.borrowing.map(Amount::new),
        lending_limit: limits.lending.map(Amount::new),
    }
}

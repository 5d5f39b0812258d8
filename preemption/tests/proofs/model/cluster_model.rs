//! The objects of a cluster in a plain form.

use lockkeeper_preemption::{FlavorFungibility, Options, Preemption, QueueingStrategy};
use std::collections::{BTreeMap, BTreeSet};

pub const FLAVORS: [&str; 3] = ["f0", "f1", "f2"];
pub const RESOURCES: [&str; 3] = ["pods", "cpu", "memory"];
pub const COHORTS: [&str; 5] = ["c0", "c1", "c2", "c3", "c4"];
pub const QUEUES: [&str; 6] = ["q0", "q1", "q2", "q3", "q4", "q5"];

/// A flavor and a resource, by their positions in the lists above.
pub type Pair = (usize, usize);

/// The resource that counts pods.
pub const PODS: usize = 0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub nominal: i64,
    pub borrowing: Option<i64>,
    pub lending: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cohort {
    pub name: String,
    pub parent: Option<String>,
    pub quotas: BTreeMap<Pair, Limits>,
    pub weight: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub resources: Vec<usize>,
    /// A limit for each resource, in their order.
    pub flavors: Vec<(usize, Vec<Limits>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    pub name: String,
    pub cohort: Option<String>,
    pub groups: Vec<Group>,
    pub preemption: Preemption,
    pub fungibility: FlavorFungibility,
    pub strategy: QueueingStrategy,
    pub weight: f64,
    pub is_active: bool,
}

impl Queue {
    pub fn limits(&self) -> BTreeMap<Pair, Limits> {
        let mut limits = BTreeMap::new();
        for group in &self.groups {
            for (flavor, quotas) in &group.flavors {
                for (resource, quota) in group.resources.iter().zip(quotas) {
                    limits.insert((*flavor, *resource), *quota);
                }
            }
        }
        limits
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pods {
    pub count: i64,
    pub count_min: Option<i64>,
    /// The sum of the requests of all its pods.
    pub requests: Vec<(usize, i64)>,
    pub ineligible: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelReservation {
    pub usage: BTreeMap<Pair, i64>,
    pub reserved_at_s: i64,
    pub is_evicted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub name: String,
    pub uid: String,
    pub queue: String,
    /// The scheduling priority.
    pub priority: i32,
    /// As given; one below the priority counts as the priority.
    pub preemption_priority: i32,
    pub order_time: i64,
    pub pods: Vec<Pods>,
    pub is_in_scope: bool,
    /// Its usage, if it is admitted.
    pub reservation: Option<ModelReservation>,
}

impl Workload {
    /// The priority as a candidate for preemption.
    pub fn candidate_priority(&self) -> i32 {
        self.preemption_priority.max(self.priority)
    }
}

/// All objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterModel {
    pub options: Options,
    pub cohorts: BTreeMap<String, Cohort>,
    pub queues: BTreeMap<String, Queue>,
    pub workloads: BTreeMap<String, Workload>,
}

impl ClusterModel {
    pub fn admitted(&self) -> impl Iterator<Item = (&Workload, &ModelReservation)> {
        let all = self.workloads.values();
        all.filter_map(|it| Some((it, it.reservation.as_ref()?)))
    }

    pub fn names(&self, is_running: bool) -> Vec<String> {
        let all = self.workloads.values();
        all.filter(|it| it.reservation.is_some() == is_running)
            .map(|it| it.name.clone())
            .collect()
    }

    /// All cohorts that are declared or named by something.
    pub fn cohort_names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.cohorts.keys().cloned().collect();
        names.extend(self.cohorts.values().filter_map(|it| it.parent.clone()));
        names.extend(self.queues.values().filter_map(|it| it.cohort.clone()));
        names
    }
}

//! The objects of a cluster, ready for answers.

use crate::error::UnreadableObject;
use crate::project::Project;
use lockkeeper_api::{Cohort, Workload};
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_cluster_state::placement_state::PlacementState;
use lockkeeper_preemption::Algorithm;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Kind in lower case, namespace and name of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobKey {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobFacts {
    /// The LocalQueue that its label names.
    pub(crate) queue: Option<String>,
}

/// The objects of a cluster. Create it with a [`WorldBuilder`](crate::WorldBuilder).
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) cluster: ClusterState,
    /// By `namespace/name`.
    pub(crate) workloads: BTreeMap<String, Arc<Workload>>,
    pub(crate) jobs: BTreeMap<JobKey, JobFacts>,
    /// The nodes and their pods; `None` if the input has no node.
    pub(crate) nodes: Option<PlacementState>,
    /// The objects, as the queues of simulations need them.
    pub(crate) cohorts: Vec<Cohort>,
    pub(crate) algorithm: Algorithm,
    pub(crate) project: Project,
    pub(crate) assumptions: Vec<String>,
    pub(crate) missing: Vec<String>,
    pub(crate) unreadable: Vec<UnreadableObject>,
    /// Whether queues or workloads are missing that may exist.
    pub(crate) is_partial: bool,
    /// Whether the input has fields that decisions here do not consider.
    pub(crate) has_unknown_fields: bool,
}

impl World {
    /// The state of the queues.
    #[must_use]
    pub const fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    /// A workload by its key, `namespace/name`.
    #[must_use]
    pub fn workload(&self, key: &str) -> Option<&Arc<Workload>> {
        self.workloads.get(key)
    }

    /// The keys of all workloads, sorted.
    pub fn workload_keys(&self) -> impl Iterator<Item = &str> {
        self.workloads.keys().map(String::as_str)
    }

    /// The Cohort objects. A cohort need not have one.
    #[must_use]
    pub fn cohorts(&self) -> &[Cohort] {
        &self.cohorts
    }

    /// The algorithm that selects victims.
    #[must_use]
    pub const fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// The project of the queues.
    #[must_use]
    pub const fn project(&self) -> Project {
        self.project
    }

    /// Whether queues or workloads are missing that may exist.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// What answers assume, since the input does not say it.
    #[must_use]
    pub fn assumptions(&self) -> &[String] {
        &self.assumptions
    }

    /// The objects that others refer to and that the input does not have.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The objects that are not considered.
    #[must_use]
    pub fn unreadable(&self) -> &[UnreadableObject] {
        &self.unreadable
    }
}

//! The objects of a cluster that a plan is made from.

use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use serde_json::Value;

/// A job as JSON.
#[derive(Clone, Debug)]
pub(crate) struct ListedJob {
    /// The index of its kind.
    pub(crate) kind: usize,
    pub(crate) object: Value,
}

/// The objects of a cluster. Objects that cannot be decoded are left out, as by the controller.
#[derive(Debug, Default)]
pub(crate) struct ClusterObjects {
    /// The selected jobs.
    pub(crate) jobs: Vec<ListedJob>,
    pub(crate) cluster_queues: Vec<ClusterQueue>,
    pub(crate) cohorts: Vec<Cohort>,
    pub(crate) flavors: Vec<ResourceFlavor>,
    pub(crate) local_queues: Vec<LocalQueue>,
    pub(crate) priority_classes: Vec<PriorityClass>,
    pub(crate) limit_ranges: Vec<LimitRange>,
    pub(crate) runtime_classes: Vec<RuntimeClass>,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) workloads: Vec<Workload>,
}

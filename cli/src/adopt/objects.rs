//! The objects of a cluster that a plan is made from.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use serde_json::Value;

/// The objects of a cluster. Objects that cannot be decoded are left out, as by the controller.
#[derive(Debug, Default)]
pub(super) struct ClusterObjects {
    /// The selected Jobs, as JSON.
    pub(super) jobs: Vec<Value>,
    pub(super) cluster_queues: Vec<ClusterQueue>,
    pub(super) cohorts: Vec<Cohort>,
    pub(super) flavors: Vec<ResourceFlavor>,
    pub(super) local_queues: Vec<LocalQueue>,
    pub(super) priority_classes: Vec<PriorityClass>,
    pub(super) namespaces: Vec<Namespace>,
    pub(super) workloads: Vec<Workload>,
}

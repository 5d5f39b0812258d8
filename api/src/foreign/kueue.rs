//! Kueue's kinds (`kueue.x-k8s.io/v1beta2`), with the fields that rules read.

use crate::quantity::Quantity;
use crate::quota::{FairSharing, ResourceGroup};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

pub mod configuration;
mod convert;
mod resource_groups;
mod upgrade;

pub use convert::{DroppedField, KueueConversion, RenamedField, convert};
pub use upgrade::{FORMER_VERSION, MovedField, upgrade};

/// The API group.
pub const GROUP: &str = "kueue.x-k8s.io";

/// The version that rules read, which is the storage version.
pub const VERSION: &str = "v1beta2";

/// A queue with quota.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterQueue {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its specification.
    pub spec: ClusterQueueSpec,
}

foreign_kind!(
    ClusterQueue,
    ClusterResourceScope,
    GROUP,
    VERSION,
    "ClusterQueue",
    "clusterqueues"
);

/// The specification of a ClusterQueue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterQueueSpec {
    /// The quota.
    #[serde(deserialize_with = "resource_groups::read")]
    pub resource_groups: Vec<ResourceGroup>,
    /// The cohort of the queue.
    pub cohort_name: String,
    /// `StrictFIFO` or `BestEffortFIFO`.
    pub queueing_strategy: String,
    /// The namespaces whose workloads may use the queue.
    pub namespace_selector: Option<LabelSelector>,
    /// The flavor fungibility.
    pub flavor_fungibility: Option<FlavorFungibility>,
    /// The preemption policy.
    pub preemption: Option<Preemption>,
    /// The fair-sharing weight.
    pub fair_sharing: Option<FairSharing>,
    /// The admission checks.
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
    /// Admission to several flavors at once.
    pub concurrent_admission_policy: Option<ConcurrentAdmissionPolicy>,
}

/// The flavor fungibility.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FlavorFungibility {
    /// The behaviour when the flavor requires borrowing.
    pub when_can_borrow: String,
    /// The behaviour when the flavor requires preemption.
    pub when_can_preempt: String,
    /// The preference between borrowing and preemption.
    pub preference: Option<String>,
}

/// The preemption policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preemption {
    /// In the queue itself.
    pub within_cluster_queue: String,
    /// In the cohort, to reclaim nominal quota.
    pub reclaim_within_cohort: String,
    /// In the cohort, while borrowing.
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
}

/// Preemption while borrowing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// `Never` or `LowerPriority`.
    pub policy: String,
    /// The highest priority of victims.
    pub max_priority_threshold: Option<i32>,
}

/// The admission checks of a ClusterQueue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionChecksStrategy {
    /// The checks.
    pub admission_checks: Vec<AdmissionCheckRule>,
}

/// One admission check.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionCheckRule {
    /// Its name.
    pub name: String,
    /// The flavors that the check applies to; empty: all.
    pub on_flavors: Vec<String>,
}

/// Admission to several flavors at once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConcurrentAdmissionPolicy {
    /// The migration of workloads admitted to a less preferred flavor.
    pub migration: Migration,
}

/// The migration of workloads admitted to a less preferred flavor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Migration {
    /// `TryPreferredFlavors` or `RetainFirstAdmission`.
    pub mode: String,
    /// The limits of the migration.
    pub constraints: Option<MigrationConstraints>,
}

/// The limits of the migration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MigrationConstraints {
    /// The last acceptable flavor.
    pub last_acceptable_flavor_name: Option<String>,
}

/// A node in the tree of cohorts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Cohort {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its specification.
    pub spec: CohortSpec,
}

foreign_kind!(
    Cohort,
    ClusterResourceScope,
    GROUP,
    VERSION,
    "Cohort",
    "cohorts"
);

/// The specification of a Cohort.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CohortSpec {
    /// The parent cohort.
    pub parent_name: String,
    /// The quota.
    #[serde(deserialize_with = "resource_groups::read")]
    pub resource_groups: Vec<ResourceGroup>,
    /// The fair-sharing weight.
    pub fair_sharing: Option<FairSharing>,
}

/// Nodes of one kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceFlavor {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its specification.
    pub spec: ResourceFlavorSpec,
}

foreign_kind!(
    ResourceFlavor,
    ClusterResourceScope,
    GROUP,
    VERSION,
    "ResourceFlavor",
    "resourceflavors"
);

/// The specification of a `ResourceFlavor`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceFlavorSpec {
    /// The labels of its nodes.
    pub node_labels: BTreeMap<String, String>,
    /// The taints of its nodes.
    pub node_taints: Vec<Taint>,
    /// Additional tolerations of the pods.
    pub tolerations: Vec<Toleration>,
    /// The topology of its nodes.
    pub topology_name: Option<String>,
}

/// A queue of one namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LocalQueue {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its specification.
    pub spec: LocalQueueSpec,
}

/// The specification of a `LocalQueue`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalQueueSpec {
    /// The ClusterQueue that the queue refers to.
    pub cluster_queue: String,
}

foreign_kind!(
    LocalQueue,
    NamespaceResourceScope,
    GROUP,
    VERSION,
    "LocalQueue",
    "localqueues"
);

/// A priority for workloads alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadPriorityClass {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// The value of the priority.
    pub value: i32,
}

foreign_kind!(
    WorkloadPriorityClass,
    ClusterResourceScope,
    GROUP,
    VERSION,
    "WorkloadPriorityClass",
    "workloadpriorityclasses"
);

/// Pods that are admitted together.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its specification.
    #[serde(deserialize_with = "absent_if_null")]
    pub spec: WorkloadSpec,
    /// The observed state.
    #[serde(deserialize_with = "absent_if_null")]
    pub status: WorkloadStatus,
}

foreign_kind!(
    Workload,
    NamespaceResourceScope,
    GROUP,
    VERSION,
    "Workload",
    "workloads"
);

/// The specification of a Workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// The kinds of pods.
    #[serde(deserialize_with = "absent_if_null")]
    pub pod_sets: Vec<PodSet>,
}

/// Pods of one template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSet {
    /// Its name.
    pub name: String,
    /// The number of pods; 1 by default.
    pub count: Option<i32>,
    /// The minimum number of pods for partial admission.
    pub min_count: Option<i32>,
    /// The pods.
    #[serde(deserialize_with = "absent_if_null")]
    pub template: PodTemplateSpec,
    /// The topology request.
    pub topology_request: Option<TopologyRequest>,
}

/// A topology request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologyRequest {
    /// The domain of each slice.
    pub pod_set_slice_required_topology: Option<String>,
    /// The pods of a slice.
    pub pod_set_slice_size: Option<i32>,
    /// Slices within slices.
    #[serde(deserialize_with = "absent_if_null")]
    pub podset_slice_required_topology_constraints: Vec<SliceConstraint>,
    /// The remaining fields.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// A slice within a slice.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SliceConstraint {
    /// Its pods.
    pub size: i32,
    /// Its domain.
    pub topology: String,
}

/// The observed state of a Workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// The reserved quota.
    pub admission: Option<Admission>,
    /// Its conditions.
    #[serde(deserialize_with = "absent_if_null")]
    pub conditions: Vec<Condition>,
    /// The reclaimable pods.
    #[serde(deserialize_with = "absent_if_null")]
    pub reclaimable_pods: Vec<ReclaimablePod>,
    /// The states of the admission checks.
    #[serde(deserialize_with = "absent_if_null")]
    pub admission_checks: Vec<AdmissionCheckState>,
    /// The cluster that runs the workload.
    pub cluster_name: Option<String>,
    /// The nominated clusters.
    #[serde(deserialize_with = "absent_if_null")]
    pub nominated_cluster_names: Vec<String>,
}

/// A condition; all fields are optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// The type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation of the object that the condition was set for.
    pub observed_generation: i64,
    /// The last transition time.
    pub last_transition_time: Option<Time>,
    /// The reason, in one word.
    pub reason: String,
    /// The message for users.
    pub message: String,
}

/// The reserved quota of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Admission {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// The assignment of each pod set.
    #[serde(deserialize_with = "absent_if_null")]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// The quota assigned to a pod set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// The pod set.
    pub name: String,
    /// The flavor of each resource.
    #[serde(deserialize_with = "absent_if_null")]
    pub flavors: BTreeMap<String, String>,
    /// The usage of each resource.
    #[serde(deserialize_with = "absent_if_null")]
    pub resource_usage: BTreeMap<String, Quantity>,
    /// The number of pods; all by default.
    pub count: Option<i32>,
    /// The topology assignment.
    pub topology_assignment: Option<Value>,
    /// Whether the topology assignment is still pending.
    pub delayed_topology_request: Option<String>,
}

/// Reclaimable pods of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReclaimablePod {
    /// The pod set.
    pub name: String,
    /// The number of pods.
    pub count: i32,
}

/// The state of an admission check.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionCheckState {
    /// Its name.
    pub name: String,
    /// `Pending`, `Ready`, `Retry` or `Rejected`.
    pub state: String,
    /// The changes to the pods.
    #[serde(deserialize_with = "absent_if_null")]
    pub pod_set_updates: Vec<PodSetUpdate>,
}

/// The changes of an admission check to the pods of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetUpdate {
    /// The pod set.
    pub name: String,
    /// Labels that are added.
    #[serde(deserialize_with = "absent_if_null")]
    pub labels: BTreeMap<String, String>,
    /// Annotations that are added.
    #[serde(deserialize_with = "absent_if_null")]
    pub annotations: BTreeMap<String, String>,
    /// The node selector that is added.
    #[serde(deserialize_with = "absent_if_null")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations that are added.
    #[serde(deserialize_with = "absent_if_null")]
    pub tolerations: Vec<Toleration>,
}

/// Decodes null as the empty value, as Go does: Go encodes an empty list without `omitempty` as null.
fn absent_if_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

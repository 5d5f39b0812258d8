//! Kueue's kinds (`kueue.x-k8s.io/v1beta2`), as far as rules read them.

use crate::quantity::Quantity;
use crate::quota::{FairSharing, ResourceGroup};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

mod convert;
mod resource_groups;
mod upgrade;

pub use convert::{DroppedField, KueueConversion, RenamedField, convert};
pub use upgrade::{FORMER_VERSION, MovedField, upgrade};

/// The API group.
pub const GROUP: &str = "kueue.x-k8s.io";

/// The version that rules read; it is the one that is stored.
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
    /// The cohort that it belongs to.
    pub cohort_name: String,
    /// `StrictFIFO` or `BestEffortFIFO`.
    pub queueing_strategy: String,
    /// The namespaces whose workloads it takes.
    pub namespace_selector: Option<LabelSelector>,
    /// Which flavor is taken.
    pub flavor_fungibility: Option<FlavorFungibility>,
    /// Who is preempted.
    pub preemption: Option<Preemption>,
    /// Its weight.
    pub fair_sharing: Option<FairSharing>,
    /// The admission checks.
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
    /// Admission to several flavors at once.
    pub concurrent_admission_policy: Option<ConcurrentAdmissionPolicy>,
}

/// Which flavor is taken.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FlavorFungibility {
    /// What to do where borrowing would be needed.
    pub when_can_borrow: String,
    /// What to do where preempting would be needed.
    pub when_can_preempt: String,
    /// Which of both is the lesser evil.
    pub preference: Option<String>,
}

/// Who is preempted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Preemption {
    /// In the queue itself.
    pub within_cluster_queue: String,
    /// In the cohort, to get the nominal quota back.
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
    /// The highest priority of those who are preempted.
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
    /// The flavors that it is for; all if there are none.
    pub on_flavors: Vec<String>,
}

/// Admission to several flavors at once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConcurrentAdmissionPolicy {
    /// What becomes of those admitted to a lesser flavor.
    pub migration: Migration,
}

/// What becomes of those admitted to a lesser flavor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Migration {
    /// `TryPreferredFlavors` or `RetainFirstAdmission`.
    pub mode: String,
    /// How far they may go.
    pub constraints: Option<MigrationConstraints>,
}

/// How far they may go.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MigrationConstraints {
    /// The last flavor that will do.
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
    /// The cohort above.
    pub parent_name: String,
    /// The quota.
    #[serde(deserialize_with = "resource_groups::read")]
    pub resource_groups: Vec<ResourceGroup>,
    /// Its weight.
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
    /// What its pods tolerate besides.
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
    /// The ClusterQueue that it leads to.
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
    /// The priority that it stands for.
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
    /// Where it stands.
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
    /// How many pods; one if it does not say.
    pub count: Option<i32>,
    /// How many are enough.
    pub min_count: Option<i32>,
    /// The pods.
    #[serde(deserialize_with = "absent_if_null")]
    pub template: PodTemplateSpec,
    /// Where the pods are to be, as it was given.
    pub topology_request: Option<TopologyRequest>,
}

/// Where pods are to be.
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
    /// All else that was asked for.
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

/// Where a Workload stands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// The quota that it holds.
    pub admission: Option<Admission>,
    /// Its conditions.
    #[serde(deserialize_with = "absent_if_null")]
    pub conditions: Vec<Condition>,
    /// The pods that need no quota any more.
    #[serde(deserialize_with = "absent_if_null")]
    pub reclaimable_pods: Vec<ReclaimablePod>,
    /// What its admission checks say.
    #[serde(deserialize_with = "absent_if_null")]
    pub admission_checks: Vec<AdmissionCheckState>,
    /// The cluster that it runs in.
    pub cluster_name: Option<String>,
    /// The clusters that it may run in.
    #[serde(deserialize_with = "absent_if_null")]
    pub nominated_cluster_names: Vec<String>,
}

/// A condition, whatever it lacks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation of the object that it was found of.
    pub observed_generation: i64,
    /// Since when it is so.
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// The quota that a Workload holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Admission {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// What each pod set has.
    #[serde(deserialize_with = "absent_if_null")]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// What a pod set has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// The pod set.
    pub name: String,
    /// The flavor of each resource.
    #[serde(deserialize_with = "absent_if_null")]
    pub flavors: BTreeMap<String, String>,
    /// How much of each resource.
    #[serde(deserialize_with = "absent_if_null")]
    pub resource_usage: BTreeMap<String, Quantity>,
    /// How many pods; all if it does not say.
    pub count: Option<i32>,
    /// The nodes, as they were given.
    pub topology_assignment: Option<Value>,
    /// Whether nodes are still to be found.
    pub delayed_topology_request: Option<String>,
}

/// Pods that need no quota any more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReclaimablePod {
    /// The pod set.
    pub name: String,
    /// How many.
    pub count: i32,
}

/// What an admission check says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AdmissionCheckState {
    /// Its name.
    pub name: String,
    /// `Pending`, `Ready`, `Retry` or `Rejected`.
    pub state: String,
    /// What it changes of the pods.
    #[serde(deserialize_with = "absent_if_null")]
    pub pod_set_updates: Vec<PodSetUpdate>,
}

/// What an admission check changes of the pods of a pod set.
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
    /// The nodes that they may run on.
    #[serde(deserialize_with = "absent_if_null")]
    pub node_selector: BTreeMap<String, String>,
    /// What they tolerate besides.
    #[serde(deserialize_with = "absent_if_null")]
    pub tolerations: Vec<Toleration>,
}

/// Takes null for nothing, as Go does: it is how it writes an empty list that may not be left out.
fn absent_if_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

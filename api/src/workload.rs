//! Workload: pods that are admitted, preempted and requeued together.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::quantity::Quantity;
use crate::schema;

/// The most pod sets of a workload.
pub const POD_SETS_MAX: usize = 18;

/// The default name of a pod set.
pub const POD_SET_NAME_DEFAULT: &str = "main";

/// The pods of one job, admitted together against quota.
#[allow(
    clippy::duplicated_attributes,
    reason = "printer columns of one type are not the same attribute"
)]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "lockkeeper.dev",
    version = "v1alpha1",
    kind = "Workload",
    plural = "workloads",
    namespaced,
    shortname = "lkwl",
    category = "lockkeeper",
    selectable = ".spec.queueName",
    selectable = ".spec.priorityClassName",
    status = "WorkloadStatus",
    derive = "PartialEq",
    doc = "Pods that are admitted, preempted and requeued together.",
    printcolumn(name = "Queue", type_ = "string", json_path = ".spec.queueName"),
    printcolumn(
        name = "Reserved In",
        type_ = "string",
        json_path = ".status.admission.clusterQueue"
    ),
    printcolumn(
        name = "Admitted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Admitted')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='QuotaReserved')].reason"
    ),
    printcolumn(
        name = "Finished",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Finished')].status"
    ),
    printcolumn(name = "Priority", type_ = "integer", json_path = ".status.priority"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// The kinds of pods that the workload consists of. Immutable while quota is reserved.
    #[schemars(length(min = 1, max = POD_SETS_MAX))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_sets: Vec<PodSet>,

    /// Groups of pods that are placed together and disrupted in one way. A pod set without a group
    /// is a group of its own whose pods are disrupted one by one. Immutable while quota is reserved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_groups: Vec<PodGroup>,

    /// The LocalQueue of the workload, in the same namespace. Immutable while quota is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::subdomain")]
    pub queue_name: Option<String>,

    /// The PriorityClass that gives the scheduling priority: the priority of this workload as a preemptor and in the
    /// queue. Defaults to the class marked globalDefault; without such a class the priority is 0. system-node-critical
    /// and system-cluster-critical can be used. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::subdomain")]
    pub priority_class_name: Option<String>,

    /// The PriorityClass that gives the preemption priority: the priority of this workload as a victim. Defaults to
    /// priorityClassName. Its value must be at least the value of priorityClassName. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::subdomain")]
    pub preemption_priority_class_name: Option<String>,

    /// Whether the workload may be admitted; true by default. Setting it to false evicts an
    /// admitted workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub active: Option<bool>,

    /// How long the workload may run once admitted, in seconds. After that it is deactivated. Immutable while the
    /// workload is admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_execution_time_seconds: Option<i32>,
}

/// Pods of one template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSet {
    /// The name of the pod set; main by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_set_name")]
    pub name: Option<String>,

    /// The number of pods; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 1))]
    pub count: Option<i32>,

    /// The minimum number of pods for partial admission, used when not all pods fit; at most count. Unset: all pods are
    /// needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_count: Option<i32>,

    /// The pods, as in the spec.template of a Job. It has no schema here: the webhook decodes it and rejects invalid
    /// fields.
    // Shared: a controller that caches many workloads stores equal templates once.
    #[schemars(schema_with = "schema::pod_template")]
    pub template: Arc<PodTemplateSpec>,

    /// The pod group that these pods belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label")]
    pub pod_group_name: Option<String>,
}

impl PodSet {
    /// The name with the default applied.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(POD_SET_NAME_DEFAULT)
    }
}

fn pod_set_name(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = schema::label(generator);
    schema.insert("default".into(), POD_SET_NAME_DEFAULT.into());
    schema
}

/// A group of pods that are placed together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroup {
    /// The name that pod sets refer to.
    #[schemars(schema_with = "schema::label")]
    pub name: String,

    /// The number of replicas of the group; 1 by default. Each replica has count / replicas pods of every pod set that
    /// names the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1))]
    pub replicas: Option<i32>,

    /// The number of pods of a replica that must run together (the gang); all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_count: Option<i32>,

    /// The unit of disruption; Pod by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Pod"))]
    pub disruption_mode: Option<DisruptionMode>,
}

/// The unit of disruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum DisruptionMode {
    /// Each pod by itself.
    #[default]
    Pod,
    /// All pods of one replica of the group.
    PodGroup,
}

/// The observed state of a workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// The scheduling priority, from priorityClassName.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,

    /// The preemption priority, from preemptionPriorityClassName.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_priority: Option<i32>,

    /// The quota that the workload holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,

    /// The state of requeuing after the pods were not ready in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Boxed, because few workloads have one.
    pub requeue_state: Option<Box<RequeueState>>,

    /// The pods of each pod set that have succeeded and do not run again: their quota is free while the others run.
    /// Only while the workload is admitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub reclaimable_pods: Vec<ReclaimablePod>,

    /// The nodes that the pods were placed on when the workload was admitted; before, while its victims stop, those
    /// that it waits for. Only in queues that place workloads on nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nominated_placement: Option<NominatedPlacement>,

    /// Statistics of the scheduling of this workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Boxed, because few workloads have one.
    pub scheduling_stats: Option<Box<SchedulingStats>>,

    /// QuotaReserved, Admitted, PodsReady, Evicted, Preempted, Requeued, DeactivationTarget, Finished,
    /// PodsNotMatchingPriority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

impl WorkloadStatus {
    /// The number of pods of an assignment whose quota is free again; at most all.
    #[must_use]
    pub fn reclaimed(&self, assignment: &PodSetAssignment) -> i32 {
        let mut all = self.reclaimable_pods.iter();
        let found = all.find(|it| it.name == assignment.name);
        found.map_or(0, |it| it.count.clamp(0, assignment.count.max(0)))
    }
}

/// The quota that a workload holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Admission {
    /// The ClusterQueue that admitted the workload.
    #[schemars(schema_with = "schema::subdomain")]
    pub cluster_queue: String,

    /// The assignment of each pod set.
    #[serde(default)]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// The quota assigned to a pod set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// The name of the pod set.
    #[schemars(schema_with = "schema::label")]
    pub name: String,

    /// The flavor of each resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::flavor_names")]
    pub flavors: BTreeMap<String, String>,

    /// The amount of each resource that all pods of the pod set use together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub resource_usage: BTreeMap<String, Quantity>,

    /// The number of pods admitted.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// The state of requeueing after a pods-ready timeout.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct RequeueState {
    /// The number of times the workload was requeued since it was last activated.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub count: i32,

    /// The time from which the workload may be admitted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_at: Option<Time>,

    /// The time of the first pods-ready timeout since the pods were last ready. Set only if a time limit is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_evicted_at: Option<Time>,
}

/// Pods of a pod set that need no quota any more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimablePod {
    /// The name of the pod set.
    #[schemars(schema_with = "schema::label")]
    pub name: String,

    /// The number of pods.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// Statistics of the scheduling of a workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingStats {
    /// The number of evictions, by reason and underlying cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["reason", "underlyingCause"]))]
    pub evictions: Vec<EvictionStats>,
}

/// The number of evictions for one reason.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionStats {
    /// The reason of the condition Evicted, without its underlying cause.
    #[schemars(length(max = 316))]
    pub reason: String,

    /// Why the controller deactivated the workload; else empty.
    #[schemars(length(max = 316))]
    pub underlying_cause: String,

    /// The number of evictions.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// Nodes nominated for a workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NominatedPlacement {
    /// The nodes of each pod set.
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_sets: Vec<PodSetPlacement>,
}

/// The nodes of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetPlacement {
    /// The name of the pod set.
    #[schemars(schema_with = "schema::label")]
    pub name: String,

    /// The number of pods on each node, by the node's name.
    #[schemars(extend("maxProperties" = 5000))]
    pub nodes: BTreeMap<String, i32>,
}

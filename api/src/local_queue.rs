//! LocalQueue: the queue of a namespace, which refers to a ClusterQueue.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster_queue::StopPolicy;
use crate::schema;

/// The queue to which the workloads of a namespace are submitted.
#[allow(
    clippy::duplicated_attributes,
    reason = "printer columns of one type are not the same attribute"
)]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "lockkeeper.dev",
    version = "v1alpha1",
    kind = "LocalQueue",
    plural = "localqueues",
    namespaced,
    shortname = "lkq",
    category = "lockkeeper",
    selectable = ".spec.clusterQueue",
    status = "LocalQueueStatus",
    derive = "PartialEq",
    doc = "The door of a namespace to a ClusterQueue.",
    printcolumn(
        name = "ClusterQueue",
        type_ = "string",
        json_path = ".spec.clusterQueue"
    ),
    printcolumn(
        name = "Active",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Active')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Active')].reason"
    ),
    printcolumn(
        name = "Pending",
        type_ = "integer",
        json_path = ".status.pendingWorkloads"
    ),
    printcolumn(
        name = "Admitted",
        type_ = "integer",
        json_path = ".status.admittedWorkloads"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueSpec {
    /// The ClusterQueue that admits the workloads. Immutable.
    #[schemars(schema_with = "schema::subdomain")]
    pub cluster_queue: String,

    /// Whether the queue admits workloads; None by default: it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None"))]
    pub stop_policy: Option<StopPolicy>,

    /// The PriorityClasses that workloads may use, of those that the ClusterQueue allows. Absent allows all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::priority_class_names")]
    pub allowed_priority_classes: Option<Vec<String>>,
}

/// The observed state of a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueStatus {
    /// The number of pending workloads.
    #[serde(default)]
    pub pending_workloads: i32,

    /// The number of workloads that have quota reserved.
    #[serde(default)]
    pub reserving_workloads: i32,

    /// The number of admitted workloads that have not finished.
    #[serde(default)]
    pub admitted_workloads: i32,

    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The conditions of the queue: Active, Misconfigured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

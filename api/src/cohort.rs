//! Cohort: queues and cohorts that lend each other their unused quota.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quota::{FairSharing, FairSharingStatus, ResourceGroup};
use crate::schema;

/// A node in a tree of any depth: members borrow from their cohort, and a cohort borrows from its parent.
#[allow(
    clippy::duplicated_attributes,
    reason = "printer columns of one type are not the same attribute"
)]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "lockkeeper.dev",
    version = "v1alpha1",
    kind = "Cohort",
    plural = "cohorts",
    shortname = "lkco",
    category = "lockkeeper",
    selectable = ".spec.parentName",
    status = "CohortStatus",
    derive = "PartialEq",
    doc = "Queues and cohorts that lend unused quota to each other.",
    printcolumn(name = "Parent", type_ = "string", json_path = ".spec.parentName"),
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
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CohortSpec {
    /// The parent in the tree. Without it this cohort is a root. The parent need not exist as an
    /// object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::subdomain")]
    pub parent_name: Option<String>,

    /// Quota of the cohort itself, for its members to share, by groups of resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub resource_groups: Vec<ResourceGroup>,

    /// The weight of this cohort when the parent's unused quota is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
}

/// The observed state of a cohort.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CohortStatus {
    /// The share under fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,

    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The conditions of the cohort: Active, Misconfigured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

//! Quota by flavor and resource, shared by ClusterQueues and Cohorts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::schema;

/// Resources that are assigned together, and the flavors that provide them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceGroup {
    /// The resources that this group covers, such as cpu, memory or nvidia.com/gpu. All of them
    /// come from the same flavor. A resource is covered by at most one group.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    #[schemars(inner(length(min = 1, max = 317)))]
    pub covered_resources: Vec<String>,

    /// The flavors that provide the resources, in the order in which they are tried. A flavor
    /// belongs to at most one group.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors: Vec<FlavorQuotas>,
}

/// The quota of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorQuotas {
    /// The name of the ResourceFlavor.
    #[schemars(schema_with = "schema::subdomain")]
    pub name: String,

    /// The quota of each covered resource, in the order of coveredResources.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceQuota>,
}

/// The quota of one resource in one flavor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceQuota {
    /// The name of the resource.
    #[schemars(length(min = 1, max = 317))]
    pub name: String,

    /// The amount that is guaranteed: it is always available to its owner, except while it is lent
    /// and not yet reclaimed.
    pub nominal_quota: Quantity,

    /// The most that may be used above the nominal quota, from what others in the cohort leave
    /// unused. Without it there is no such limit. It needs a cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowing_limit: Option<Quantity>,

    /// The most of the unused nominal quota that others in the cohort may borrow. Without it
    /// everything unused may be lent. It needs a cohort and is at most the nominal quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending_limit: Option<Quantity>,
}

/// How much a queue or cohort counts when unused quota is shared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// The weight relative to the siblings in the cohort; 1 by default. With weight 0 anything
    /// borrowed is the first to be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1"))]
    pub weight: Option<Quantity>,
}

/// The share of a queue or cohort under fair sharing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharingStatus {
    /// The dominant resource's borrowed share of what the cohort could lend, divided by the weight,
    /// times 1000. 9223372036854775807 when the weight is 0 and something is borrowed.
    pub weighted_share: i64,
}

/// What is used of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct FlavorUsage {
    /// The name of the ResourceFlavor.
    #[schemars(schema_with = "schema::subdomain")]
    pub name: String,

    /// The usage of each resource.
    #[serde(default)]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceUsage>,
}

/// What is used of one resource in one flavor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// The name of the resource.
    #[schemars(length(min = 1, max = 317))]
    pub name: String,

    /// The amount in use, borrowed quota included.
    pub total: Quantity,

    /// The part of the total that is above the nominal quota.
    pub borrowed: Quantity,
}

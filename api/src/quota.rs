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

    /// The guaranteed amount: it is always available to its queue or cohort, except while it is lent and not yet
    /// reclaimed.
    pub nominal_quota: Quantity,

    /// The maximum amount that may be borrowed above the nominal quota, from unused quota of the cohort. Unset: no
    /// limit. Requires a cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowing_limit: Option<Quantity>,

    /// The maximum amount of unused nominal quota that other members of the cohort may borrow. Unset: all of it.
    /// Requires a cohort; at most the nominal quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending_limit: Option<Quantity>,
}

/// The weight of a queue or cohort when unused quota is shared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// The weight relative to the siblings in the cohort; 1 by default. With weight 0, borrowed quota is reclaimed
    /// first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1"))]
    pub weight: Option<Quantity>,
}

/// The share of a queue or cohort under fair sharing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharingStatus {
    /// The borrowed share of the dominant resource, relative to the amount that the cohort can lend, divided by the
    /// weight, times 1000. 9223372036854775807 if the weight is 0 and quota is borrowed.
    pub weighted_share: i64,
}

/// The usage of one flavor.
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

/// The usage of one resource in one flavor.
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

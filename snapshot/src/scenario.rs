//! States and questions written down as JSON: the form of the conformance data.

mod build;

pub use build::{Loaded, load, quota_pairs};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A state, and one workload or more that want in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario {
    /// Its name.
    #[serde(default)]
    pub id: String,
    /// `classical` or `fair`.
    #[serde(default)]
    pub algorithm: String,
    /// Only with fair sharing.
    #[serde(default)]
    pub fair_sharing: Option<FairSharing>,
    /// Switches of Kueue that are not at their default.
    #[serde(default)]
    pub feature_gates: BTreeMap<String, bool>,
    /// The time, in seconds since 1970.
    #[serde(default)]
    pub now: i64,
    /// The cohorts.
    #[serde(default)]
    pub cohorts: Vec<Cohort>,
    /// The ClusterQueues.
    #[serde(default)]
    pub cluster_queues: Vec<ClusterQueue>,
    /// The labels of namespaces.
    #[serde(default)]
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// The workloads that hold quota.
    #[serde(default)]
    pub admitted: Vec<Workload>,
    /// The workload that wants in.
    #[serde(default)]
    pub incoming: Option<Workload>,
    /// The workloads that want in.
    #[serde(default)]
    pub pending: Vec<Workload>,
}

/// The strategies of fair sharing.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// In the order in which they are tried.
    pub preemption_strategies: Vec<String>,
}

/// A cohort.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cohort {
    /// Its name.
    pub name: String,
    /// The cohort it is in.
    pub parent: Option<String>,
    /// Its weight.
    pub fair_weight: f64,
    /// Quota of its own.
    #[serde(default)]
    pub quotas: Vec<Quota>,
}

/// Quota of a resource of a flavor.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// The flavor; in a ClusterQueue it stands around.
    #[serde(default)]
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The nominal quota.
    pub nominal: i64,
    /// The borrowing limit.
    pub borrowing_limit: Option<i64>,
    /// The lending limit.
    pub lending_limit: Option<i64>,
}

/// A ClusterQueue.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueue {
    /// Its name.
    pub name: String,
    /// Its cohort.
    pub cohort: Option<String>,
    /// Its weight.
    pub fair_weight: f64,
    /// What it has quota of.
    pub resource_groups: Vec<ResourceGroup>,
    /// Whom it preempts.
    pub preemption: Preemption,
    /// How it chooses flavors.
    pub flavor_fungibility: FlavorFungibility,
    /// `StrictFIFO` or `BestEffortFIFO`.
    #[serde(default)]
    pub queueing_strategy: String,
    /// Which namespaces it takes.
    #[serde(default)]
    pub namespace_selector: Option<Selector>,
    /// Whether a flavor of it does not exist.
    #[serde(default)]
    pub inactive: bool,
    /// Usage that is put on it directly.
    #[serde(default)]
    pub usage: Vec<Used>,
}

/// A label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Labels that must be there.
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions.
    pub match_expressions: Vec<Expression>,
}

/// A condition on a label.
#[derive(Clone, Debug, Deserialize)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values it speaks of.
    #[serde(default)]
    pub values: Vec<String>,
}

/// Resources taken from one flavor together.
#[derive(Clone, Debug, Deserialize)]
pub struct ResourceGroup {
    /// The resources.
    pub resources: Vec<String>,
    /// The flavors, in order.
    pub flavors: Vec<Flavor>,
}

/// The quotas of a flavor.
#[derive(Clone, Debug, Deserialize)]
pub struct Flavor {
    /// The flavor.
    pub name: String,
    /// By resource.
    pub quotas: Vec<Quota>,
}

/// `spec.preemption`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preemption {
    /// Within the queue.
    pub within_cluster_queue: String,
    /// In other queues.
    pub reclaim_within_cohort: String,
    /// In other queues, while borrowing.
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
}

/// `spec.preemption.borrowWithinCohort`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// The policy.
    pub policy: String,
    /// The highest priority of a victim.
    pub max_priority_threshold: Option<i32>,
}

/// `spec.flavorFungibility`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlavorFungibility {
    /// After a flavor in which it would borrow.
    pub when_can_borrow: String,
    /// After one in which it would preempt.
    pub when_can_preempt: String,
    /// Which of the two is preferred.
    pub preference: Option<String>,
}

/// A workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Its ClusterQueue; empty if it has none.
    pub cluster_queue: String,
    /// Its priority.
    pub priority: i32,
    /// Its place in time among those of equal priority.
    pub queue_order_time: i64,
    /// Since when it holds quota.
    #[serde(default)]
    pub quota_reserved_time: Option<i64>,
    /// Whether it is being evicted.
    #[serde(default)]
    pub evicted: bool,
    /// Whether it comes later.
    #[serde(default)]
    pub late: bool,
    /// What it wants.
    pub pod_sets: Vec<PodSet>,
}

/// A pod set.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSet {
    /// Its name.
    pub name: String,
    /// How many pods.
    pub count: i64,
    /// With how many it makes do.
    #[serde(default)]
    pub min_count: Option<i64>,
    /// What all pods ask for together.
    #[serde(default)]
    pub requests: BTreeMap<String, i64>,
    /// The flavors it has.
    #[serde(default)]
    pub flavors: BTreeMap<String, String>,
    /// The flavors it cannot have.
    #[serde(default)]
    pub ineligible_flavors: Vec<String>,
}

/// An amount of a resource of a flavor.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Used {
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// How much.
    pub amount: i64,
}

//! States and questions written down: the form of the conformance data, and of what people write for
//! `lockkeeper explain --scenario` (docs/scenario.md).
//!
//! Every field that has a sensible default may be left out. Amounts are whole numbers in the unit of the
//! core, or quantities as Kubernetes writes them.

use crate::amount_text::AmountText;
use lockkeeper_api::cluster_queue::{
    BorrowWithinCohort, Elastic, FlavorFungibility, QueueingStrategy, ReclaimWithinCohort,
    WithinClusterQueue,
};
use lockkeeper_cluster_state::label_selector::Selector;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A state, and one workload or more that want in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario {
    /// Its name.
    #[serde(default)]
    pub id: String,
    /// The form it is written in. One that begins with `kueue-` was recorded from Kueue.
    #[serde(default)]
    pub schema: String,
    /// Flavors that the incoming workload was given, instead of those it would get.
    #[serde(default)]
    pub assignment: Option<FixedAssignment>,
    /// By which rules victims are chosen.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Only with fair sharing.
    #[serde(default)]
    pub fair_sharing: Option<FairSharing>,
    /// Switches of Kueue that are not at their default.
    #[serde(default)]
    pub feature_gates: BTreeMap<String, bool>,
    /// Whether freed quota is held for its preemptor, and circles are cut. If it is not said: unless Kueue
    /// is followed.
    #[serde(default)]
    pub damping: Option<bool>,
    /// How many workloads may be told to go in one cycle.
    #[serde(default)]
    pub max_victims_per_cycle: Option<u32>,
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

/// Flavors that a workload was given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FixedAssignment {
    /// Only `given` ones are taken; others are answers that were recorded.
    pub source: String,
    /// What it asks for in all.
    pub total_requests: Vec<UsageAmount>,
    /// What of that does not fit without preemption.
    pub need_preemption: Vec<NeededResource>,
}

/// A resource of a flavor.
#[derive(Clone, Debug, Deserialize)]
pub struct NeededResource {
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
}

/// The strategies of fair sharing.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// In the order in which they are tried.
    pub preemption_strategies: Vec<FairStrategy>,
}

/// By which rules victims are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// By priority and borrowing.
    #[default]
    Classical,
    /// By dominant resource shares.
    Fair,
}

/// When a preemptor may take from a queue with a larger share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FairStrategy {
    /// The preemptor's share stays at most the other's without the victim.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share stays below the other's as it is.
    LessThanInitialShare,
}

/// A cohort.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cohort {
    /// Its name.
    pub name: String,
    /// The cohort it is in.
    #[serde(default)]
    pub parent: Option<String>,
    /// Its weight.
    #[serde(default = "one")]
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
    pub nominal: AmountText,
    /// The borrowing limit.
    #[serde(default)]
    pub borrowing_limit: Option<AmountText>,
    /// The lending limit.
    #[serde(default)]
    pub lending_limit: Option<AmountText>,
}

/// A ClusterQueue.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueue {
    /// Its name.
    pub name: String,
    /// Its cohort.
    #[serde(default)]
    pub cohort: Option<String>,
    /// Its weight.
    #[serde(default = "one")]
    pub fair_weight: f64,
    /// What it has quota of.
    pub resource_groups: Vec<ResourceGroup>,
    /// Whom it preempts.
    #[serde(default)]
    pub preemption: Preemption,
    /// How it chooses flavors.
    #[serde(default)]
    pub flavor_fungibility: FlavorFungibility,
    /// What becomes of a head that does not fit.
    #[serde(default)]
    pub queueing_strategy: QueueingStrategy,
    /// Which namespaces it takes.
    #[serde(default)]
    pub namespace_selector: Option<Selector>,
    /// Whether it is an elastic quota, and with which switches.
    #[serde(default)]
    pub elastic: Option<Elastic>,
    /// Whether a flavor of it does not exist.
    #[serde(default)]
    pub inactive: bool,
    /// Usage that is put on it directly.
    #[serde(default)]
    pub usage: Vec<UsageAmount>,
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
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preemption {
    /// Within the queue; absent is nobody, in an elastic queue those of lower priority.
    pub within_cluster_queue: Option<WithinClusterQueue>,
    /// In other queues; the same.
    pub reclaim_within_cohort: Option<ReclaimWithinCohort>,
    /// In other queues, while borrowing.
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
    /// Whom it spares all the same.
    pub limits: PreemptionLimits,
}

/// What users ask for beyond Kueue. Nothing is limited by default. A key that is not known is refused: a
/// limit that does nothing would not be noticed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PreemptionLimits {
    /// The highest priority that may be taken in the queue itself.
    pub within_max_priority_threshold: Option<i32>,
    /// The highest priority that may be taken in other queues.
    pub reclaim_max_priority_threshold: Option<i32>,
    /// How long its workloads run before preemptors of the queue may take them.
    pub within_min_run_seconds: Option<i64>,
    /// How long its workloads run before preemptors of other queues may take them.
    pub reclaim_min_run_seconds: Option<i64>,
    /// How often one of its workloads is preempted at most.
    pub max_preemptions: Option<u32>,
    /// How many of its workloads go in one cycle at most.
    pub max_victims_per_cycle: Option<u32>,
}

/// `preemptionPolicy` of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum PreemptionPolicy {
    /// They preempt.
    PreemptLowerPriority,
    /// They do not.
    Never,
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
    /// Its uid; decides between workloads that are alike in all else.
    #[serde(default)]
    pub uid: String,
    /// Its ClusterQueue; empty if it has none.
    pub cluster_queue: String,
    /// Its priority.
    #[serde(default)]
    pub priority: i32,
    /// Its place in time among those of equal priority, in seconds.
    #[serde(default)]
    pub queue_order_time: i64,
    /// Since when it holds quota.
    #[serde(default)]
    pub quota_reserved_time: Option<i64>,
    /// Whether it is being evicted.
    #[serde(default)]
    pub evicted: bool,
    /// The label `quota.scheduling.koordinator.sh/preemptible` of its pods. Elastic queues listen to it.
    #[serde(default)]
    pub preemptible: Option<String>,
    /// The label `quota.scheduling.koordinator.sh/can-preempt` of its pods.
    #[serde(default)]
    pub can_preempt: Option<String>,
    /// The policy of its pods.
    #[serde(default)]
    pub preemption_policy: Option<PreemptionPolicy>,
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
    #[serde(default = "main")]
    pub name: String,
    /// How many pods.
    #[serde(default = "one_pod")]
    pub count: i64,
    /// With how many it makes do.
    #[serde(default)]
    pub min_count: Option<i64>,
    /// What all pods ask for together.
    #[serde(default)]
    pub requests: BTreeMap<String, AmountText>,
    /// The flavors it has.
    #[serde(default)]
    pub flavors: BTreeMap<String, String>,
    /// The flavors it cannot have.
    #[serde(default)]
    pub ineligible_flavors: Vec<String>,
}

/// An amount of a resource of a flavor.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageAmount {
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// How much.
    pub amount: i64,
}

fn one() -> f64 {
    1.0
}

fn one_pod() -> i64 {
    1
}

fn main() -> String {
    "main".to_owned()
}

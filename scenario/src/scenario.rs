//! The file format of scenarios of queues: of the conformance data, and of the files for
//! `lockkeeper explain --scenario` (docs/scenario.md).
//!
//! Fields with a default may be omitted. Amounts are whole numbers in the unit of the
//! core, or quantities as Kubernetes writes them.

use crate::amount_text::AmountText;
use lockkeeper_api::cluster_queue::{
    BorrowWithinCohort, Elastic, FlavorFungibility, QueueingStrategy, ReclaimWithinCohort,
    WithinClusterQueue,
};
use lockkeeper_cluster_state::label_selector::Selector;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cluster state, and one or more pending workloads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario {
    /// Its name.
    #[serde(default)]
    pub id: String,
    /// The format. A value with the prefix `kueue-` was recorded from Kueue.
    #[serde(default)]
    pub schema: String,
    /// A given flavor assignment of the incoming workload; otherwise flavors are assigned.
    #[serde(default)]
    pub assignment: Option<FixedAssignment>,
    /// The algorithm that selects victims.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Settings of fair sharing.
    #[serde(default)]
    pub fair_sharing: Option<FairSharing>,
    /// Feature gates of Kueue that differ from their default.
    #[serde(default)]
    pub feature_gates: BTreeMap<String, bool>,
    /// Whether released quota is held for its preemptor, and preemption loops are prevented. By default true, except
    /// with Kueue's compatibility.
    #[serde(default)]
    pub damping: Option<bool>,
    /// The limit on preemptions per cycle.
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
    /// The incoming workload.
    #[serde(default)]
    pub incoming: Option<Workload>,
    /// The pending workloads.
    #[serde(default)]
    pub pending: Vec<Workload>,
}

/// A flavor assignment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FixedAssignment {
    /// Only `given` assignments are used; others are recorded results.
    pub source: String,
    /// The total requests.
    pub total_requests: Vec<UsageAmount>,
    /// The resources that do not fit without preemption.
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

/// The algorithm that selects victims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// By priority and borrowing.
    #[default]
    Classical,
    /// By dominant resource shares.
    Fair,
}

/// When a preemptor may preempt in a queue with a larger share.
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
    /// Its own quota.
    #[serde(default)]
    pub quotas: Vec<Quota>,
}

/// Quota of a resource of a flavor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// The flavor; in a ClusterQueue, the enclosing object has it.
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
    /// The resource groups with quota.
    pub resource_groups: Vec<ResourceGroup>,
    /// The preemption policies.
    #[serde(default)]
    pub preemption: Preemption,
    /// The flavor fungibility.
    #[serde(default)]
    pub flavor_fungibility: FlavorFungibility,
    /// The queueing strategy.
    #[serde(default)]
    pub queueing_strategy: QueueingStrategy,
    /// The namespace selector.
    #[serde(default)]
    pub namespace_selector: Option<Selector>,
    /// The switches of an elastic quota, if the queue is one.
    #[serde(default)]
    pub elastic: Option<Elastic>,
    /// Whether one of its flavors does not exist.
    #[serde(default)]
    pub inactive: bool,
    /// Usage without a workload.
    #[serde(default)]
    pub usage: Vec<UsageAmount>,
}

/// Resources that get the same flavor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ResourceGroup {
    /// The resources.
    pub resources: Vec<String>,
    /// The flavors, in order.
    pub flavors: Vec<Flavor>,
}

/// The quotas of a flavor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
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
    /// Policy within the queue; by default `Never`, in an elastic queue `LowerPriority`.
    pub within_cluster_queue: Option<WithinClusterQueue>,
    /// Policy for reclaiming in the cohort; the same default.
    pub reclaim_within_cohort: Option<ReclaimWithinCohort>,
    /// Policy for other queues while borrowing.
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
    /// Further limits on victims.
    pub limits: PreemptionLimits,
}

/// Limits beyond Kueue's; none by default. Unknown keys are rejected, because a misspelled limit would have no
/// effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PreemptionLimits {
    /// The highest priority of victims in the queue itself.
    pub within_max_priority_threshold: Option<i32>,
    /// The highest priority of victims in other queues.
    pub reclaim_max_priority_threshold: Option<i32>,
    /// The minimum run time of its workloads before preemptors of the queue may preempt them.
    pub within_min_run_seconds: Option<i64>,
    /// The minimum run time of its workloads before preemptors of other queues may preempt them.
    pub reclaim_min_run_seconds: Option<i64>,
    /// The most preemptions of one of its workloads.
    pub max_preemptions: Option<u32>,
    /// The most victims of the queue in one cycle.
    pub max_victims_per_cycle: Option<u32>,
    /// How long its workloads must wait before they may preempt.
    pub delay_seconds: Option<i64>,
}

/// `preemptionPolicy` of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum PreemptionPolicy {
    /// The pods preempt.
    PreemptLowerPriority,
    /// The pods do not preempt.
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
    /// Its uid; orders workloads that are equal otherwise.
    #[serde(default)]
    pub uid: String,
    /// Its ClusterQueue; empty if it has none.
    pub cluster_queue: String,
    /// Its scheduling priority: in the queue and as a preemptor.
    #[serde(default)]
    pub priority: i32,
    /// Its preemption priority: as a candidate for preemption. By default, and at least, the scheduling priority.
    #[serde(default)]
    pub preemption_priority: Option<i32>,
    /// Its queue order time, in seconds: orders workloads of equal priority.
    #[serde(default)]
    pub queue_order_time: i64,
    /// Since when it waits for quota; by default its queue order time.
    #[serde(default)]
    pub waiting_since_time: Option<i64>,
    /// The time of its quota reservation.
    #[serde(default)]
    pub quota_reserved_time: Option<i64>,
    /// Whether it is being evicted.
    #[serde(default)]
    pub evicted: bool,
    /// The label `quota.scheduling.koordinator.sh/preemptible` of its pods, for elastic queues.
    #[serde(default)]
    pub preemptible: Option<String>,
    /// The label `quota.scheduling.koordinator.sh/can-preempt` of its pods.
    #[serde(default)]
    pub can_preempt: Option<String>,
    /// The preemption policy of its pods.
    #[serde(default)]
    pub preemption_policy: Option<PreemptionPolicy>,
    /// Whether it is created later.
    #[serde(default)]
    pub late: bool,
    /// Its pod sets.
    pub pod_sets: Vec<PodSet>,
}

/// A pod set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSet {
    /// Its name.
    #[serde(default = "main")]
    pub name: String,
    /// The number of pods.
    #[serde(default = "one_pod")]
    pub count: i64,
    /// The minimum number of pods.
    #[serde(default)]
    pub min_count: Option<i64>,
    /// The requests of all pods together.
    #[serde(default)]
    pub requests: BTreeMap<String, AmountText>,
    /// The assigned flavors.
    #[serde(default)]
    pub flavors: BTreeMap<String, String>,
    /// The excluded flavors.
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
    /// The amount.
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

//! ClusterQueue: quota for the workloads of a team, and its preemption policy.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quota::{FairSharing, FairSharingStatus, FlavorUsage, ResourceGroup};
use crate::schema;

/// Quota for workloads, the order in which they are admitted, and the preemption policy.
#[allow(
    clippy::duplicated_attributes,
    reason = "printer columns of one type are not the same attribute"
)]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "lockkeeper.dev",
    version = "v1alpha1",
    kind = "ClusterQueue",
    plural = "clusterqueues",
    shortname = "lkcq",
    category = "lockkeeper",
    selectable = ".spec.cohortName",
    status = "ClusterQueueStatus",
    derive = "PartialEq",
    doc = "The quota of a team's workloads, and the preemption policies for it.",
    printcolumn(name = "Cohort", type_ = "string", json_path = ".spec.cohortName"),
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
        name = "Strategy",
        type_ = "string",
        json_path = ".spec.queueingStrategy"
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
        name = "Share",
        type_ = "integer",
        json_path = ".status.fairSharing.weightedShare"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueueSpec {
    /// The cohort to borrow from and lend to. Without it the queue neither borrows nor lends. The
    /// cohort need not exist as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::subdomain")]
    pub cohort_name: Option<String>,

    /// The quota, by groups of resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub resource_groups: Vec<ResourceGroup>,

    /// The order in which pending workloads are tried; BestEffortFIFO by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "BestEffortFIFO"))]
    pub queueing_strategy: Option<QueueingStrategy>,

    /// Whether workloads behind the head of a StrictFIFO queue may start while it does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Backfill>,

    /// The namespaces whose workloads may use this queue. Empty selects all; absent selects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: Option<LabelSelector>,

    /// When to try the next flavor instead of borrowing or preempting in the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub flavor_fungibility: Option<FlavorFungibility>,

    /// The workloads that workloads of this queue may preempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<Preemption>,

    /// Whether the queue admits workloads; None by default: it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None"))]
    pub stop_policy: Option<StopPolicy>,

    /// The weight of this queue when the cohort's unused quota is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,

    /// Makes this queue an elastic quota: non-preemptible workloads may use the nominal quota (min), and all workloads
    /// together the nominal quota plus the borrowing limit (max).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<Elastic>,

    /// The PriorityClasses that workloads may use, for scheduling and preemption. Absent allows all classes except
    /// those that begin with `system-`. Name the global default class, too: workloads without a class get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::priority_class_names")]
    pub allowed_priority_classes: Option<Vec<String>>,

    /// Whether workloads of this queue also wait for room on nodes; by default only for quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

/// The order in which pending workloads are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum QueueingStrategy {
    /// A workload that cannot be admitted blocks those behind it.
    StrictFIFO,
    /// Workloads behind one that cannot be admitted may be admitted first.
    #[default]
    BestEffortFIFO,
}

/// Starts of workloads behind the head of a StrictFIFO queue that do not delay it. They are computed from the maximum
/// execution times of the running workloads: while one without a limit has to end first, nothing passes the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    /// None by default: a head that does not fit blocks its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None"))]
    pub policy: Option<BackfillPolicy>,

    /// The number of workloads behind the head that each cycle considers; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub max_workloads: Option<i32>,
}

/// Which workloads may not be delayed by those behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BackfillPolicy {
    /// No backfill.
    #[default]
    None,
    /// The head of the queue.
    Easy,
    /// The head and those behind it, in queue order.
    Conservative,
}

/// How workloads of a queue are placed on nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// None by default: kube-scheduler alone selects nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "None"))]
    pub policy: Option<PlacementPolicy>,
}

/// Whether room on nodes is part of an admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum PlacementPolicy {
    /// A workload is admitted when it has quota.
    #[default]
    None,
    /// A workload is admitted when it has quota and all its pods fit on nodes. Workloads and pods of lower priority are
    /// preempted for that, all or none. A queue without resourceGroups has no quota limits then.
    Nodes,
}

/// Whether a queue admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum StopPolicy {
    /// Workloads are admitted.
    #[default]
    None,
    /// No new workload is admitted; admitted workloads keep running.
    Hold,
    /// No new workload is admitted; admitted workloads are evicted.
    HoldAndDrain,
}

/// When to try the next flavor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorFungibility {
    /// What to do when a workload fits a flavor by borrowing; MayStopSearch by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "MayStopSearch"))]
    pub when_can_borrow: Option<FlavorSearch>,

    /// What to do when a workload would fit a flavor by preempting; TryNextFlavor by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "TryNextFlavor"))]
    pub when_can_preempt: Option<FlavorSearch>,

    /// Which of the two is preferred when the search continues through all flavors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<FungibilityPreference>,
}

/// Whether the search for a flavor may stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum FlavorSearch {
    /// Stop at this flavor, unless a later one must be tried.
    MayStopSearch,
    /// Try the next flavor.
    TryNextFlavor,
}

/// The preference between borrowing and preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum FungibilityPreference {
    /// Borrow rather than preempt.
    BorrowingOverPreemption,
    /// Preempt rather than borrow.
    PreemptionOverBorrowing,
}

/// The workloads that workloads of a queue may preempt.
///
/// A field that is absent means `Never`, except in an elastic queue, where the first two mean
/// `LowerPriority`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preemption {
    /// Which workloads of the same queue may be preempted; by default none, in an elastic queue
    /// those of lower priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_cluster_queue: Option<WithinClusterQueue>,

    /// Which workloads of other queues in the cohort may be preempted to reclaim nominal quota that they borrow; by
    /// default none, in an elastic queue those of lower priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_within_cohort: Option<ReclaimWithinCohort>,

    /// Whether a workload that must borrow may preempt borrowing workloads of other queues. Requires a value of
    /// reclaimWithinCohort other than Never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrow_within_cohort: Option<BorrowWithinCohort>,

    /// Limits beyond the policies. A limit that is not set has the default of the configuration
    /// (preemption.limits); without one it does not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PreemptionLimits>,
}

/// Limits of preemption. delaySeconds and the thresholds limit the preemptions by workloads of the queue, the others
/// protect its workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionLimits {
    /// How long a workload must wait before it may preempt, in seconds since its creation or its last eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub delay_seconds: Option<i32>,

    /// The highest preemption priority that workloads of the queue preempt in the queue itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_max_priority_threshold: Option<i32>,

    /// The highest preemption priority that they preempt in other queues of the cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_max_priority_threshold: Option<i32>,

    /// The minimum run time of a workload before workloads of the same queue may preempt it, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub within_min_run_seconds: Option<i32>,

    /// The minimum run time of a workload before workloads of other queues may preempt it, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub reclaim_min_run_seconds: Option<i32>,

    /// The number of preemptions after which a workload is not preempted again. They are counted since the controller
    /// became the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_preemptions: Option<i32>,

    /// The maximum number of workloads of the queue that are preempted in one cycle. A preemptor that needs more does
    /// not preempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_victims_per_cycle: Option<i32>,
}

/// Victims within the same queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum WithinClusterQueue {
    /// No workload.
    #[default]
    Never,
    /// Workloads of lower priority.
    LowerPriority,
    /// Workloads of lower priority, or of equal priority that are newer.
    LowerOrNewerEqualPriority,
}

/// Victims when nominal quota is reclaimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ReclaimWithinCohort {
    /// No workload.
    #[default]
    Never,
    /// Borrowing workloads of lower priority.
    LowerPriority,
    /// Any borrowing workload.
    Any,
}

/// Preemption while borrowing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// Which workloads may be preempted while borrowing; Never by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<BorrowWithinCohortPolicy>,

    /// Only workloads with at most this priority may be preempted while borrowing. Without it only
    /// the preemptor's own priority counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_priority_threshold: Option<i32>,
}

/// Victims while borrowing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BorrowWithinCohortPolicy {
    /// No workload.
    #[default]
    Never,
    /// Borrowing workloads of lower priority.
    LowerPriority,
}

/// The settings of an elastic quota (Koordinator, job-level preemption).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elastic {
    /// Whether pods without the label quota.scheduling.koordinator.sh/preemptible are
    /// non-preemptible; by default they are preemptible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_default_preemptiable: Option<bool>,

    /// Whether pods without the label quota.scheduling.koordinator.sh/can-preempt may not trigger
    /// preemption; by default they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_default_trigger_preemption: Option<bool>,

    /// Whether victims are deleted; by default they are only marked for soft eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_should_be_deleted_when_preempted: Option<bool>,
}

impl ClusterQueueSpec {
    /// Whether workloads of the queue wait for room on nodes.
    #[must_use]
    pub fn places_on_nodes(&self) -> bool {
        let policy = self.placement.and_then(|it| it.policy);
        policy == Some(PlacementPolicy::Nodes)
    }

    /// The policy within the queue, with the default applied.
    #[must_use]
    pub fn within_cluster_queue(&self) -> WithinClusterQueue {
        let given = self
            .preemption
            .as_ref()
            .and_then(|p| p.within_cluster_queue);
        given.unwrap_or(match self.elastic {
            Some(_) => WithinClusterQueue::LowerPriority,
            None => WithinClusterQueue::Never,
        })
    }

    /// The policy for reclaiming nominal quota, with the default applied.
    #[must_use]
    pub fn reclaim_within_cohort(&self) -> ReclaimWithinCohort {
        let given = self
            .preemption
            .as_ref()
            .and_then(|p| p.reclaim_within_cohort);
        given.unwrap_or(match self.elastic {
            Some(_) => ReclaimWithinCohort::LowerPriority,
            None => ReclaimWithinCohort::Never,
        })
    }

    /// The policy for preemption while borrowing, with the default applied.
    #[must_use]
    pub fn borrow_within_cohort(&self) -> BorrowWithinCohortPolicy {
        let given = self
            .preemption
            .as_ref()
            .and_then(|p| p.borrow_within_cohort.as_ref());
        given.and_then(|b| b.policy).unwrap_or_default()
    }
}

/// The observed state of a queue.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueueStatus {
    /// The quota reserved by workloads, admitted or not yet, by flavor and resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_reservation: Vec<FlavorUsage>,

    /// The quota used by admitted workloads, by flavor and resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_usage: Vec<FlavorUsage>,

    /// The number of pending workloads.
    #[serde(default)]
    pub pending_workloads: i32,

    /// The number of workloads that have quota reserved.
    #[serde(default)]
    pub reserving_workloads: i32,

    /// The number of admitted workloads that have not finished.
    #[serde(default)]
    pub admitted_workloads: i32,

    /// The share under fair sharing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,

    /// The generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The conditions of the queue: Active, Misconfigured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

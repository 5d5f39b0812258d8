//! The answer about a workload. Field names are those of `--output json`; docs/explain.md describes them.

use crate::change::Change;
use crate::node_answer::NodePlacementAnswer;
use serde::Serialize;

/// The state of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Situation {
    /// It has finished.
    Finished,
    /// It has quota.
    Running,
    /// It has quota and is being evicted.
    Evicting,
    /// It waits in a ClusterQueue.
    Pending,
    /// It waits for the end of a backoff.
    BackingOff,
    /// It is in no ClusterQueue.
    NotQueued,
    /// Its object, or the amounts in it, are invalid.
    Invalid,
}

/// The answer about a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The workload.
    pub workload: Subject,
    /// Its state.
    pub situation: Situation,
    /// The reason as in the condition `QuotaReserved` and in the metrics.
    pub reason: String,
    /// The answer in one sentence.
    pub summary: String,
    /// The message as in the condition `QuotaReserved`; empty for a running workload.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Its position in the ClusterQueue, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// What the scheduler does with it if no object changes, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// The latest start of a pending workload, if there is a proof of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_by: Option<StartBound>,
    /// Its last eviction, until it has quota again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction: Option<Eviction>,
    /// The quota that it requests or uses, by flavor and resource.
    pub quota: Vec<QuotaAnswer>,
    /// The workloads that it would preempt if it were the only pending workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<Victim>,
    /// The workloads that use a flavor and resource that it lacks, and why each may or may not be preempted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Its placement on nodes, if its ClusterQueue places workloads on nodes and the input has nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<NodePlacementAnswer>,
    /// The smallest changes that each let it start, if it were the only pending workload.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The ClusterQueues whose workloads could preempt it, while it runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preemptors: Vec<Preemptor>,
    /// Evictions and other events from its conditions, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// What the answer assumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// Objects that others refer to and that the input does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Objects of the input that are not considered, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// The workload of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The job that owns it, as `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its LocalQueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_queue: Option<String>,
    /// Its ClusterQueue, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_queue: Option<String>,
    /// The cohorts above the ClusterQueue, from the root down, as `/root/cohort/queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its priority in the queue and as a preemptor.
    pub priority: i32,
    /// Its priority as a victim.
    pub preemption_priority: i32,
}

/// The position of a pending workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// From 0, among the pending workloads of its ClusterQueue without a backoff, as in Kueue's visibility API.
    pub in_cluster_queue: usize,
    /// The number of these workloads.
    pub pending: usize,
    /// The first workloads ahead of it.
    pub ahead: Vec<String>,
    /// Whether workloads behind one that cannot start may start first (`BestEffortFIFO`).
    pub may_overtake: bool,
}

/// What the scheduler does with a pending workload, if no object changes and no workload arrives or ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all_fields = "camelCase")]
pub enum Forecast {
    /// It is admitted.
    Admitted {
        /// After as many admissions of other workloads.
        admitted_before: usize,
    },
    /// It preempts workloads and waits for their quota.
    Preempts {
        /// After as many admissions of other workloads.
        admitted_before: usize,
        /// The workloads.
        victims: Vec<String>,
    },
    /// It stays pending.
    Waits {
        /// The number of other workloads that are admitted.
        admitted_before: usize,
    },
    /// The answer takes too many cycles.
    Unknown,
}

/// The latest start of a pending workload, if each workload releases its quota at its maximum execution time or earlier, and no
/// object changes otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartBound {
    /// The time, as in a condition.
    pub time: String,
    /// The event after which it may start later.
    pub unless: StartCondition,
}

/// An event after which a workload may start later than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StartCondition {
    /// A workload of higher priority arrives in its ClusterQueue.
    HigherPriorityArrives,
    /// A workload arrives in a ClusterQueue of its tree of cohorts.
    WorkloadArrives,
}

/// The quota of one flavor and resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaAnswer {
    /// The ResourceFlavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// What the workload requests of it, or uses, as a quantity.
    pub requested: String,
    /// What it could use now, the part that can be borrowed included; negative if more is used than the limits permit.
    pub free: String,
    /// What is missing; `0` if it fits.
    pub short: String,
    /// The reason for the limit on what is free.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub limited_by: String,
    /// The ClusterQueue, and the cohorts above it up to the root.
    pub levels: Vec<LevelAnswer>,
}

/// The quota of a ClusterQueue or cohort for one flavor and resource, as quantities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LevelAnswer {
    /// `ClusterQueue` or `Cohort`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its nominal quota.
    pub nominal: String,
    /// The nominal quota and what its members lend.
    pub quota: String,
    /// The usage; of a cohort, what its members use beyond the quota that they do not lend.
    pub used: String,
    /// What the workload's queue could use here in addition.
    pub free: String,
    /// What it could still borrow under its borrowing limit; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowable: Option<String>,
}

/// A workload that would be preempted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Victim {
    /// `namespace/name`.
    pub workload: String,
    /// Its ClusterQueue.
    pub cluster_queue: String,
    /// Its preemption priority.
    pub preemption_priority: i32,
    /// The reason as in the condition `Preempted`.
    pub reason: &'static str,
}

/// A workload that uses quota which the pending workload lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// `namespace/name`.
    pub workload: String,
    /// Its ClusterQueue.
    pub cluster_queue: String,
    /// Its preemption priority.
    pub preemption_priority: i32,
    /// Whether it may be preempted for the pending workload.
    pub may_be_preempted: bool,
    /// Why, or why not.
    pub reason: String,
}

/// A ClusterQueue whose workloads could preempt a running workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preemptor {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// The lowest priority of such a workload; absent for any priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_min: Option<i32>,
    /// The reason as in the condition `Preempted`.
    pub reason: &'static str,
}

/// The last eviction of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// The time, as in the condition `Evicted`.
    pub time: String,
    /// The reason, as in the condition `Evicted`.
    pub reason: String,
    /// The message of the condition.
    pub message: String,
    /// The preemption, for the reason `Preempted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<Preemption>,
    /// All evictions, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<EvictionCount>,
    /// When it waits for quota again.
    pub requeue: Requeue,
    /// How often it was requeued since its pods were last ready; 0 if that is not counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub requeue_count: i32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
const fn is_zero(count: &i32) -> bool {
    *count == 0
}

/// A preemption, from the side of its victim. What the messages and the input do not have is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preemption {
    /// The reason, as in the condition `Preempted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The preemptor, as `namespace/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptor: Option<String>,
    /// The job of the preemptor, as `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptor_job: Option<String>,
    /// The ClusterQueue of the preemptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptor_cluster_queue: Option<String>,
    /// The priority of the preemptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptor_priority: Option<i32>,
    /// The uid of the preemptor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptor_uid: Option<String>,
    /// The cohorts above the ClusterQueue of the preemptor, from the root down, as `/root/cohort/queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptor_path: Option<String>,
    /// Those above the ClusterQueue that the victim had quota in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The number of evictions of a workload for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionCount {
    /// The reason, as in the metrics.
    pub reason: String,
    /// Why it was deactivated, as in the metrics; else empty.
    pub underlying_cause: String,
    /// The number.
    pub count: i32,
}

/// When an evicted workload waits for quota again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all_fields = "camelCase")]
pub enum Requeue {
    /// It does now.
    Queued,
    /// When it has released its quota: its pods are being stopped.
    AfterRelease,
    /// At the end of its backoff.
    At {
        /// The time.
        time: String,
    },
    /// When `spec.active` is set to true.
    AfterActivation,
    /// When its LocalQueue or ClusterQueue is resumed.
    AfterResume,
    /// Not before its objects change: the message of the answer has the reason.
    NotQueued,
}

/// An event in the conditions of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The time, as in the condition.
    pub time: String,
    /// The type of the condition.
    pub condition: String,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

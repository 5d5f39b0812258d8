//! Outputs of the reconciler: writes, and their results.

use crate::job_adapters::JobView;
use crate::key::{JobKey, ObjectKey};
use serde_json::Value;

/// The id of a write; its result names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// The object of a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectRef {
    /// A workload.
    Workload(ObjectKey),
    /// A job.
    Job(JobKey),
    /// A ClusterQueue.
    ClusterQueue(String),
    /// A Cohort.
    Cohort(String),
    /// A LocalQueue.
    LocalQueue(ObjectKey),
    /// A `ResourceFlavor`.
    ResourceFlavor(String),
    /// A `JobKind`.
    JobKind(String),
    /// An event, by its number.
    Event(u64),
    /// A pod that is evicted for its room on a node.
    VictimPod(ObjectKey),
}

/// The purpose of a write; a label value of metrics and a field of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WritePurpose {
    /// Create the workload of a job.
    CreateWorkload,
    /// Update the spec of a workload from its job.
    UpdateWorkload,
    /// Delete a workload without a job.
    DeleteWorkload,
    /// Admit a workload.
    Admit,
    /// Evict a workload.
    Evict,
    /// Release the quota of an evicted workload.
    Release,
    /// Read a job that is not watched any more, while its workload holds quota. Nothing is written.
    ReadJob,
    /// Read a pod of a group that is not watched any more, while the group holds quota. Nothing is written.
    ReadPod,
    /// Read a job whose pod templates are not kept, before they are written. Nothing is written.
    ReadTemplates,
    /// Read a job whose pod templates are not kept, before their placement is written. Nothing is written.
    ReadPlacement,
    /// Report that a workload has not released its quota within the bound.
    StuckEviction,
    /// Requeue a workload, or change its requeue state.
    Requeue,
    /// Deactivate a workload, or mark it for deactivation.
    Deactivate,
    /// Release the quota of pods that have succeeded.
    ReclaimPods,
    /// Report whether all pods are ready.
    PodsReady,
    /// Report that a pod has another priority than its workload.
    PodPriority,
    /// Report that the job has finished.
    Finish,
    /// Report why a workload is pending.
    PendingReason,
    /// Start a job.
    StartJob,
    /// Suspend a job.
    SuspendJob,
    /// Mark a pod as disrupted, or delete it.
    StopPod,
    /// Report that a pod starts with its group.
    ReportPodGroup,
    /// Report why a pod does not start with its group.
    PodGroupProblem,
    /// Remove the start time of a suspended job, so that its pod templates can be changed.
    ResetJob,
    /// Restore the pod templates of a stopped job.
    RestoreJob,
    /// Write the status of a queue or cohort.
    QueueStatus,
    /// Write the status of a `JobKind`.
    JobKindStatus,
    /// Remove our finalizer from a deleted object that is no longer in use, or restore it on an object in use.
    Finalizer,
    /// Write an event.
    Event,
    /// Reserve quota for a workload, and nominate the nodes on which it waits for its victims.
    NominateNodes,
    /// Direct a pod to a node.
    NominatePodNode,
    /// State on a pod why it is deleted.
    MarkVictimPod,
    /// Evict or delete a pod for its room on a node.
    EvictPod,
    /// Mark a pod of a preempted workload, or on a node that is needed, so that another component deletes it.
    SoftEvictPod,
}

impl WritePurpose {
    /// All purposes.
    pub const ALL: [Self; 34] = [
        Self::CreateWorkload,
        Self::UpdateWorkload,
        Self::DeleteWorkload,
        Self::Admit,
        Self::Evict,
        Self::Release,
        Self::ReadJob,
        Self::ReadPod,
        Self::ReadTemplates,
        Self::ReadPlacement,
        Self::StuckEviction,
        Self::Requeue,
        Self::Deactivate,
        Self::ReclaimPods,
        Self::PodsReady,
        Self::PodPriority,
        Self::Finish,
        Self::PendingReason,
        Self::StartJob,
        Self::SuspendJob,
        Self::StopPod,
        Self::ReportPodGroup,
        Self::PodGroupProblem,
        Self::ResetJob,
        Self::RestoreJob,
        Self::QueueStatus,
        Self::JobKindStatus,
        Self::Finalizer,
        Self::Event,
        Self::NominateNodes,
        Self::NominatePodNode,
        Self::MarkVictimPod,
        Self::EvictPod,
        Self::SoftEvictPod,
    ];

    /// The name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateWorkload => "create_workload",
            Self::UpdateWorkload => "update_workload",
            Self::DeleteWorkload => "delete_workload",
            Self::Admit => "admit",
            Self::Evict => "evict",
            Self::Release => "release",
            Self::ReadJob => "read_job",
            Self::ReadPod => "read_pod",
            Self::ReadTemplates => "read_templates",
            Self::ReadPlacement => "read_placement",
            Self::StuckEviction => "stuck_eviction",
            Self::Requeue => "requeue",
            Self::Deactivate => "deactivate",
            Self::ReclaimPods => "reclaim_pods",
            Self::PodsReady => "pods_ready",
            Self::PodPriority => "pod_priority",
            Self::Finish => "finish",
            Self::PendingReason => "pending_reason",
            Self::StartJob => "start_job",
            Self::SuspendJob => "suspend_job",
            Self::StopPod => "stop_pod",
            Self::ReportPodGroup => "report_pod_group",
            Self::PodGroupProblem => "pod_group_problem",
            Self::ResetJob => "reset_job",
            Self::RestoreJob => "restore_job",
            Self::QueueStatus => "queue_status",
            Self::JobKindStatus => "job_kind_status",
            Self::Finalizer => "finalizer",
            Self::Event => "event",
            Self::NominateNodes => "nominate_nodes",
            Self::NominatePodNode => "nominate_pod_node",
            Self::MarkVictimPod => "mark_victim_pod",
            Self::EvictPod => "evict_pod",
            Self::SoftEvictPod => "soft_evict_pod",
        }
    }

    /// Whether it writes the decision of a cycle.
    pub(super) const fn writes_decision(self) -> bool {
        matches!(self, Self::Admit | Self::Evict | Self::NominateNodes)
    }

    /// The priority: writes that free quota come before writes that use it, and reports come last.
    pub(super) const fn priority(self) -> WritePriority {
        match self {
            Self::Release
            | Self::ReclaimPods
            | Self::ReadJob
            | Self::ReadPod
            | Self::Finish
            | Self::SuspendJob
            | Self::StopPod
            | Self::ResetJob
            | Self::RestoreJob
            | Self::DeleteWorkload => WritePriority(0),
            Self::Evict
            | Self::Deactivate
            | Self::MarkVictimPod
            | Self::EvictPod
            | Self::SoftEvictPod => WritePriority(1),
            Self::Admit | Self::StartJob | Self::NominateNodes | Self::NominatePodNode => {
                WritePriority(2)
            }
            // After the starts and restorations that need the templates: the texts that were read must not replace each
            // other unused. Namespaces take turns with their new workloads.
            Self::ReadPlacement
            | Self::CreateWorkload
            | Self::UpdateWorkload
            | Self::Requeue
            | Self::PodsReady
            | Self::PodPriority
            | Self::StuckEviction => WritePriority(3),
            // After the new workloads, for the same reason.
            Self::Finalizer | Self::ReadTemplates => WritePriority(4),
            Self::QueueStatus | Self::JobKindStatus | Self::ReportPodGroup => WritePriority(5),
            Self::Event => WritePriority(6),
            // One pod can change what all others of its group report.
            Self::PendingReason | Self::PodGroupProblem => WritePriority(7),
        }
    }
}

impl ObjectRef {
    /// The namespace; `None` for objects without one.
    pub(super) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Workload(key) | Self::LocalQueue(key) | Self::VictimPod(key) => {
                Some(key.namespace())
            }
            Self::Job(job) => Some(job.name.namespace()),
            _ => None,
        }
    }
}

/// The priority of a write; lower numbers are written first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WritePriority(u8);

/// The API call of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOp {
    /// Create the object.
    Create(Value),
    /// A merge patch (RFC 7386) of the object.
    Patch(Value),
    /// A merge patch of the status subresource.
    PatchStatus(Value),
    /// A strategic merge patch of the status of a pod: it keeps the conditions that it does not name.
    PatchPodConditions(Value),
    /// Evict a pod through the Eviction API, on condition of its uid.
    Evict {
        /// The uid of the pod.
        uid: String,
    },
    /// Delete the object, on condition of its uid.
    Delete {
        /// The uid of the object to delete.
        uid: String,
    },
    /// Read the job with this uid. If it does not exist, search for its pods: those that are not terminating, and
    /// have not ended.
    ReadJob {
        /// The kind of the job.
        kind: usize,
        /// The name of the job, if it is known; else it is found by its uid.
        name: Option<ObjectKey>,
        /// The namespace of the pods.
        namespace: String,
        /// The uid of the job.
        uid: String,
    },
}

/// The result of reading a job.
#[derive(Clone, Debug, PartialEq)]
pub enum JobRead {
    /// The job exists; with the index of its kind.
    Exists(usize, Box<JobView>),
    /// The job does not exist.
    Gone {
        /// Whether it has left pods.
        has_pods: bool,
    },
    /// The pods of a group that the controller has started and that run on without the queue label. Of many pods only
    /// some.
    StartedPods(Vec<JobView>),
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteRequest {
    /// The id that the result names.
    pub id: WriteId,
    /// The object.
    pub object: ObjectRef,
    /// The purpose.
    pub purpose: WritePurpose,
    /// The API call.
    pub op: WriteOp,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteResult {
    /// Success; the object has this resource version now.
    Done(u64),
    /// The job was read; nothing was written.
    Read(JobRead),
    /// Not written: the object has changed since the write was planned.
    Conflict,
    /// Not created: an object of this name exists.
    AlreadyExists,
    /// The object does not exist.
    NotFound,
    /// The API server rejects the write, and would reject a retry; with the reason.
    Rejected(String),
    /// The outcome is unknown, and the API server does not keep up or is away (429, 503, timeout, broken
    /// connection); with the reason.
    Failed(String),
    /// The outcome is unknown because of another error of the server, which may concern only this object, such as
    /// one from a webhook or for its size; with the reason.
    ServerError(String),
    /// Not sent: the controller runs in dry-run mode.
    DryRun,
}

/// The output of a poll.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The writes to begin.
    pub writes: Vec<WriteRequest>,
    /// When to poll again at the latest, in milliseconds since 1970; `None` if only an input changes anything.
    pub wake_at_ms: Option<i64>,
}

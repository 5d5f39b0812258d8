//! What the reconciler wants done.

use super::input::{JobKey, ObjectKey};
use serde_json::Value;

/// The number of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// The object that a write is about.
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
    /// An event about an object, by its number.
    Event(u64),
}

/// What a write is for. Metrics and reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WritePurpose {
    /// A workload for a job.
    CreateWorkload,
    /// A workload follows its job.
    UpdateWorkload,
    /// A workload without its job.
    DeleteWorkload,
    /// A workload is admitted.
    Admit,
    /// A workload is told to go.
    Evict,
    /// An evicted workload gives its quota back.
    Release,
    /// A workload may be tried again.
    Requeue,
    /// A workload is made inactive.
    Deactivate,
    /// Whether the pods are ready.
    PodsReady,
    /// A workload has finished.
    Finish,
    /// Why a workload waits.
    PendingReason,
    /// A job starts.
    StartJob,
    /// A job is suspended.
    SuspendJob,
    /// The start time of a suspended job goes, so that its template may change.
    ResetJob,
    /// The template of a stopped job is again what it was.
    RestoreJob,
    /// The status of a queue or cohort.
    QueueStatus,
    /// An object that nothing uses any more may go.
    Finalizer,
    /// An event.
    Event,
}

impl WritePurpose {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::CreateWorkload,
        Self::UpdateWorkload,
        Self::DeleteWorkload,
        Self::Admit,
        Self::Evict,
        Self::Release,
        Self::Requeue,
        Self::Deactivate,
        Self::PodsReady,
        Self::Finish,
        Self::PendingReason,
        Self::StartJob,
        Self::SuspendJob,
        Self::ResetJob,
        Self::RestoreJob,
        Self::QueueStatus,
        Self::Finalizer,
        Self::Event,
    ];

    /// Its name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateWorkload => "create_workload",
            Self::UpdateWorkload => "update_workload",
            Self::DeleteWorkload => "delete_workload",
            Self::Admit => "admit",
            Self::Evict => "evict",
            Self::Release => "release",
            Self::Requeue => "requeue",
            Self::Deactivate => "deactivate",
            Self::PodsReady => "pods_ready",
            Self::Finish => "finish",
            Self::PendingReason => "notice",
            Self::StartJob => "start_job",
            Self::SuspendJob => "suspend_job",
            Self::ResetJob => "reset_job",
            Self::RestoreJob => "restore_job",
            Self::QueueStatus => "queue_status",
            Self::Finalizer => "finalizer",
            Self::Event => "event",
        }
    }

    /// Whether it writes what a cycle has decided.
    pub(super) const fn writes_decision(self) -> bool {
        matches!(self, Self::Admit | Self::Evict)
    }

    /// How urgent it is; the lowest first. What frees quota goes before what takes it, and news for people
    /// come last.
    pub(super) const fn priority(self) -> WritePriority {
        match self {
            Self::Release
            | Self::Finish
            | Self::SuspendJob
            | Self::ResetJob
            | Self::RestoreJob
            | Self::DeleteWorkload => WritePriority(0),
            Self::Evict | Self::Deactivate => WritePriority(1),
            Self::Admit | Self::StartJob => WritePriority(2),
            Self::CreateWorkload | Self::UpdateWorkload | Self::Requeue | Self::PodsReady => {
                WritePriority(3)
            }
            Self::Finalizer => WritePriority(4),
            Self::QueueStatus => WritePriority(5),
            Self::Event => WritePriority(6),
            Self::PendingReason => WritePriority(7),
        }
    }
}

/// How urgent a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WritePriority(u8);

/// How an object is written.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteOp {
    /// It is made.
    Create(Value),
    /// A merge patch (RFC 7386) of it.
    Patch(Value),
    /// A merge patch of its status.
    PatchStatus(Value),
    /// It is deleted, if it still has this uid.
    Delete {
        /// The uid.
        uid: String,
    },
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteRequest {
    /// Its number; the answer names it.
    pub id: WriteId,
    /// The object.
    pub object: ObjectRef,
    /// What for.
    pub purpose: WritePurpose,
    /// How.
    pub op: WriteOp,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It was done; the object has this resource version now.
    Done(u64),
    /// Somebody else was first: it was not done.
    Conflict,
    /// There is an object of this name already.
    AlreadyExists,
    /// There is no such object.
    NotFound,
    /// It was refused, and would be again. Why.
    Rejected(String),
    /// Nobody knows whether it was done: no answer, or the server has other worries. Why.
    Failed(String),
    /// It was only reported.
    DryRun,
}

/// What is to be done now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The writes to begin.
    pub writes: Vec<WriteRequest>,
    /// When to ask again at the latest, in milliseconds since 1970; `None` if only an input changes
    /// anything.
    pub wake_at_ms: Option<i64>,
}

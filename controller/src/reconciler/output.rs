//! What the reconciler wants done.

use super::input::{JobName, Name};
use serde_json::Value;

/// The number of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The object that a write is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A workload.
    Workload(Name),
    /// A job.
    Job(JobName),
    /// A ClusterQueue.
    ClusterQueue(String),
    /// A Cohort.
    Cohort(String),
    /// A LocalQueue.
    LocalQueue(Name),
    /// A `ResourceFlavor`.
    ResourceFlavor(String),
    /// An event about an object, by its number.
    Event(u64),
}

/// What a write is for. Metrics and reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
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
    Notice,
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

impl What {
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
        Self::Notice,
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
            Self::Notice => "notice",
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
    pub(super) const fn is_of_order(self) -> bool {
        matches!(self, Self::Admit | Self::Evict)
    }

    /// How urgent it is; the lowest first. What frees quota goes before what takes it, and news for people
    /// come last.
    pub(super) const fn rank(self) -> Rank {
        match self {
            Self::Release
            | Self::Finish
            | Self::SuspendJob
            | Self::ResetJob
            | Self::RestoreJob
            | Self::DeleteWorkload => Rank(0),
            Self::Evict | Self::Deactivate => Rank(1),
            Self::Admit | Self::StartJob => Rank(2),
            Self::CreateWorkload | Self::UpdateWorkload | Self::Requeue | Self::PodsReady => {
                Rank(3)
            }
            Self::Finalizer => Rank(4),
            Self::QueueStatus => Rank(5),
            Self::Event => Rank(6),
            Self::Notice => Rank(7),
        }
    }
}

/// How urgent a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u8);

/// How an object is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
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
pub struct Write {
    /// Its number; the answer names it.
    pub ticket: Ticket,
    /// The object.
    pub target: Target,
    /// What for.
    pub what: What,
    /// How.
    pub verb: Verb,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done; the object has this resource version now.
    Done(u64),
    /// Somebody else was first: it was not done.
    Conflict,
    /// There is an object of this name already.
    Exists,
    /// There is no such object.
    Absent,
    /// It was refused, and would be again. Why.
    Refused(String),
    /// Nobody knows whether it was done: no answer, or the server has other worries. Why.
    Failed(String),
    /// It was only reported.
    DryRun,
}

/// What is to be done now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The writes to begin.
    pub writes: Vec<Write>,
    /// When to ask again at the latest, in milliseconds since 1970; `None` if only an input changes
    /// anything.
    pub wake_at_ms: Option<i64>,
}

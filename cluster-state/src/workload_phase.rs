//! The phase of a workload in the cluster state.

/// The phase of a workload in the cluster state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadPhase {
    /// Pending in its queue.
    Pending,
    /// In backoff until this time, in seconds since 1970.
    OnHold(i64),
    /// It has quota.
    Admitted,
    /// Not in the core's state.
    NotQueued(NotQueuedReason),
}

/// Why a workload is not in the core's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotQueuedReason {
    /// It has finished.
    Finished,
    /// It is deactivated (`spec.active`).
    Inactive,
    /// It names no LocalQueue, or one that does not exist.
    NoLocalQueue,
    /// The ClusterQueue of its LocalQueue does not exist or is invalid.
    NoClusterQueue,
    /// Its LocalQueue is stopped.
    LocalQueueStopped,
    /// One of its PriorityClasses does not exist.
    NoPriorityClass,
    /// Its queues do not allow one of its PriorityClasses.
    PriorityClassNotAllowed,
}

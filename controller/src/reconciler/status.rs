//! Statuses that the controller writes: conditions, and the fields beside them.

pub(super) mod conditions;
pub(super) mod job_kind;
pub(super) mod pending_reason;
pub(super) mod pod_priorities;
pub(super) mod queue;
pub(super) mod scheduling_stats;
pub(super) mod stuck_eviction;
pub(super) mod workload;

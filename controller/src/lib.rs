//! The controller: admits workloads against quota, preempts and requeues them, and starts and stops their
//! jobs.
//!
//! [`Reconciler`] plans and does no I/O: watch events and results of writes go in, writes and the time of the
//! next poll come out. It has no clock, no client and no async runtime, so that a run can be replayed bit for
//! bit. [`job_adapters`] has one file per kind of job. [`run`] is the rest: watches, writes, leader election.

pub mod job_adapters;
mod key;
mod pod_default_changes;
pub mod preview;
mod reconciler;
mod runtime;

pub use key::{JobKey, Kind, ObjectKey};
pub use reconciler::{
    AdoptionState, Change, Counters, DeclaredJobKind, DefinitionCheck, EventBatch, Eviction, Input,
    JobRead, ObjectRef, Output, QuotaUsage, Reconciler, Settings, WriteId, WriteOp, WritePurpose,
    WriteRequest, WriteResult, adoption_admission_patch, adoption_label_patch, adoption_manifest,
    adoption_request_patch, adoption_state, manifest_of_job,
};
pub use runtime::{
    DecisionLogTarget, Health, LeaseSettings, LeaseTiming, LivePreview, RunError, RunSettings, run,
};

//! The controller: workloads are admitted against quota, preempted and requeued, and their jobs started and
//! stopped.
//!
//! [`run`] does the rest: watches, writes, the lease.
//!
//! [`Reconciler`] decides, and does nothing else: what watches see and what became of writes go in, writes
//! and the time to ask again come out. It knows no clock, no client and no runtime, so that a run can be
//! replayed bit for bit. [`jobs`] are the kinds of jobs it can start and stop, one file each.

pub mod job_adapters;
mod reconciler;
mod runtime;

pub use reconciler::{
    Change, Counters, Input, JobKey, Kind, ObjectKey, ObjectRef, Output, Reconciler, Settings,
    WriteId, WriteOp, WritePurpose, WriteRequest, WriteResult,
};
pub use runtime::{Health, LeaseSettings, LeaseTiming, RunError, RunSettings, run};

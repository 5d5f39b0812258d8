//! Backfill: workloads behind the blocked head of a `StrictFIFO` queue start if they do not delay it.
//!
//! The head of a `StrictFIFO` queue blocks its queue while it does not fit, so free quota stays idle. If the running
//! workloads have an enforced maximum execution time, the time at which the head fits at the latest is known. A cycle then
//! plans the start of the head for that time, and admits workloads behind it that fit now and leave room for the planned
//! start: they end before it, or fit beside it.
//!
//! - [`BackfillPolicy::Easy`] plans the start of the head only (EASY backfilling, Lifka 1995).
//! - [`BackfillPolicy::Conservative`] plans the starts of the workloads behind it, too, in queue order: a workload that starts
//!   early delays none of them. As in Slurm, each cycle plans all of them again, so only the start of the head never moves
//!   back.
//!
//! # Rules
//!
//! - A head that preempts, waits for its victims or still searches for a flavor plans nothing, and nothing passes it.
//! - A head without a planned start, as it fits only after the end of a workload that may run for ever, blocks its queue as
//!   without backfill.
//! - A workload without a limit counts as running for ever. So does one that exceeds its limit or is being evicted, until
//!   it releases its quota.
//! - Backfill never preempts and never admits fewer pods than requested. The policies of preemption apply to the workloads
//!   that it admits.
//! - Plans consider all running workloads of a tree of cohorts, and the planned starts of its other `StrictFIFO` queues with
//!   backfill. Queues of the tree without backfill may still borrow what is planned.
//!
//! # Bound
//!
//! The planned start of the head is a bound ([`StartBound`]) if it is within quota that no other queue can borrow: the queue
//! has no cohort, or does not lend that quota. The plan prefers such a start to an earlier one on borrowed quota, which the
//! head takes as well if it is still free then.
//!
//! The head starts at that time at the latest, plus the time that the pods of running workloads take to stop, unless a
//! workload comes ahead of it in the queue, or the quota is reduced. Proof: when the plan is made, the workloads of the queue
//! that still run at that time leave room for the head within that quota, and a cycle admits behind the head only if that
//! stays true. Running workloads only end before their limits, which frees quota. So every later plan begins no later.
//!
//! # Cost
//!
//! For each head without quota in a queue with backfill: the running workloads of the tree times the logarithm of their
//! number, and the flavor search of the head for each time at which some of them end. For each workload behind it: one flavor
//! search, and a check for each of these times until its own end; with the conservative policy a flavor search for each of
//! them at which it may fit; if each resource group has one flavor, only the free quota is compared there. A flavor search for
//! a plan never searches for victims.

use crate::ids::{NodeId, WorkloadId};

/// Which pending workloads of a `StrictFIFO` queue have a planned start while its head does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackfillPolicy {
    /// The head.
    Easy,
    /// The head and those behind it, in queue order.
    Conservative,
}

/// Backfill of a `StrictFIFO` queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backfill {
    /// Which workloads have a planned start.
    pub policy: BackfillPolicy,
    /// The number of workloads behind the head that are considered.
    pub workloads_max: u32,
}

/// The planned start of the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartBound {
    /// The head.
    pub workload: WorkloadId,
    /// Its queue.
    pub queue: NodeId,
    /// The planned start, in seconds.
    pub starts_by_s: i64,
    /// Whether other queues cannot delay it.
    pub is_guaranteed: bool,
}

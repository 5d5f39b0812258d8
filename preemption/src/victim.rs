//! Victims, and the reasons that protect a candidate.

use crate::ids::WorkloadId;

/// The reason for preempting a workload, in the words of Kueue's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionReason {
    /// It is in the preemptor's queue.
    InClusterQueue,
    /// Its queue borrows, and the preemptor reclaims quota of its own queue or cohort.
    InCohortReclamation,
    /// Its queue borrows, and so may the preemptor (`borrowWithinCohort`).
    InCohortReclaimWhileBorrowing,
    /// Its queue has a larger share of the cohort than the preemptor's.
    InCohortFairSharing,
}

impl PreemptionReason {
    /// Returns the reason as in the conditions of the object.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InClusterQueue => "InClusterQueue",
            Self::InCohortReclamation => "InCohortReclamation",
            Self::InCohortReclaimWhileBorrowing => "InCohortReclaimWhileBorrowing",
            Self::InCohortFairSharing => "InCohortFairSharing",
        }
    }
}

/// A workload to preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Victim {
    /// The workload.
    pub workload: WorkloadId,
    /// The reason.
    pub reason: PreemptionReason,
}

/// The reason for protecting a candidate that the policy permits to preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protection {
    /// It is non-preemptible, and its queue is elastic.
    NonPreemptible,
    /// It is being evicted for another preemptor, and its quota is held for that preemptor.
    EvictedForAnother,
    /// The preemptor has preempted it before, and the workload that preempted the preemptor since still
    /// exists: another preemption could start a loop.
    PreemptedBefore,
    /// It has not reached the minimum run time of its queue.
    BelowMinRuntime {
        /// Its run time, in seconds.
        runtime_s: i64,
        /// The minimum run time, in seconds.
        min_runtime_s: i64,
    },
    /// It has reached the limit of preemptions of its queue.
    PreemptedTooOften {
        /// The number of its preemptions.
        times: u32,
    },
}

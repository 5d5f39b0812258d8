//! Who has to go, and who is spared.

use crate::ids::WorkloadId;

/// Why a workload is a victim, in the words of Kueue's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionReason {
    /// It is in the preemptor's queue.
    InClusterQueue,
    /// Its queue borrows, and the preemptor takes back quota of its own or of its cohort.
    InCohortReclamation,
    /// Its queue borrows, and so may the preemptor (`borrowWithinCohort`).
    InCohortReclaimWhileBorrowing,
    /// Its queue has a larger share of the cohort than the preemptor's.
    InCohortFairSharing,
}

impl PreemptionReason {
    /// The machine reason, as in conditions.
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

/// A workload that has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Victim {
    /// The workload.
    pub workload: WorkloadId,
    /// Why it.
    pub reason: PreemptionReason,
}

/// Why a workload that the policy would let go is spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protection {
    /// It is non-preemptible, and its queue elastic.
    NonPreemptible,
    /// It goes for another preemptor already, and its quota is held for that one.
    EvictedForAnother,
    /// The preemptor took it once before, and what took the preemptor's place since is still there: to
    /// take it again would go on in a circle.
    PreemptedBefore,
    /// It has not run for long enough.
    BelowMinRuntime {
        /// How long it has run, in seconds.
        runtime_s: i64,
        /// How long it must have, in seconds.
        min_runtime_s: i64,
    },
    /// It was preempted as often as its queue allows.
    PreemptedTooOften {
        /// How often.
        times: u32,
    },
}

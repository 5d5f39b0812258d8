//! Who has to go, and who is spared.

use crate::names::WorkloadId;

/// Why a workload is a victim, in the words of Kueue's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is in the preemptor's queue.
    InClusterQueue,
    /// Its queue borrows, and the preemptor takes back quota of its own or of its cohort.
    InCohortReclamation,
    /// Its queue borrows, and so may the preemptor (`borrowWithinCohort`).
    InCohortReclaimWhileBorrowing,
    /// Its queue has a larger share of the cohort than the preemptor's.
    InCohortFairSharing,
}

impl Reason {
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
    pub reason: Reason,
}

/// Why a workload that the policy would let go is spared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spared {
    /// It is non-preemptible, and its queue elastic.
    NonPreemptible,
    /// It goes for another preemptor already, and its quota is held for that one.
    Promised,
    /// The preemptor took it once before, and what took the preemptor's place since is still there: to
    /// take it again would go on in a circle.
    TakenBefore,
    /// It has not run for long enough.
    RunsTooShort {
        /// How long it has run, in seconds.
        for_s: i64,
        /// How long it must have, in seconds.
        least_s: i64,
    },
    /// It was preempted as often as its queue allows.
    PreemptedTooOften {
        /// How often.
        times: u32,
    },
}

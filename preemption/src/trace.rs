//! What was considered, in order: the story of a decision.
//!
//! A trace that is off costs a test of a flag. The records are numbers, not text: who prints them
//! asks the `State` for names.

use crate::amount::Amount;
use crate::ids::{FlavorId, FlavorResource, NodeId, WorkloadId};
use crate::victim::{PreemptionReason, Protection};

/// One step of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// All pods do not fit; it is tried with fewer, and what follows is about these.
    FewerPods {
        /// How many of each pod set.
        counts: Vec<i64>,
    },
    /// A flavor was tried for the resources of a group of a pod set.
    Flavor {
        /// The position of the pod set.
        pod_set: usize,
        /// The flavor.
        flavor: FlavorId,
        /// What came of it.
        verdict: FlavorVerdict,
    },
    /// A search for victims began.
    Search {
        /// What does not fit.
        needs: Vec<FlavorResource>,
    },
    /// Its queue is elastic, and labels or policy of its pods forbid it to preempt.
    MayNotPreempt,
    /// Even all that may be taken does not make room.
    CannotSucceed,
    /// It might not be, were it not for the thresholds of the preemptor's queue.
    Thresholds {
        /// The highest priority that may be taken in the queue itself.
        within_max: Option<i32>,
        /// The highest priority that may be taken in other queues.
        reclaim_max: Option<i32>,
    },
    /// Candidates were tried, in order.
    Attempt {
        /// Whether the preemptor may borrow.
        may_borrow: bool,
    },
    /// A candidate was looked at.
    Candidate {
        /// The workload.
        workload: WorkloadId,
        /// How it would be a victim.
        reason: PreemptionReason,
        /// What came of it.
        verdict: CandidateVerdict,
    },
    /// A workload that the policy would let go is spared.
    Protected {
        /// The workload.
        workload: WorkloadId,
        /// Why.
        protection: Protection,
    },
    /// Quota is held for another, who waits for its victims to go.
    QuotaHeld {
        /// For whom.
        preemptor: WorkloadId,
        /// How much.
        amounts: Vec<(FlavorResource, Amount)>,
    },
    /// What was decided before stands: some of its victims have gone, the others are on their way.
    DecisionRetained,
    /// It takes the quota that is held for another, of lower priority.
    Displaced {
        /// For whom it was held.
        preemptor: WorkloadId,
    },
    /// More would have to go than may in one cycle, even if nobody else went.
    ExceedsVictimLimit {
        /// How many would have to go.
        victims: u32,
        /// How many may.
        victims_max: u32,
    },
    /// The candidates of a queue that are left were passed over.
    Queue {
        /// The queue.
        queue: NodeId,
        /// Why.
        verdict: QueueVerdict,
    },
    /// A victim was let off: it fits without.
    FilledBack {
        /// The workload.
        workload: WorkloadId,
    },
    /// The search ended.
    SearchEnded {
        /// Whether it found victims.
        found: bool,
    },
}

/// What came of a flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlavorVerdict {
    /// The pod set cannot run there: a taint, the affinity, or no such flavor.
    Ineligible,
    /// It was not among those that the workload was nominated for.
    NotNominated,
    /// More is asked for than could ever be had.
    ExceedsMaxQuota {
        /// Of which resource.
        of: FlavorResource,
        /// How much, with what pod sets before it ask for.
        requested: Amount,
        /// The most there could be.
        potential: Amount,
    },
    /// It is non-preemptible, and the min of its elastic queue would be passed.
    ExceedsMin {
        /// Of which resource.
        of: FlavorResource,
        /// What non-preemptible workloads would use with it.
        sum: Amount,
        /// How much they may: the nominal quota.
        min: Amount,
    },
    /// It is preemptible, and the max of its elastic queue would be passed.
    ExceedsMax {
        /// Of which resource.
        of: FlavorResource,
        /// What preemptible workloads would use with it, and what is kept for the others.
        sum: Amount,
        /// What of that is kept for the non-preemptible.
        reserved: Amount,
        /// How much there may be: the nominal quota and the borrowing limit.
        max: Amount,
    },
    /// Not enough is free, and preemption is not allowed to help.
    WaitingForQuota {
        /// Of which resource.
        of: FlavorResource,
        /// How much is asked for.
        requested: Amount,
        /// How much is free.
        available: Amount,
    },
    /// It would do.
    Possible {
        /// The worst of its resources.
        possibility: Possibility,
        /// How far it borrows: 0 not at all, 1 from its cohort, and so on up.
        borrowing_level: u32,
    },
}

/// How a workload gets a resource of a flavor, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Possibility {
    /// Not at all.
    NoFit,
    /// Others would have to go, and nobody may be taken.
    NoCandidates,
    /// Others have to go, some of them from its own queue.
    Preempt,
    /// Others have to go, all of them from queues that borrow.
    Reclaim,
    /// It is free.
    Fit,
}

/// What came of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CandidateVerdict {
    /// It goes, unless it is let off.
    Selected,
    /// It is of equal priority and not newer than the preemptor.
    NotNewer,
    /// The preemptor would borrow, and may not do so at its cost.
    NotWhileBorrowing,
    /// The preemptor's share would not stay below.
    ShareTooLarge,
}

/// Why a queue's candidates were passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueVerdict {
    /// It, or a cohort above it, no longer borrows.
    NoLongerBorrows,
    /// The rest has too high a priority.
    PriorityTooHigh,
    /// The rest has a priority above the threshold of the preemptor's queue.
    AboveThreshold {
        /// The threshold.
        threshold_max: i32,
    },
}

/// A place for steps, or none.
#[derive(Clone, Debug)]
pub struct Trace<S = Step> {
    steps: Option<Vec<S>>,
}

impl<S> Default for Trace<S> {
    fn default() -> Self {
        Self::off()
    }
}

impl<S> Trace<S> {
    /// Keeps nothing.
    #[must_use]
    pub const fn off() -> Self {
        Self { steps: None }
    }

    /// Keeps all.
    #[must_use]
    pub const fn on() -> Self {
        Self {
            steps: Some(Vec::new()),
        }
    }

    /// What was kept.
    #[must_use]
    pub fn steps(&self) -> &[S] {
        self.steps.as_deref().unwrap_or_default()
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.steps.is_some()
    }

    #[inline]
    pub(crate) fn record(&mut self, step: impl FnOnce() -> S) {
        if let Some(steps) = &mut self.steps {
            steps.push(step());
        }
    }
}

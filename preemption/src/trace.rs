//! The trace of a decision: every step that it considered, in order.
//!
//! A disabled trace costs the test of a flag. Steps contain ids; the code that prints them looks up the
//! names in the [`State`](crate::State).

use crate::amount::Amount;
use crate::ids::{FlavorId, FlavorResource, NodeId, WorkloadId};
use crate::victim::{PreemptionReason, Protection};

/// One step of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Not all pods fit; the following steps try fewer.
    FewerPods {
        /// The number of pods of each pod set.
        counts: Vec<i64>,
    },
    /// A flavor was tried for the resources of a group of a pod set.
    Flavor {
        /// The position of the pod set.
        pod_set: usize,
        /// The flavor.
        flavor: FlavorId,
        /// The result.
        verdict: FlavorVerdict,
    },
    /// A search for victims began.
    Search {
        /// The flavors and resources that do not fit.
        needs: Vec<FlavorResource>,
    },
    /// Its queue is elastic, and labels or policy of its pods forbid it to preempt.
    MayNotPreempt,
    /// Even all candidates together do not free enough quota.
    CannotSucceed,
    /// The search could succeed without the priority thresholds of the preemptor's queue.
    Thresholds {
        /// The highest priority that may be preempted in the queue itself.
        within_max: Option<i32>,
        /// The highest priority that may be preempted in other queues.
        reclaim_max: Option<i32>,
    },
    /// Candidates were tried, in order.
    Attempt {
        /// Whether the preemptor may borrow.
        may_borrow: bool,
    },
    /// A candidate was considered.
    Candidate {
        /// The workload.
        workload: WorkloadId,
        /// The reason for preempting it.
        reason: PreemptionReason,
        /// The result.
        verdict: CandidateVerdict,
    },
    /// A candidate that the policy permits is protected.
    Protected {
        /// The workload.
        workload: WorkloadId,
        /// The reason.
        protection: Protection,
    },
    /// Quota is held for another preemptor that waits for its victims.
    QuotaHeld {
        /// The preemptor.
        preemptor: WorkloadId,
        /// How much.
        amounts: Vec<(FlavorResource, Amount)>,
    },
    /// The earlier decision is kept: some of its victims have released their quota, the others are being
    /// evicted.
    DecisionRetained,
    /// It takes over the quota held for a preemptor of lower priority.
    Displaced {
        /// The preemptor that loses its hold.
        preemptor: WorkloadId,
    },
    /// It needs more victims than the limit per cycle, even as the only preemptor.
    ExceedsVictimLimit {
        /// The number of victims.
        victims: u32,
        /// The limit.
        victims_max: u32,
    },
    /// The remaining candidates of a queue were skipped.
    Queue {
        /// The queue.
        queue: NodeId,
        /// The reason.
        verdict: QueueVerdict,
    },
    /// A victim was taken off the list: the preemptor fits without it.
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

/// The result for a flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlavorVerdict {
    /// The pod set cannot run there: a taint, the affinity, or no such flavor.
    Ineligible,
    /// It was not among those that the workload was nominated for.
    NotNominated,
    /// The request exceeds the potential quota.
    ExceedsMaxQuota {
        /// Of which resource.
        of: FlavorResource,
        /// The request, with the requests of earlier pod sets.
        requested: Amount,
        /// The most there could be.
        potential: Amount,
    },
    /// It is non-preemptible, and the min of its elastic queue would be passed.
    ExceedsMin {
        /// Of which resource.
        of: FlavorResource,
        /// The usage of non-preemptible workloads with it.
        sum: Amount,
        /// How much they may: the nominal quota.
        min: Amount,
    },
    /// It is preemptible, and the max of its elastic queue would be passed.
    ExceedsMax {
        /// Of which resource.
        of: FlavorResource,
        /// The usage of preemptible workloads with it, plus `reserved`.
        sum: Amount,
        /// The quota reserved for non-preemptible workloads.
        reserved: Amount,
        /// How much there may be: the nominal quota and the borrowing limit.
        max: Amount,
    },
    /// Not enough is free, and preemption is not allowed to help.
    WaitingForQuota {
        /// Of which resource.
        of: FlavorResource,
        /// The request.
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
    /// It needs preemption, and there are no candidates.
    NoCandidates,
    /// Others have to go, some of them from its own queue.
    Preempt,
    /// Others have to go, all of them from queues that borrow.
    Reclaim,
    /// It is free.
    Fit,
}

/// The result for a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CandidateVerdict {
    /// It is a victim, unless fill-back removes it.
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

//! The trace of a decision: every step that it considered, in order.
//!
//! A disabled trace costs the test of a flag. Steps contain ids; the code that prints them looks up the
//! names in the [`State`](crate::State).

use crate::amount::Amount;
use crate::ids::{FlavorId, FlavorResource, NodeId, ResourceId, WorkloadId};
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
    /// The queue does not cover a requested resource.
    ResourceNotCovered {
        /// The position of the pod set.
        pod_set: usize,
        /// The resource; [`ResourceId::UNKNOWN`] if no queue covers it.
        resource: ResourceId,
    },
    /// A search for victims began.
    Search {
        /// The flavors and resources that do not fit.
        needs: Vec<FlavorResource>,
    },
    /// The preemption policy of the preemptor is `Never`, or its queue is elastic and the labels of its pods do not
    /// permit it to preempt.
    MayNotPreempt,
    /// The preemptor has not waited as long as its queue requires.
    PreemptionDelayed {
        /// The second from which it may preempt.
        until_s: i64,
    },
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
        /// The held amounts.
        amounts: Vec<(FlavorResource, Amount)>,
    },
    /// The earlier decision is kept: some of its victims have released their quota, the others are being
    /// evicted.
    DecisionRetained,
    /// The workload displaces a preemptor of lower priority, and uses the quota held for it.
    Displaced {
        /// The preemptor that loses its hold.
        preemptor: WorkloadId,
    },
    /// The workload starts ahead of the blocked head of its queue, and does not delay it.
    Backfilled {
        /// The head.
        head: WorkloadId,
        /// The planned start of the head, in seconds.
        starts_by_s: i64,
    },
    /// The workload needs more victims than the limit per cycle, even as the only preemptor.
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
    /// The workload was not nominated for this flavor.
    NotNominated,
    /// The request exceeds the potential quota.
    ExceedsMaxQuota {
        /// Of which resource.
        of: FlavorResource,
        /// The request, with the requests of earlier pod sets.
        requested: Amount,
        /// The potential quota.
        potential: Amount,
    },
    /// The workload is non-preemptible, and the min of its elastic queue would be exceeded.
    ExceedsMin {
        /// Of which resource.
        of: FlavorResource,
        /// The usage of non-preemptible workloads with it.
        sum: Amount,
        /// The min: the nominal quota.
        min: Amount,
    },
    /// The workload is preemptible, and the max of its elastic queue would be exceeded.
    ExceedsMax {
        /// Of which resource.
        of: FlavorResource,
        /// The usage of preemptible workloads with it, plus `reserved`.
        sum: Amount,
        /// The quota reserved for non-preemptible workloads.
        reserved: Amount,
        /// The max: the nominal quota plus the borrowing limit.
        max: Amount,
    },
    /// Not enough quota is free, and the policy does not permit preemption for it.
    WaitingForQuota {
        /// Of which resource.
        of: FlavorResource,
        /// The request.
        requested: Amount,
        /// The free quota.
        available: Amount,
    },
    /// The flavor is possible.
    Possible {
        /// The worst possibility among its resources.
        possibility: Possibility,
        /// The height of the node that lends the quota; 0 means no borrowing, 1 from its cohort, and so on.
        borrowing_level: u32,
    },
}

/// The possibility of assigning a resource of a flavor, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Possibility {
    /// The request does not fit, with or without preemption.
    NoFit,
    /// It needs preemption, and there are no candidates.
    NoCandidates,
    /// It needs preemption, and some victims are in its own queue.
    Preempt,
    /// It needs preemption, and all victims are in borrowing queues.
    Reclaim,
    /// It fits on free quota.
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
    /// The preemptor would borrow, and its policy does not permit preempting this candidate then.
    NotWhileBorrowing,
    /// The preemptor's share would not satisfy the fair sharing strategy.
    ShareTooLarge,
}

/// Why a queue's remaining candidates were skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueVerdict {
    /// The queue, or a cohort above it, no longer borrows.
    NoLongerBorrows,
    /// The remaining candidates have too high a priority.
    PriorityTooHigh,
    /// The remaining candidates have a priority above the threshold of the preemptor's queue.
    AboveThreshold {
        /// The threshold.
        threshold_max: i32,
    },
}

/// A recorder of steps; a disabled one records none.
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
    /// Creates a disabled trace.
    #[must_use]
    pub const fn off() -> Self {
        Self { steps: None }
    }

    /// Creates a trace that records every step.
    #[must_use]
    pub const fn on() -> Self {
        Self {
            steps: Some(Vec::new()),
        }
    }

    /// Returns the recorded steps; none if the trace is disabled.
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

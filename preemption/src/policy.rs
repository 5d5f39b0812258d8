//! What a ClusterQueue's owner may choose.

/// Which workloads of its own queue a preemptor may take (`withinClusterQueue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithinClusterQueue {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Those, and those of equal priority that are newer in queue order.
    LowerOrNewerEqualPriority,
}

/// Which workloads of queues that borrow it may take (`reclaimWithinCohort`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReclaimWithinCohort {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Those of any priority.
    Any,
}

/// Which workloads of other queues it may take while it borrows itself
/// (`borrowWithinCohort`, KEP-1337).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BorrowWithinCohort {
    /// None.
    #[default]
    Never,
    /// Those of lower priority, and not above the threshold if there is one.
    LowerPriority {
        /// The highest priority that may be taken; `None` is no limit.
        threshold_max: Option<i32>,
    },
}

/// Limits of preemption that a ClusterQueue's owner may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionLimits {
    /// The highest priority that its workloads may take in the queue itself.
    pub within_threshold_max: Option<i32>,
    /// The highest priority that they may take in other queues of the cohort.
    pub reclaim_threshold_max: Option<i32>,
    /// Its workloads that run for less, in seconds, are spared by preemptors of the queue itself.
    pub min_run_within_s: Option<i64>,
    /// Its workloads that run for less, in seconds, are spared by preemptors of other queues.
    pub min_run_beyond_s: Option<i64>,
    /// Its workloads that were preempted as often are spared.
    pub preemptions_max: Option<u32>,
    /// How many of its workloads go in one cycle.
    pub victims_per_cycle_max: Option<u32>,
}

/// `spec.preemption` of a ClusterQueue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preemption {
    /// `withinClusterQueue`.
    pub within_cluster_queue: WithinClusterQueue,
    /// `reclaimWithinCohort`.
    pub reclaim_within_cohort: ReclaimWithinCohort,
    /// `borrowWithinCohort`.
    pub borrow_within_cohort: BorrowWithinCohort,
    /// Whom it spares all the same.
    pub limits: PreemptionLimits,
}

/// Whether the search for a flavor goes on after one that would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fungibility {
    /// It may stop there.
    MayStopSearch,
    /// The next flavor is looked at too.
    TryNextFlavor,
}

/// What is worse, if several flavors would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// Preempting is worse than borrowing. The default.
    #[default]
    BorrowingOverPreemption,
    /// Borrowing is worse than preempting.
    PreemptionOverBorrowing,
}

/// `spec.flavorFungibility` of a ClusterQueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorFungibility {
    /// After a flavor in which the workload would borrow.
    pub when_can_borrow: Fungibility,
    /// After a flavor in which it would preempt.
    pub when_can_preempt: Fungibility,
    /// Which of the two is preferred.
    pub preference: Preference,
}

impl Default for FlavorFungibility {
    fn default() -> Self {
        Self {
            when_can_borrow: Fungibility::MayStopSearch,
            when_can_preempt: Fungibility::TryNextFlavor,
            preference: Preference::default(),
        }
    }
}

/// What happens to a queue's head that cannot be admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueingStrategy {
    /// It blocks the queue.
    StrictFifo,
    /// It steps aside until something changes.
    #[default]
    BestEffortFifo,
}

/// When a preemptor may take from a queue that borrows more of its cohort than it (fair sharing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairStrategy {
    /// The preemptor's share with its workload is at most the other's share without the victim.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share with its workload is less than the other's share as it is.
    LessThanInitialShare,
}

/// By which rules victims are chosen, for all queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// By priority and borrowing.
    #[default]
    Classical,
    /// By dominant resource shares; the strategies are tried in their order.
    FairSharing(Vec<FairStrategy>),
}

/// Where what Kueue does is wrong, whether to do the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compatibility {
    /// Do what is right.
    #[default]
    Lockkeeper,
    /// Do exactly what Kueue does.
    Kueue,
}

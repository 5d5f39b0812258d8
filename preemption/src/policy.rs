//! The policies of a ClusterQueue.

/// The workloads of its own queue that a preemptor may preempt (`withinClusterQueue`).
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

/// The workloads of borrowing queues that a preemptor may preempt (`reclaimWithinCohort`).
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

/// The workloads of other queues that a preemptor may preempt while it borrows itself
/// (`borrowWithinCohort`, KEP-1337).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BorrowWithinCohort {
    /// None.
    #[default]
    Never,
    /// Those of lower priority, and not above the threshold if there is one.
    LowerPriority {
        /// The highest priority that may be preempted; `None` is no limit.
        threshold_max: Option<i32>,
    },
}

/// Limits of preemption that a ClusterQueue's owner may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreemptionLimits {
    /// The highest priority that its workloads may preempt in the queue itself.
    pub within_threshold_max: Option<i32>,
    /// The highest priority that they may preempt in other queues of the cohort.
    pub reclaim_threshold_max: Option<i32>,
    /// The minimum run time before a preemptor of the same queue may preempt its workloads, in seconds.
    pub min_run_within_s: Option<i64>,
    /// The minimum run time before a preemptor of another queue may preempt its workloads, in seconds.
    pub min_run_beyond_s: Option<i64>,
    /// The number of preemptions after which its workloads are protected.
    pub preemptions_max: Option<u32>,
    /// The most of its workloads that are preempted in one cycle; `None` is no limit.
    pub victims_per_cycle_max: Option<u32>,
    /// How long its workloads must wait before they may preempt, in seconds.
    pub delay_s: Option<i64>,
}

impl PreemptionLimits {
    /// Returns these limits, with those of `defaults` where none is set.
    pub(crate) fn or(self, defaults: Self) -> Self {
        Self {
            within_threshold_max: self.within_threshold_max.or(defaults.within_threshold_max),
            reclaim_threshold_max: self
                .reclaim_threshold_max
                .or(defaults.reclaim_threshold_max),
            min_run_within_s: self.min_run_within_s.or(defaults.min_run_within_s),
            min_run_beyond_s: self.min_run_beyond_s.or(defaults.min_run_beyond_s),
            preemptions_max: self.preemptions_max.or(defaults.preemptions_max),
            victims_per_cycle_max: self
                .victims_per_cycle_max
                .or(defaults.victims_per_cycle_max),
            delay_s: self.delay_s.or(defaults.delay_s),
        }
    }
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
    /// Limits beyond the policies.
    pub limits: PreemptionLimits,
}

/// Whether the search for a flavor continues after a suitable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fungibility {
    /// It may stop there.
    MayStopSearch,
    /// The next flavor is tried as well.
    TryNextFlavor,
}

/// The preference among several suitable flavors.
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
    /// The preference between borrowing and preempting.
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

/// The treatment of a head that cannot be admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueingStrategy {
    /// It blocks the queue.
    StrictFifo,
    /// It becomes inadmissible until something changes; the next workload becomes the head.
    #[default]
    BestEffortFifo,
}

/// The condition for preempting in a queue with a larger share than the preemptor's (fair sharing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairStrategy {
    /// The preemptor's share with its workload is at most the other's share without the victim.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share with its workload is less than the other's current share.
    LessThanInitialShare,
}

/// The algorithm that selects victims, for all queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// By priority and borrowing.
    #[default]
    Classical,
    /// By dominant resource shares; the strategies are tried in their order.
    FairSharing(Vec<FairStrategy>),
}

/// Whether to reproduce Kueue's known bugs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compatibility {
    /// Kueue's known bugs are fixed.
    #[default]
    Lockkeeper,
    /// Kueue's known bugs are reproduced.
    Kueue,
}

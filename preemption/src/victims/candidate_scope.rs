//! The candidates that the policy of a preemptor permits. The priority of a candidate is its preemption priority.

use super::preemptor::Preemptor;
use crate::admitted::AdmittedWorkload;
use crate::policy::{ReclaimWithinCohort, WithinClusterQueue};

/// The workloads that a policy permits a preemptor to preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CandidateScope {
    /// None.
    Empty,
    /// Those of a lower priority than this.
    Below(i32),
    /// Those, and those of this priority that are later than this time in queue order.
    BelowOrNewer(i32, i64),
    /// All.
    All,
}

impl CandidateScope {
    /// Returns the scope in the preemptor's own queue.
    pub(crate) fn for_own_queue(preemptor: &Preemptor<'_>) -> Self {
        let scope = match preemptor.policy.within_cluster_queue {
            WithinClusterQueue::Never => Self::Empty,
            WithinClusterQueue::LowerPriority => Self::Below(preemptor.priority),
            WithinClusterQueue::LowerOrNewerEqualPriority => {
                Self::BelowOrNewer(preemptor.priority, preemptor.order_time)
            }
        };
        scope.limited(preemptor.policy.limits.within_threshold_max)
    }

    /// Returns the scope in other queues.
    pub(crate) fn for_other_queues(preemptor: &Preemptor<'_>) -> Self {
        let scope = match preemptor.policy.reclaim_within_cohort {
            ReclaimWithinCohort::Never => Self::Empty,
            ReclaimWithinCohort::LowerPriority => Self::Below(preemptor.priority),
            ReclaimWithinCohort::Any => Self::All,
        };
        scope.limited(preemptor.policy.limits.reclaim_threshold_max)
    }

    /// Excludes workloads with a preemption priority above a threshold.
    pub(super) fn limited(self, threshold_max: Option<i32>) -> Self {
        // Thresholds are inclusive (KEP-1337); one of `i32::MAX` limits nothing.
        let Some(end) = threshold_max.and_then(|most| most.checked_add(1)) else {
            return self;
        };
        match self {
            Self::Empty => Self::Empty,
            Self::Below(limit) => Self::Below(limit.min(end)),
            // The preemptor's own priority is excluded, so times no longer matter.
            Self::BelowOrNewer(limit, _) if end <= limit => Self::Below(end),
            Self::BelowOrNewer(..) => self,
            Self::All => Self::Below(end),
        }
    }

    /// Returns whether no workload of this or a higher priority is in scope: a list in candidate order ends there.
    pub(crate) fn ends_at(self, priority: i32) -> bool {
        match self {
            Self::Empty => true,
            Self::Below(limit) => priority >= limit,
            Self::BelowOrNewer(limit, _) => priority > limit,
            Self::All => false,
        }
    }

    /// Returns whether every workload of this priority is in scope.
    pub(crate) fn includes_all_of(self, priority: i32) -> bool {
        match self {
            Self::Empty => false,
            Self::Below(limit) | Self::BelowOrNewer(limit, _) => priority < limit,
            Self::All => true,
        }
    }

    pub(crate) fn includes(self, running: &AdmittedWorkload) -> bool {
        match self {
            Self::Empty => false,
            Self::Below(limit) => running.preemption_priority < limit,
            Self::BelowOrNewer(limit, time) => {
                // Strictly later: workloads of the same time do not preempt each other.
                let priority = running.preemption_priority;
                priority < limit || (priority == limit && time < running.order_time)
            }
            Self::All => true,
        }
    }

    /// Returns a priority that is above all workloads in scope; `None` is no bound.
    pub(super) fn priority_bound(self) -> Option<i32> {
        match self {
            Self::Empty => Some(i32::MIN),
            Self::Below(limit) => Some(limit),
            // No priority is above `i32::MAX`, so the overflow to `None` is right.
            Self::BelowOrNewer(limit, _) => limit.checked_add(1),
            Self::All => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CandidateScope;
    use crate::admitted::AdmittedWorkload;
    use crate::ids::NodeId;
    use crate::job::PreemptionLabels;
    use crate::small_amounts::SmallAmounts;

    fn running(priority: i32, order_time: i64) -> AdmittedWorkload {
        AdmittedWorkload {
            queue: NodeId(0),
            usage_group: 0,
            amounts: SmallAmounts::new([].into_iter()),
            preemption_priority: priority,
            order_time,
            reserved_at_s: 0,
            ends_by_s: i64::MAX,
            is_evicted: false,
            preemption_labels: PreemptionLabels::default(),
        }
    }

    #[test]
    fn candidate_scope_of_priority_agrees_with_each_workload() {
        for (scope, expected) in [
            (CandidateScope::Empty, [false; 3]),
            (CandidateScope::Below(5), [false; 3]),
            (CandidateScope::Below(6), [true; 3]),
            (CandidateScope::BelowOrNewer(4, 20), [false; 3]),
            (CandidateScope::BelowOrNewer(5, 20), [false, false, true]),
            (CandidateScope::BelowOrNewer(6, 20), [true; 3]),
            (CandidateScope::All, [true; 3]),
        ] {
            let included = [19, 20, 21].map(|time| scope.includes(&running(5, time)));
            assert_eq!(included, expected, "{scope:?}");
            assert_eq!(scope.includes_all_of(5), included == [true; 3], "{scope:?}");
            assert_eq!(scope.ends_at(5), included == [false; 3], "{scope:?}");
            let is_in_bound = scope.priority_bound().is_none_or(|bound| 5 < bound);
            assert_eq!(is_in_bound, !scope.ends_at(5), "{scope:?}");
        }
    }
}

//! Who has to go so that a preemptor fits.
//!
//! Both algorithms answer the same question, [`Preemptor`] → victims, on a [`View`] of the quota tree
//! that they leave as it was:
//!
//! - [`classical`]: by priority, and from queues that borrow (KEP-83, KEP-1337, hierarchical cohorts);
//! - [`fair`]: by dominant resource shares (KEP-1714).
//!
//! In the end both let off whoever is not needed (fill-back), so no single victim can be spared.
//! It is all or nothing: victims that together do not make room are not victims.

pub(crate) mod classical;
pub(crate) mod fair;
mod fit;
mod merge;

use crate::admitted::AdmittedLookup;
use crate::admitted::{AdmittedIndex, AdmittedWorkload};
use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, NodeId, WorkloadId};
use crate::policy::{
    Algorithm, BorrowWithinCohort, Preemption, ReclaimWithinCohort, WithinClusterQueue,
};
use crate::quota::View;
use crate::spec::KueueBugs;
use crate::trace::{Step, Trace};
use crate::victim::{PreemptionReason, Protection, Victim};
use crate::victim_protection::VictimProtection;
use std::collections::BTreeSet;

/// Who wants room, and for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preemptor<'a> {
    pub(crate) queue: NodeId,
    pub(crate) priority: i32,
    /// Its time in queue order.
    pub(crate) order_time: i64,
    pub(crate) policy: Preemption,
    /// False if it may take nobody, whatever the policy.
    pub(crate) may_preempt: bool,
    /// What does not fit without preemption. Sorted.
    pub(crate) needs: &'a [FlavorResource],
    /// All that it asks for. Nothing is asked for twice, and nothing of zero.
    pub(crate) request: &'a [Demand],
}

impl Preemptor<'_> {
    /// Whether `borrowWithinCohort` lets it take a workload of this priority.
    fn may_borrow_from(&self, priority: i32) -> bool {
        match self.policy.borrow_within_cohort {
            BorrowWithinCohort::Never => false,
            BorrowWithinCohort::LowerPriority { threshold_max } => {
                priority < self.priority && threshold_max.is_none_or(|most| priority <= most)
            }
        }
    }
}

/// An amount of a flavor and resource that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) of: FlavorResource,
    /// The cell of the queue that asks.
    pub(crate) cell: CellId,
    pub(crate) amount: Amount,
}

/// What a search reads.
#[derive(Clone, Copy)]
pub(crate) struct SearchContext<'a> {
    pub(crate) index: &'a AdmittedIndex,
    pub(crate) admitted: &'a dyn AdmittedLookup,
    pub(crate) algorithm: &'a Algorithm,
    pub(crate) kueue_bugs: KueueBugs,
    /// Workloads that count as gone: victims of earlier entries of the cycle.
    pub(crate) removed: &'a BTreeSet<WorkloadId>,
    /// Says whom the preemptor spares.
    pub(crate) protection: VictimProtection<'a>,
}

impl SearchContext<'_> {
    /// Why the preemptor spares a candidate that its policy lets it take, if it does.
    fn protection(
        &self,
        preemptor: &Preemptor<'_>,
        id: WorkloadId,
        running: &AdmittedWorkload,
    ) -> Option<Protection> {
        let is_own_queue = running.queue == preemptor.queue;
        let guard = &self.protection;
        guard.protection(preemptor.priority, is_own_queue, id, running)
    }
}

/// The victims; empty if there is no permitted set that makes room. The view is left as it was.
pub(crate) fn search(
    view: &mut View<'_>,
    world: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> Vec<Victim> {
    if !preemptor.may_preempt {
        trace.record(|| Step::MayNotPreempt);
        return Vec::new();
    }
    let mark = view.mark();
    let victims = match world.algorithm {
        Algorithm::Classical => classical::search(view, world, preemptor, trace),
        Algorithm::FairSharing(strategies) => {
            fair::search(view, world, preemptor, strategies, trace)
        }
    };
    view.roll_back(mark);
    victims
}

/// Which workloads a policy lets a preemptor take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CandidateScope {
    /// None.
    Empty,
    /// Those of a lower priority than this.
    Below(i32),
    /// Those, and those of this priority that came into the queue after this time.
    BelowOrNewer(i32, i64),
    /// All.
    All,
}

impl CandidateScope {
    /// In the preemptor's own queue.
    pub(crate) fn for_own_queue(preemptor: &Preemptor<'_>) -> Self {
        let reach = match preemptor.policy.within_cluster_queue {
            WithinClusterQueue::Never => Self::Empty,
            WithinClusterQueue::LowerPriority => Self::Below(preemptor.priority),
            WithinClusterQueue::LowerOrNewerEqualPriority => {
                Self::BelowOrNewer(preemptor.priority, preemptor.order_time)
            }
        };
        reach.limited(preemptor.policy.limits.within_threshold_max)
    }

    /// In other queues.
    pub(crate) fn for_other_queues(preemptor: &Preemptor<'_>) -> Self {
        let reach = match preemptor.policy.reclaim_within_cohort {
            ReclaimWithinCohort::Never => Self::Empty,
            ReclaimWithinCohort::LowerPriority => Self::Below(preemptor.priority),
            ReclaimWithinCohort::Any => Self::All,
        };
        reach.limited(preemptor.policy.limits.reclaim_threshold_max)
    }

    /// Nobody above a threshold.
    fn limited(self, threshold_max: Option<i32>) -> Self {
        let Some(end) = threshold_max.and_then(|most| most.checked_add(1)) else {
            return self;
        };
        match self {
            Self::Empty => Self::Empty,
            Self::Below(limit) => Self::Below(limit.min(end)),
            Self::BelowOrNewer(limit, _) if end <= limit => Self::Below(end),
            Self::BelowOrNewer(..) => self,
            Self::All => Self::Below(end),
        }
    }

    /// Whether nobody of this priority or a higher one can be taken: the end of a sorted list.
    pub(crate) fn ends_at(self, priority: i32) -> bool {
        match self {
            Self::Empty => true,
            Self::Below(limit) => priority >= limit,
            Self::BelowOrNewer(limit, _) => priority > limit,
            Self::All => false,
        }
    }

    /// Whether everybody of this priority can be taken.
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
            Self::Below(limit) => running.priority < limit,
            Self::BelowOrNewer(limit, time) => {
                running.priority < limit || (running.priority == limit && time < running.order_time)
            }
            Self::All => true,
        }
    }

    /// The priority below which all are that it takes; `None` is no bound.
    fn priority_bound(self) -> Option<i32> {
        match self {
            Self::Empty => Some(i32::MIN),
            Self::Below(limit) => Some(limit),
            Self::BelowOrNewer(limit, _) => limit.checked_add(1),
            Self::All => None,
        }
    }
}

/// Whether even all that may be taken would not make room. Costs the number of distinct priorities;
/// never says so of a search that would succeed.
///
/// Freeing an amount anywhere in the tree makes at most that much more available at a queue.
pub(crate) fn cannot_succeed(
    view: &View<'_>,
    world: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
) -> bool {
    let node = view.tree.node(preemptor.queue);
    let (within, beyond) = (
        CandidateScope::for_own_queue(preemptor),
        CandidateScope::for_other_queues(preemptor),
    );
    preemptor.request.iter().any(|demand| {
        let available = view.available(demand.cell);
        if demand.amount <= available.or_zero() {
            return false;
        }
        let own = |bound| world.index.used_by_queue(preemptor.queue, demand.of, bound);
        let all = |bound| world.index.used_by_tree(node.root, demand.of, bound);
        let others = all(beyond.priority_bound()).minus(own(beyond.priority_bound()));
        let freed = own(within.priority_bound()).plus(others);
        demand.amount > available.plus(freed)
    })
}

/// Says that a search is in vain, and whether that is because of thresholds.
fn trace_cannot_succeed(
    view: &View<'_>,
    world: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) {
    if !trace.is_on() {
        return;
    }
    trace.record(|| Step::CannotSucceed);
    let mut unlimited = *preemptor;
    let limits = std::mem::take(&mut unlimited.policy.limits);
    if !cannot_succeed(view, world, &unlimited) {
        trace.record(|| Step::Thresholds {
            within_max: limits.within_threshold_max,
            reclaim_max: limits.reclaim_threshold_max,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{AdmittedWorkload, CandidateScope, NodeId};
    use crate::job::PreemptionLabels;
    use crate::small_amounts::SmallAmounts;

    fn running(priority: i32, order_time: i64) -> AdmittedWorkload {
        AdmittedWorkload {
            queue: NodeId(0),
            usage_group: 0,
            amounts: SmallAmounts::new([].into_iter()),
            priority,
            order_time,
            reserved_at_s: 0,
            is_evicted: false,
            preemption_labels: PreemptionLabels::default(),
        }
    }

    #[test]
    fn candidate_scope_of_priority_agrees_with_each_workload() {
        for (reach, taken_at_5) in [
            (CandidateScope::Empty, [false; 3]),
            (CandidateScope::Below(5), [false; 3]),
            (CandidateScope::Below(6), [true; 3]),
            (CandidateScope::BelowOrNewer(4, 20), [false; 3]),
            (CandidateScope::BelowOrNewer(5, 20), [false, false, true]),
            (CandidateScope::BelowOrNewer(6, 20), [true; 3]),
            (CandidateScope::All, [true; 3]),
        ] {
            let taken = [19, 20, 21].map(|time| reach.includes(&running(5, time)));
            assert_eq!(taken, taken_at_5, "{reach:?}");
            assert_eq!(reach.includes_all_of(5), taken == [true; 3], "{reach:?}");
            assert_eq!(reach.ends_at(5), taken == [false; 3], "{reach:?}");
            let is_in_bound = reach.priority_bound().is_none_or(|bound| 5 < bound);
            assert_eq!(is_in_bound, !reach.ends_at(5), "{reach:?}");
        }
    }
}

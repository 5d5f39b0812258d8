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

use crate::amount::Amount;
use crate::guard::Guard;
use crate::names::{CellId, FlavorResource, NodeId, WorkloadId};
use crate::policy::{
    Algorithm, BorrowWithinCohort, Preemption, ReclaimWithinCohort, WithinClusterQueue,
};
use crate::quota::View;
use crate::running::Workloads;
use crate::running::{Index, Running};
use crate::spec::FormerKueue;
use crate::trace::{Step, Trace};
use crate::victim::{Reason, Spared, Victim};
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
    pub(crate) may_trigger: bool,
    /// What does not fit without preemption. Sorted.
    pub(crate) needs: &'a [FlavorResource],
    /// All that it asks for. Nothing is asked for twice, and nothing of zero.
    pub(crate) request: &'a [Demand],
}

impl Preemptor<'_> {
    /// Whether `borrowWithinCohort` lets it take a workload of this priority.
    fn borrows_from(&self, priority: i32) -> bool {
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
pub(crate) struct World<'a> {
    pub(crate) index: &'a Index,
    pub(crate) running: &'a dyn Workloads,
    pub(crate) algorithm: &'a Algorithm,
    pub(crate) former: FormerKueue,
    /// Workloads that count as gone: victims of earlier entries of the cycle.
    pub(crate) gone: &'a BTreeSet<WorkloadId>,
    /// Says whom the preemptor spares.
    pub(crate) guard: Guard<'a>,
}

impl World<'_> {
    /// Why the preemptor spares a candidate that its policy lets it take, if it does.
    fn spares(
        &self,
        preemptor: &Preemptor<'_>,
        id: WorkloadId,
        running: &Running,
    ) -> Option<Spared> {
        let is_own_queue = running.queue == preemptor.queue;
        let guard = &self.guard;
        guard.spares(preemptor.priority, is_own_queue, id, running)
    }
}

/// The victims; empty if there is no permitted set that makes room. The view is left as it was.
pub(crate) fn search(
    view: &mut View<'_>,
    world: &World<'_>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> Vec<Victim> {
    if !preemptor.may_trigger {
        trace.note(|| Step::MayNotTrigger);
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
pub(crate) enum Reach {
    /// None.
    Nobody,
    /// Those of a lower priority than this.
    Below(i32),
    /// Those, and those of this priority that came into the queue after this time.
    BelowOrNewer(i32, i64),
    /// All.
    Anybody,
}

impl Reach {
    /// In the preemptor's own queue.
    pub(crate) fn within(preemptor: &Preemptor<'_>) -> Self {
        let reach = match preemptor.policy.within_cluster_queue {
            WithinClusterQueue::Never => Self::Nobody,
            WithinClusterQueue::LowerPriority => Self::Below(preemptor.priority),
            WithinClusterQueue::LowerOrNewerEqualPriority => {
                Self::BelowOrNewer(preemptor.priority, preemptor.order_time)
            }
        };
        reach.limited(preemptor.policy.limits.within_threshold_max)
    }

    /// In other queues.
    pub(crate) fn beyond(preemptor: &Preemptor<'_>) -> Self {
        let reach = match preemptor.policy.reclaim_within_cohort {
            ReclaimWithinCohort::Never => Self::Nobody,
            ReclaimWithinCohort::LowerPriority => Self::Below(preemptor.priority),
            ReclaimWithinCohort::Any => Self::Anybody,
        };
        reach.limited(preemptor.policy.limits.reclaim_threshold_max)
    }

    /// Nobody above a threshold.
    fn limited(self, threshold_max: Option<i32>) -> Self {
        let Some(end) = threshold_max.and_then(|most| most.checked_add(1)) else {
            return self;
        };
        match self {
            Self::Nobody => Self::Nobody,
            Self::Below(limit) => Self::Below(limit.min(end)),
            Self::BelowOrNewer(limit, _) if end <= limit => Self::Below(end),
            Self::BelowOrNewer(..) => self,
            Self::Anybody => Self::Below(end),
        }
    }

    /// Whether nobody of this priority or a higher one can be taken: the end of a sorted list.
    pub(crate) fn ends_at(self, priority: i32) -> bool {
        match self {
            Self::Nobody => true,
            Self::Below(limit) => priority >= limit,
            Self::BelowOrNewer(limit, _) => priority > limit,
            Self::Anybody => false,
        }
    }

    /// Whether everybody of this priority can be taken.
    pub(crate) fn takes_all_of(self, priority: i32) -> bool {
        match self {
            Self::Nobody => false,
            Self::Below(limit) | Self::BelowOrNewer(limit, _) => priority < limit,
            Self::Anybody => true,
        }
    }

    pub(crate) fn takes(self, running: &Running) -> bool {
        match self {
            Self::Nobody => false,
            Self::Below(limit) => running.priority < limit,
            Self::BelowOrNewer(limit, time) => {
                running.priority < limit || (running.priority == limit && time < running.order_time)
            }
            Self::Anybody => true,
        }
    }

    /// The priority below which all are that it takes; `None` is no bound.
    fn bound(self) -> Option<i32> {
        match self {
            Self::Nobody => Some(i32::MIN),
            Self::Below(limit) => Some(limit),
            Self::BelowOrNewer(limit, _) => limit.checked_add(1),
            Self::Anybody => None,
        }
    }
}

/// Whether even all that may be taken would not make room. Costs the number of distinct priorities;
/// never says so of a search that would succeed.
///
/// Freeing an amount anywhere in the tree makes at most that much more available at a queue.
pub(crate) fn is_in_vain(view: &View<'_>, world: &World<'_>, preemptor: &Preemptor<'_>) -> bool {
    let node = view.tree.node(preemptor.queue);
    let (within, beyond) = (Reach::within(preemptor), Reach::beyond(preemptor));
    preemptor.request.iter().any(|demand| {
        let available = view.available(demand.cell);
        if demand.amount <= available.or_zero() {
            return false;
        }
        let own = |bound| world.index.used_by_queue(preemptor.queue, demand.of, bound);
        let all = |bound| world.index.used_by_tree(node.root, demand.of, bound);
        let others = all(beyond.bound()).minus(own(beyond.bound()));
        let freed = own(within.bound()).plus(others);
        demand.amount > available.plus(freed)
    })
}

/// Says that a search is in vain, and whether that is because of thresholds.
fn note_in_vain(view: &View<'_>, world: &World<'_>, preemptor: &Preemptor<'_>, trace: &mut Trace) {
    if !trace.is_on() {
        return;
    }
    trace.note(|| Step::InVain);
    let mut unlimited = *preemptor;
    let limits = std::mem::take(&mut unlimited.policy.limits);
    if !is_in_vain(view, world, &unlimited) {
        trace.note(|| Step::Thresholds {
            within_max: limits.within_threshold_max,
            reclaim_max: limits.reclaim_threshold_max,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeId, Reach, Running};
    use crate::amounts::Amounts;
    use crate::job::Says;

    fn running(priority: i32, order_time: i64) -> Running {
        Running {
            queue: NodeId(0),
            group: 0,
            amounts: Amounts::of([].into_iter()),
            priority,
            order_time,
            reserved_at_s: 0,
            is_evicted: false,
            says: Says::default(),
        }
    }

    #[test]
    fn a_reach_says_of_a_priority_what_it_says_of_each_in_it() {
        for (reach, taken_at_5) in [
            (Reach::Nobody, [false; 3]),
            (Reach::Below(5), [false; 3]),
            (Reach::Below(6), [true; 3]),
            (Reach::BelowOrNewer(4, 20), [false; 3]),
            (Reach::BelowOrNewer(5, 20), [false, false, true]),
            (Reach::BelowOrNewer(6, 20), [true; 3]),
            (Reach::Anybody, [true; 3]),
        ] {
            let taken = [19, 20, 21].map(|time| reach.takes(&running(5, time)));
            assert_eq!(taken, taken_at_5, "{reach:?}");
            assert_eq!(reach.takes_all_of(5), taken == [true; 3], "{reach:?}");
            assert_eq!(reach.ends_at(5), taken == [false; 3], "{reach:?}");
            let is_in_bound = reach.bound().is_none_or(|bound| 5 < bound);
            assert_eq!(is_in_bound, !reach.ends_at(5), "{reach:?}");
        }
    }
}

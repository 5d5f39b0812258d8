//! The preemptor of a search and its demand.

use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, NodeId};
use crate::policy::{BorrowWithinCohort, Preemption};

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
    pub(super) fn may_borrow_from(&self, priority: i32) -> bool {
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

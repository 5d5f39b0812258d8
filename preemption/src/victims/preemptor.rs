//! The preemptor of a search and its demand.

use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, NodeId};
use crate::policy::{BorrowWithinCohort, Preemption};

/// A workload that needs preemption, its policy and its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preemptor<'a> {
    pub(crate) queue: NodeId,
    pub(crate) priority: i32,
    /// Its time in queue order.
    pub(crate) order_time: i64,
    pub(crate) policy: Preemption,
    /// False if it may not preempt, whatever the policy.
    pub(crate) may_preempt: bool,
    /// The second from which it may preempt, if it has not waited long enough.
    pub(crate) delayed_until_s: Option<i64>,
    /// The flavors and resources that do not fit without preemption. Sorted.
    pub(crate) needs: &'a [FlavorResource],
    /// The whole request, without duplicates and zero amounts.
    pub(crate) request: &'a [Demand],
}

impl Preemptor<'_> {
    /// Returns whether `borrowWithinCohort` permits it to preempt a workload of this priority.
    pub(super) fn may_borrow_from(&self, priority: i32) -> bool {
        match self.policy.borrow_within_cohort {
            BorrowWithinCohort::Never => false,
            BorrowWithinCohort::LowerPriority { threshold_max } => {
                priority < self.priority && threshold_max.is_none_or(|most| priority <= most)
            }
        }
    }
}

/// A requested amount of a flavor and resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) of: FlavorResource,
    /// The cell of the preemptor's queue.
    pub(crate) cell: CellId,
    pub(crate) amount: Amount,
    /// If set, the usage of the preemptor's queue must fall to this amount: the max of an elastic queue requires it.
    pub(crate) own_usage_max: Option<Amount>,
}

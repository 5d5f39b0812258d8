//! The trace of a decision.

use super::reason::{Conflict, InfeasibleReason};
use super::score::Score;
use crate::ids::{BudgetId, HostId, PodId, UnitId};

/// The steps of a decision, in order.
pub type GangTrace = crate::trace::Trace<GangStep>;

/// One step of a decision. Steps on units and nodes refer to the domain of the last [`GangStep::Domain`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GangStep {
    /// The next pod of the preemptor is placed by itself (delayed preemption without workloads).
    Pod {
        /// The pod.
        pod: PodId,
    },
    /// The nomination is still valid: no further unit is preempted.
    NominationStands,
    /// The nomination is no longer valid.
    NominationDropped {
        /// The pod that does not fit.
        pod: PodId,
        /// The node.
        host: HostId,
        /// Why it does not fit.
        reason: InfeasibleReason,
    },
    /// The preemptor does not fit without preemption.
    DoesNotFit,
    /// The search of a domain begins.
    Domain {
        /// The node; `None` means the whole cluster.
        host: Option<HostId>,
    },
    /// The search of the same domain begins again with the other placement strategy.
    RetriedDomain,
    /// The domain is infeasible.
    Infeasible {
        /// The reason.
        reason: InfeasibleReason,
    },
    /// The preemptor is placed without all potential victims.
    Placed {
        /// The node of each pod.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// The disruption of a unit would violate a budget.
    Protected {
        /// The unit.
        unit: UnitId,
        /// The pods with the budget that each violates.
        breaks: Vec<(PodId, BudgetId)>,
    },
    /// A priority cutoff was tried.
    CutoffTried {
        /// The priority.
        max_priority: i32,
        /// Whether the preemptor fits with it.
        is_enough: bool,
    },
    /// No unit above this priority is preempted.
    CutoffFound {
        /// The priority.
        max_priority: i32,
    },
    /// With the cutoff the preemptor has another placement than before.
    PlacedAgain {
        /// The node of each pod.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// A unit is reprieved.
    Reprieved {
        /// The unit.
        unit: UnitId,
        /// Whether in the first pass, over units that a disruption budget protects.
        by_budget: bool,
    },
    /// A unit cannot be reprieved.
    NotReprieved {
        /// The unit.
        unit: UnitId,
        /// The node on which it is in the way.
        host: HostId,
        /// Why there is no room for both.
        conflict: Conflict,
    },
    /// The cost of the domain.
    Scored {
        /// The score.
        score: Score,
    },
    /// The domain with the lowest cost.
    Chosen {
        /// The node; `None` means the whole cluster.
        host: Option<HostId>,
    },
}

//! What was considered, in order.

use super::decide::InfeasibleReason;
use super::score::Score;
use crate::ids::{BudgetId, HostId, PodId, ResourceId, UnitId};

/// The story of a decision.
pub type GangTrace = crate::trace::Trace<GangStep>;

/// One step of a decision. What is said of units and nodes is about the domain that was begun last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GangStep {
    /// A pod of the preemptor is placed next, for itself (delayed preemption without workloads).
    Pod {
        /// Which one.
        pod: PodId,
    },
    /// It was nominated to nodes before, and may still go there: nobody else has to go.
    NominationStands,
    /// It was nominated to nodes before, and cannot go there any more.
    NominationDropped {
        /// The pod that cannot.
        pod: PodId,
        /// The node.
        host: HostId,
        /// Why not.
        reason: InfeasibleReason,
    },
    /// Without preemption there is no room.
    DoesNotFit,
    /// A domain is looked at: a node, or the cluster.
    Domain {
        /// The node; `None` is the cluster.
        host: Option<HostId>,
    },
    /// The same domain once more, with the other way to place pods.
    RetriedDomain,
    /// The domain is infeasible.
    Infeasible {
        /// Why.
        reason: InfeasibleReason,
    },
    /// All who may go are gone, and the preemptor has its place.
    Placed {
        /// Where each pod goes.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// Some of a unit's pods cannot go without breaking a budget.
    Protected {
        /// The unit.
        unit: UnitId,
        /// The pods, and the budget of each.
        breaks: Vec<(PodId, BudgetId)>,
    },
    /// It was tried whether it is enough that all up to a priority go.
    CutoffTried {
        /// The priority.
        max_priority: i32,
        /// Whether it was.
        is_enough: bool,
    },
    /// Nobody above this priority has to go.
    CutoffFound {
        /// The priority.
        max_priority: i32,
    },
    /// The preemptor has another place than before, now that only those up to the bound are gone.
    PlacedAgain {
        /// Where each pod goes.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// A unit may stay where it is.
    Reprieved {
        /// The unit.
        unit: UnitId,
        /// Whether since a budget protects it, before others were asked.
        by_budget: bool,
    },
    /// A unit cannot stay.
    NotReprieved {
        /// The unit.
        unit: UnitId,
        /// Where it is in the way.
        host: HostId,
        /// Of which resource there is not enough for both.
        resource: ResourceId,
    },
    /// What the domain costs.
    Scored {
        /// The score.
        score: Score,
    },
    /// The domain that is best.
    Chosen {
        /// The node; `None` is the cluster.
        host: Option<HostId>,
    },
}

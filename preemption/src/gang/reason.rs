//! Reasons: why a preemptor may not preempt, and why a domain or a nomination is infeasible.

use crate::ids::{HostId, PodId, ResourceId};
use crate::placement::{FilterRejection, InterPodRejection};

/// Why a preemptor may not preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IneligibleReason {
    /// Its preemption policy is `Never`.
    PolicyNever,
    /// Victims of its last preemption are still terminating on the node that it is nominated to.
    VictimsTerminating,
}

/// Why a domain or a nomination is infeasible.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InfeasibleReason {
    /// A filter rejects the node, whichever pods are removed from it.
    Rejected(FilterRejection),
    /// Pods reject the node that no preemption of units of lower priority removes.
    RejectedByPods(InterPodRejection),
    /// No unit has a lower priority.
    NoLowerPriority,
    /// Removing all units of lower priority does not free enough of these resources.
    InsufficientResources {
        /// The resources, by id.
        resources: Vec<ResourceId>,
    },
    /// Removing all units of lower priority does not make room for enough pods.
    NoPlacement {
        /// The first pod that fits nowhere.
        pod: Option<PodId>,
        /// How many pods fit.
        placed: usize,
        /// How many pods must fit.
        count_min: usize,
    },
    /// No unit is in the way, so preemption does not help.
    PreemptionNotHelpful,
}

/// Why a unit cannot stay beside a preemptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conflict {
    /// There is too little of a resource for both.
    Resource(ResourceId),
    /// A pod of the preemptor may not run beside it.
    Pods(InterPodRejection),
}

/// A nomination that is no longer valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedNomination {
    /// The pod that no longer fits on its nominated node.
    pub pod: PodId,
    /// The nominated node.
    pub host: HostId,
    /// Why the pod does not fit.
    pub reason: InfeasibleReason,
}

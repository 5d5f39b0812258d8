//! The trace of a round. Steps contain ids; the [`JobCluster`](super::JobCluster) has the names.

use super::in_flight::BlockedReason;
use super::quota::QuotaId;
use super::quota_check::QuotaCheck;
use crate::ids::{HostId, PodId, ResourceId};

/// One step of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStep {
    /// Rounds in flight block the job.
    Blocked(BlockedReason),
    /// Labels and policy were checked.
    Trigger {
        /// Whether they permit the job to preempt.
        may: bool,
    },
    /// The job's quota and its ancestors were checked.
    QuotaGate(QuotaCheck),
    /// A pod of the job that has a node already.
    Placed {
        /// The pod.
        pod: PodId,
        /// The node.
        host: HostId,
    },
    /// A node was excluded by the caller.
    Excluded {
        /// The node.
        host: HostId,
    },
    /// A quota would exceed its max: all its candidates are removed, on any node.
    OverMax {
        /// The quota.
        quota: QuotaId,
        /// The resources that would exceed max.
        over: Vec<ResourceId>,
    },
    /// Placement without removing candidates was tried.
    PlacedWithoutVictims {
        /// Whether all pods of the job fit.
        fits: bool,
    },
    /// A pod was removed from a node in the simulation.
    Removed {
        /// The pod.
        pod: PodId,
        /// Its node.
        host: HostId,
        /// Why it was removed.
        reason: RemovalReason,
    },
    /// A pod of the job fits on a node.
    Nominated {
        /// The pod.
        pod: PodId,
        /// The node.
        host: HostId,
    },
    /// A pod of the job fits on no node.
    Unplaced {
        /// The pod.
        pod: PodId,
    },
    /// A removed pod is assigned back: it is not in the way.
    AssignedBack {
        /// The pod.
        pod: PodId,
    },
    /// A removed pod is a victim.
    Victim {
        /// The pod.
        pod: PodId,
        /// Why it cannot be assigned back.
        reason: AssignBackFailure,
    },
}

/// Why a pod was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// Room on its node.
    Node,
    /// The max of its quota, or of one above.
    Quota,
}

/// Why a pod cannot be assigned back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssignBackFailure {
    /// Its node has too little free.
    NodeFull {
        /// The first such resource.
        resource: ResourceId,
    },
    /// A quota would exceed its max.
    QuotaFull {
        /// The quota.
        quota: QuotaId,
    },
}

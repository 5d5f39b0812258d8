//! What was considered in a round, in order. Numbers, not text: who prints it asks the [`super::World`] for names.

use super::in_flight::BlockedReason;
use super::quota::QuotaId;
use super::quota_check::QuotaCheck;
use crate::ids::{HostId, PodId, ResourceId};

/// One step of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStep {
    /// Rounds are in flight, and none may begin.
    Blocked(BlockedReason),
    /// Whether its labels and policy let the job trigger preemption.
    Trigger {
        /// Whether they do.
        may: bool,
    },
    /// Its quota and those above were asked.
    QuotaGate(QuotaCheck),
    /// The pods of a job that have a place already.
    Placed {
        /// The pod.
        pod: PodId,
        /// Where.
        host: HostId,
    },
    /// A node is out of the question for the job.
    Excluded {
        /// The node.
        host: HostId,
    },
    /// All that use a quota beyond its max and may be taken are, on whatever node.
    OverMax {
        /// The quota.
        quota: QuotaId,
        /// The resources of which max would be passed.
        over: Vec<ResourceId>,
    },
    /// Places were looked for without taking anybody for room.
    PlacedWithoutVictims {
        /// Whether all pods of the job have found one.
        fits: bool,
    },
    /// A pod was taken from a node.
    Removed {
        /// The pod.
        pod: PodId,
        /// From where.
        host: HostId,
        /// For what.
        reason: RemovalReason,
    },
    /// A pod of the job found a place.
    Nominated {
        /// The pod.
        pod: PodId,
        /// Where.
        host: HostId,
    },
    /// A pod of the job found none.
    Unplaced {
        /// The pod.
        pod: PodId,
    },
    /// A pod that was taken stays, since it is not in the way.
    AssignedBack {
        /// The pod.
        pod: PodId,
    },
    /// A pod that was taken goes.
    Victim {
        /// The pod.
        pod: PodId,
        /// Why it cannot stay.
        reason: AssignBackFailure,
    },
}

/// For what a pod was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// Room on its node.
    Node,
    /// The max of its quota, or of one above.
    Quota,
}

/// Why a pod cannot stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssignBackFailure {
    /// Its node has not enough left.
    NodeFull {
        /// Of this resource, the first of several.
        resource: ResourceId,
    },
    /// The max of a quota would be passed.
    QuotaFull {
        /// The quota.
        quota: QuotaId,
    },
}

//! Preemption requests and their decisions.

use super::reason::{DroppedNomination, IneligibleReason, InfeasibleReason};
use super::score::Score;
use crate::ids::{GroupId, HostId, PodId, UnitId};

/// A preemptor, and the nodes that may be considered for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PreemptionRequest<'a> {
    /// The pending pods, in the order in which they are placed.
    pub pods: &'a [PodId],
    /// Their gang. `None` means a single pod, which is placed on one node.
    pub group: Option<GroupId>,
    /// The nodes to consider; `None` means all. For a single pod: the nodes on which preemption may help.
    pub hosts: Option<&'a [HostId]>,
    /// The node of each pod of a gang once there is room, if the placement is already decided.
    pub fixed_placement: Option<&'a [Option<HostId>]>,
    /// Limits how many nodes are searched for a single pod; `None` means all.
    pub sample: Option<NodeSample>,
}

/// The nodes that are searched for a single pod: from an offset on, wrapping around, until there are enough
/// candidates.
///
/// Source: kube-scheduler v1.37, `DryRunPreemption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSample {
    /// The index of the first node.
    pub offset: usize,
    /// How many candidates are enough, at least one of which violates no disruption budget.
    pub count: usize,
}

/// A decision, with findings made on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangDecision {
    /// The decision itself.
    pub outcome: GangOutcome,
    /// The earlier nomination that is no longer valid, if there is one.
    pub dropped: Option<DroppedNomination>,
    /// Pods of the gang whose own priority differs from that of the workload. See
    /// [`WorkloadView::pods_not_matching_priority`](super::WorkloadView::pods_not_matching_priority).
    pub pods_not_matching_priority: Vec<PodId>,
}

/// The outcome of a preemption request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GangOutcome {
    /// The preemptor fits without preemption.
    Fits {
        /// The node of each pod.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// The victims of the plan are preempted, and the preemptor is nominated to the plan's nodes.
    Preempt(GangPlan),
    /// Victims of an earlier decision are still terminating. The preemptor keeps its nominated nodes, and no further
    /// unit is preempted.
    AwaitingVictims {
        /// The node of each pod.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// The preemptor may not preempt.
    Ineligible(IneligibleReason),
    /// No domain is feasible.
    Infeasible {
        /// The reason for each domain: the node, or `None` for the cluster.
        domains: Vec<(Option<HostId>, InfeasibleReason)>,
    },
}

/// Victims, all or none of which are preempted, and the preemptor's placement afterwards. The plan places the whole
/// gang, so it can be executed in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangPlan {
    /// The node; `None` means the whole cluster.
    pub host: Option<HostId>,
    /// The nominated node of each pod; `None` for pods beyond the required number that fit nowhere.
    pub placement: Vec<(PodId, Option<HostId>)>,
    /// The victims, the most important first.
    pub victims: Vec<UnitId>,
    /// How many pods of the victims are protected by a disruption budget.
    pub violations: u32,
    /// How many victims belong to a group.
    pub group_disruptions: u32,
    /// The priority cutoff: no unit above this priority was considered.
    pub max_priority: i32,
    /// The cost of the plan.
    pub score: Score,
}

/// Pairs each pod with its node.
pub(super) fn zip_placement(
    pods: &[PodId],
    placement: &[Option<HostId>],
) -> Vec<(PodId, Option<HostId>)> {
    pods.iter()
        .copied()
        .zip(placement.iter().copied())
        .collect()
}

//! The preemptor of a request: its pods, priority and policy.

use super::cluster::GangCluster;
use super::request::PreemptionRequest;
use super::spec::SchedulerCompatibility;
use crate::ids::{HostId, PodId, ShapeId};
use crate::placement::{InterPodTable, Pod, PodPreemption};
use std::collections::BTreeSet;

/// A pod or a gang that needs room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preemptor<'a> {
    /// The pending pods, in the order in which they are placed.
    pub(super) pods: &'a [PodId],
    pub(super) shapes: &'a [ShapeId],
    /// How many different shapes there are.
    pub(super) distinct_shapes: usize,
    /// Units below this priority are potential victims.
    pub(super) priority: i32,
    /// How many of the pods must be placed; at least one.
    pub(super) count_min: usize,
    /// The node of each pod, if the placement is already decided.
    pub(super) fixed_placement: Option<&'a [Option<HostId>]>,
    /// The pods that restrict it.
    pub(super) inter_pod: Option<&'a InterPodTable<'a>>,
}

impl<'a> Preemptor<'a> {
    /// The preemptor of a request. `shapes` are those of [`shapes()`].
    pub(super) fn new(
        state: &GangCluster,
        request: &PreemptionRequest<'a>,
        shapes: &'a [ShapeId],
    ) -> Self {
        let count_min = request.group.map(|it| state.workloads().count_min(it));
        Self {
            pods: request.pods,
            shapes,
            distinct_shapes: shapes.iter().collect::<BTreeSet<_>>().len(),
            priority: priority(state, request),
            count_min: count_min.unwrap_or(1),
            fixed_placement: request.fixed_placement,
            inter_pod: None,
        }
    }
}

/// The shapes of pods, in their order.
pub(super) fn shapes(state: &GangCluster, pods: &[PodId]) -> Vec<ShapeId> {
    let pods = pods.iter().filter_map(|it| state.cluster.pod(*it));
    pods.map(Pod::shape).collect()
}

/// The scheduling priority of the preemptor, which is compared with the preemption priorities of victims.
pub(super) fn priority(state: &GangCluster, request: &PreemptionRequest<'_>) -> i32 {
    if let Some(group) = request.group {
        return state.workloads().group_priority(group);
    }
    let Some(pod) = request.pods.first() else {
        return 0;
    };
    match state.options.compatibility {
        SchedulerCompatibility::Lockkeeper => state.workloads().scheduling_priority(*pod),
        // kube-scheduler uses the pod's own priority here, even if the pod is in a group.
        SchedulerCompatibility::KubeScheduler => state
            .cluster
            .pod(*pod)
            .map(Pod::priority)
            .unwrap_or_default(),
    }
}

/// The preemption policy of the preemptor.
pub(super) fn policy(state: &GangCluster, request: &PreemptionRequest<'_>) -> PodPreemption {
    let workloads = state.workloads();
    if let Some(group) = request.group {
        return workloads.group_preemption_policy(group, request.pods);
    }
    let Some(pod) = request.pods.first() else {
        return PodPreemption::default();
    };
    match (state.options.compatibility, workloads.group_of(*pod)) {
        (SchedulerCompatibility::Lockkeeper, Some(group)) => {
            workloads.group_preemption_policy(group, request.pods)
        }
        // kube-scheduler's evaluator for single pods considers only the pod's own policy.
        _ => state
            .cluster
            .pod(*pod)
            .map(Pod::preemption)
            .unwrap_or_default(),
    }
}

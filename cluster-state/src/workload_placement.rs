//! A workload as a request for nodes.

use crate::cluster_state::ClusterState;
use crate::placement_state::{PlacementPodSet, PlacementRequest};
use crate::preemption_traits::preemption_traits;
use lockkeeper_api::Workload;
use lockkeeper_api::resource_flavor::ResourceFlavorSpec;
use lockkeeper_api::workload::{
    Admission, DisruptionMode, NominatedPlacement, PodSetAssignment, WorkloadStatus,
};
use std::collections::BTreeSet;

/// The priority and the preemption priority of a workload: those of its status, or else those of its classes.
#[must_use]
pub fn effective_priorities(
    cluster: &ClusterState,
    workload: &Workload,
    status: &WorkloadStatus,
) -> (Option<i32>, Option<i32>) {
    let spec = &workload.spec;
    let class = spec.priority_class_name.as_deref();
    let victim_class = spec.preemption_priority_class_name.as_deref().or(class);
    let priority = |class| cluster.objects().priority_for_class(class);
    (
        status.priority.or_else(|| priority(class)),
        status
            .preemption_priority
            .or_else(|| priority(victim_class)),
    )
}

/// The priority and the preemption priority of a workload on nodes. A workload without a class has 0.
#[must_use]
pub fn placement_priorities(cluster: &ClusterState, workload: &Workload) -> (i32, i32) {
    let none = WorkloadStatus::default();
    let status = workload.status.as_ref().unwrap_or(&none);
    let (priority, preemption_priority) = effective_priorities(cluster, workload, status);
    let priority = priority.unwrap_or_default();
    (priority, preemption_priority.unwrap_or(priority))
}

/// Whether the pods of a workload are preempted one by one. It is evicted as a whole, unless each of its groups has the mode
/// `Pod`: then it may lose single pods, and keeps its quota.
#[must_use]
pub fn disruption_mode(workload: &Workload) -> DisruptionMode {
    let groups = &workload.spec.pod_groups;
    let mut modes = groups.iter().map(|it| it.disruption_mode);
    if !groups.is_empty() && modes.all(|it| it == Some(DisruptionMode::Pod)) {
        DisruptionMode::Pod
    } else {
        DisruptionMode::PodGroup
    }
}

/// The flavors of an admitted pod set, each once.
#[must_use]
pub fn assigned_flavors<'a>(
    cluster: &'a ClusterState,
    admitted: &PodSetAssignment,
) -> Vec<&'a ResourceFlavorSpec> {
    // Several resources often have one flavor.
    let names: BTreeSet<&String> = admitted.flavors.values().collect();
    let names = names.into_iter();
    names
        .filter_map(|it| cluster.objects().flavor(it))
        .collect()
}

/// The request for the pods that a workload is admitted with.
#[must_use]
pub fn placement_request<'a>(
    cluster: &'a ClusterState,
    workload: &'a Workload,
    admission: &'a Admission,
    nominated: Option<&'a NominatedPlacement>,
) -> PlacementRequest<'a> {
    let assignments = admission.pod_set_assignments.iter();
    let pod_sets = assignments.filter_map(|it| pod_set(cluster, workload, it));
    let traits = preemption_traits(cluster.objects(), workload, &admission.cluster_queue);
    PlacementRequest {
        namespace: workload.metadata.namespace.as_deref().unwrap_or_default(),
        name: workload.metadata.name.as_deref().unwrap_or_default(),
        pod_sets: pod_sets.collect(),
        priority: placement_priorities(cluster, workload).0,
        never_preempts: !traits.may_preempt,
        pod_defaults: Some(cluster.objects().pod_defaults()),
        nominated,
    }
}

fn pod_set<'a>(
    cluster: &'a ClusterState,
    workload: &'a Workload,
    assigned: &'a PodSetAssignment,
) -> Option<PlacementPodSet<'a>> {
    let mut pod_sets = workload.spec.pod_sets.iter();
    let pod_set = pod_sets.find(|it| it.name() == assigned.name)?;
    let flavors = assigned_flavors(cluster, assigned);
    let labels = flavors.iter().flat_map(|it| &it.node_labels);
    let tolerations = flavors.iter().flat_map(|it| &it.tolerations);
    Some(PlacementPodSet {
        name: pod_set.name(),
        template: &pod_set.template,
        count: assigned.count,
        node_selector: labels
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect(),
        tolerations: tolerations.collect(),
    })
}

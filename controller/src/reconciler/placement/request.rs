//! Workloads as requests for nodes, and as units on nodes.

use crate::job_adapters::POD_GROUP;
use crate::reconciler::job_sync::assigned_flavors;
use crate::reconciler::model::{Model, TrackedWorkload};
use crate::reconciler::pending_decision::PendingDecision;
use crate::reconciler::preemption_traits::traits;
use crate::reconciler::status::priorities::effective_priorities;
use lockkeeper_api::Workload;
use lockkeeper_api::workload::{
    Admission, DisruptionMode, NominatedPlacement, PodSetAssignment, WorkloadStatus,
};
use lockkeeper_cluster_state::placement_state::{PlacementPodSet, PlacementRequest, WorkloadUnit};
use lockkeeper_cluster_state::{ClusterState, preemption_traits};
use lockkeeper_preemption::job::Preemptibility;

/// The request for the pods that a workload is admitted with.
pub(super) fn placement_request<'a>(
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
        priority: priorities(cluster, workload).0,
        never_preempts: !traits.may_preempt,
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

/// A workload that holds quota as a unit on nodes.
pub(super) fn workload_unit<'a>(
    cluster: &ClusterState,
    model: &'a Model,
    tracked: &'a TrackedWorkload,
) -> WorkloadUnit<'a> {
    let workload = &*tracked.object;
    let (priority, preemption_priority) = priorities(cluster, workload);
    let traits = traits(cluster, tracked);
    WorkloadUnit {
        namespace: tracked.key.namespace(),
        name: tracked.key.name(),
        owner_uids: owner_uids(model, tracked),
        priority,
        preemption_priority,
        never_preempts: !traits.may_preempt,
        is_non_preemptible: traits.preemptibility == Preemptibility::NonPreemptible,
        is_evicted: tracked.is_evicted()
            || tracked.is_deleted
            || matches!(tracked.decision(), Some(PendingDecision::Preempt(_))),
        disruption: disruption_mode(workload),
    }
}

/// The uids of the objects that own the pods of a workload; of a group, those of its pods.
fn owner_uids<'a>(model: &'a Model, tracked: &'a TrackedWorkload) -> Vec<&'a str> {
    let Some(job) = tracked.job.as_ref().filter(|it| it.kind == POD_GROUP) else {
        return tracked.owner_uid().into_iter().collect();
    };
    let pods = model.pod_groups.pods(&job.name);
    pods.filter_map(|it| model.pod(it))
        .map(|it| it.view.uid.as_str())
        .collect()
}

fn priorities(cluster: &ClusterState, workload: &Workload) -> (i32, i32) {
    let none = WorkloadStatus::default();
    let status = workload.status.as_ref().unwrap_or(&none);
    let (priority, preemption_priority) = effective_priorities(cluster, workload, status);
    let priority = priority.unwrap_or_default();
    (priority, preemption_priority.unwrap_or(priority))
}

/// A workload is evicted as a whole, unless each of its groups has the mode `Pod`: then it may lose single pods, and keeps
/// its quota.
fn disruption_mode(workload: &Workload) -> DisruptionMode {
    let groups = &workload.spec.pod_groups;
    let mut modes = groups.iter().map(|it| it.disruption_mode);
    if !groups.is_empty() && modes.all(|it| it == Some(DisruptionMode::Pod)) {
        DisruptionMode::Pod
    } else {
        DisruptionMode::PodGroup
    }
}

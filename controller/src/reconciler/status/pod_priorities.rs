//! Reports pods on nodes whose priority is not that of their workload: the scheduler of Kubernetes preempts by the priority
//! of pods (KEP-5710, "Workload priorities").

use super::conditions::{has_status, workload_conditions};
use crate::reconciler::model::TrackedWorkload;
use crate::reconciler::plan::WorkloadAction;
use crate::reconciler::queue_store::admitting_cluster_queue;
use crate::reconciler::state::View;
use lockkeeper_api::workload::WorkloadStatus;

const PODS_NOT_MATCHING_PRIORITY: &str = "PodsNotMatchingPriority";

/// The report of a workload on nodes with a pod of another priority, unless its condition says so already.
pub(crate) fn pod_priority_report<'a>(
    view: View<'a>,
    workload: &TrackedWorkload,
) -> Option<WorkloadAction<'a>> {
    let is_reported = has_status(&workload.object, PODS_NOT_MATCHING_PRIORITY, "True");
    let is_due = !is_reported && pod_of_other_priority(view, workload).is_some();
    is_due.then_some(WorkloadAction::ReportPodPriority)
}

/// Sets the condition, or ends it.
pub(crate) fn write_pod_priorities(
    view: View<'_>,
    workload: &TrackedWorkload,
    status: &mut WorkloadStatus,
) {
    let was_reported = has_status(&workload.object, PODS_NOT_MATCHING_PRIORITY, "True");
    // Without quota it has no pods that may stay.
    let holds_quota = status.admission.is_some();
    let found = holds_quota
        .then(|| pod_of_other_priority(view, workload))
        .flatten();
    let priority = status.priority.unwrap_or_default();
    let object = &workload.object;
    let mut conditions = workload_conditions(object, &mut status.conditions, view.now_ms);
    match found {
        Some((pod, of_pod)) if !was_reported => {
            let message = format!(
                "The workload has the priority {priority}, and its pod {pod} has {of_pod}; kube-scheduler preempts by the \
                 priority of pods. Give the pods the same class in priorityClassName"
            );
            conditions.set(PODS_NOT_MATCHING_PRIORITY, true, "OtherPriority", &message);
        }
        None if was_reported => conditions.set(
            PODS_NOT_MATCHING_PRIORITY,
            false,
            "SamePriority",
            "No pod on a node has another priority than the workload",
        ),
        _ => {}
    }
}

/// A pod of a workload that its ClusterQueue places on nodes, with another priority than the workload. Costs the bound pods of
/// the workload if there was one.
fn pod_of_other_priority<'a>(view: View<'a>, workload: &TrackedWorkload) -> Option<(&'a str, i32)> {
    let key = &workload.key;
    let placement = view.placement.filter(|it| it.has_other_priorities(key))?;
    let queue = admitting_cluster_queue(&workload.object)?;
    let is_placed = view.cluster.objects().places_on_nodes(queue);
    let nodes = &placement.nodes;
    is_placed
        .then(|| nodes.pod_of_other_priority(key.namespace(), key.name()))
        .flatten()
}

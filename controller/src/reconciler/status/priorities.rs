//! The priorities in the status of a workload.

use lockkeeper_api::Workload;
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_cluster_state::ClusterState;

/// The priority and the preemption priority: those of the status, or else those of the classes.
pub(crate) fn effective_priorities(
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

//! Workloads as units on nodes.

use crate::job_adapters::POD_GROUP;
use crate::reconciler::model::{Model, TrackedWorkload};
use crate::reconciler::pending_decision::PendingDecision;
use crate::reconciler::preemption_traits::traits;
use lockkeeper_cluster_state::placement_state::WorkloadUnit;
use lockkeeper_cluster_state::{ClusterState, disruption_mode, placement_priorities};
use lockkeeper_preemption::job::Preemptibility;

/// A workload that holds quota as a unit on nodes.
pub(super) fn workload_unit<'a>(
    cluster: &ClusterState,
    model: &'a Model,
    tracked: &'a TrackedWorkload,
) -> WorkloadUnit<'a> {
    let workload = &*tracked.object;
    let (priority, preemption_priority) = placement_priorities(cluster, workload);
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

//! Which node each pod of a workload is directed to.

use crate::job_adapters::{POD, POD_GROUP};
use crate::key::{JobKey, ObjectKey};
use crate::reconciler::model::{JobSource, Model, TrackedWorkload};
use crate::reconciler::pod_groups::member_role::MemberRole;
use lockkeeper_api::workload::POD_SET_NAME_DEFAULT;

/// The node for a pod, which is at this position among the pods of its pod set; `None` if its workload has no nodes. A pod
/// keeps its node while that is one of the pod set.
pub(in crate::reconciler) fn nominated_node<'a>(
    workload: &'a TrackedWorkload,
    pod_set: &str,
    current: Option<&str>,
    position: usize,
) -> Option<&'a str> {
    if workload.is_evicted() || !workload.holds_quota() {
        return None;
    }
    let status = workload.object.status.as_ref()?;
    let nodes = status.nominated_placement.as_ref()?;
    let pod_set = nodes.pod_sets.iter().find(|it| it.name == pod_set)?;
    if let Some((node, _)) = current.and_then(|it| pod_set.nodes.get_key_value(it)) {
        return Some(node);
    }
    let mut left = position;
    for (node, count) in &pod_set.nodes {
        let count = usize::try_from(*count).unwrap_or_default();
        match left.checked_sub(count) {
            None => return Some(node),
            Some(more) => left = more,
        }
    }
    None
}

/// Whether a pod of a nominated workload is still to be directed to one of its nodes: until then, kube-scheduler gives the
/// room of a victim to the pod that replaces it. A pod that is being deleted is never directed. A pod whose write fails does
/// not count: its workload does not wait for it. Costs the pods after the last such pod by name.
pub(in crate::reconciler) fn has_undirected_pods(
    model: &Model,
    workload: &TrackedWorkload,
) -> bool {
    let Some(job) = &workload.job else {
        return false;
    };
    match job.kind {
        POD => is_undirected(model, workload, &job.name, POD_SET_NAME_DEFAULT),
        POD_GROUP => {
            let groups = &model.pod_groups;
            let mut pods = groups.pods(&job.name).rev();
            pods.any(|pod| match groups.role(&job.name, pod) {
                Some(MemberRole::Member(pod_set)) => is_undirected(model, workload, pod, pod_set),
                _ => false,
            })
        }
        _ => false,
    }
}

fn is_undirected(
    model: &Model,
    workload: &TrackedWorkload,
    pod: &ObjectKey,
    pod_set: &str,
) -> bool {
    let key = JobKey {
        kind: POD,
        name: pod.clone(),
    };
    let Some(tracked) = model.jobs.get(&key) else {
        return true;
    };
    let pod = &*tracked.view;
    if !pod.is_suspended || pod.result.is_some() {
        return false;
    }
    if pod.is_deleted || tracked.source != JobSource::Watch {
        // No victim is evicted for a pod that will not run.
        return true;
    }
    let current = pod.nominated_node.as_deref();
    // The position does not matter: it decides only which node a pod without one gets.
    let wanted = nominated_node(workload, pod_set, current, 0);
    wanted.is_some() && wanted != current && !tracked.tracker.backoff.has_failed()
}

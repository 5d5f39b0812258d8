//! Which node each pod of a workload is directed to.

use crate::reconciler::model::TrackedWorkload;

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

//! Plans which node a pod that waits is directed to.
//!
//! kube-scheduler keeps the room of the node in `status.nominatedNodeName` from pods of lower priority, also while the pod
//! has a scheduling gate.

use crate::job_adapters::JobView;
use crate::reconciler::model::TrackedWorkload;
use crate::reconciler::placement::member_nodes::nominated_node;
use crate::reconciler::plan::JobAction;

/// The write that directs a pod to its node, or removes a node that its workload does not wait for any more. `pod_set` is
/// the name of its pod set, and its position among the pods of that; `None` if it has no place in its group.
pub(super) fn plan_node(
    pod: &JobView,
    workload: Option<&TrackedWorkload>,
    pod_set: Option<(&str, usize)>,
) -> Option<JobAction> {
    if !pod.is_suspended || pod.is_deleted || pod.result.is_some() {
        return None;
    }
    let current = pod.nominated_node.as_deref();
    let wanted = workload
        .zip(pod_set)
        .and_then(|(workload, (name, position))| nominated_node(workload, name, current, position));
    (wanted != current).then(|| JobAction::NominateNode(wanted.map(str::to_owned)))
}

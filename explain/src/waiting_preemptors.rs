//! The preemptors that wait for workloads which they have preempted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::{ClusterState, PreemptionMessage};
use lockkeeper_preemption::{NodeId, QueueingStrategy, WorkloadId, mark_preemptor};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes the last preemptor of each ClusterQueue the first workload in it, as the scheduler does until the preemptor is
/// admitted, and returns these workloads. Only the conditions of evicted workloads name it.
pub(crate) fn mark_waiting_preemptors(
    cluster: &mut ClusterState,
    workloads: &BTreeMap<String, Arc<Workload>>,
) -> Vec<String> {
    let mut by_uid: Option<BTreeMap<&str, &str>> = None;
    let mut last: BTreeMap<NodeId, (Timestamp, WorkloadId)> = BTreeMap::new();
    for workload in workloads.values() {
        let Some((preempted, uid)) = preemption(workload) else {
            continue;
        };
        let by_uid = by_uid.get_or_insert_with(|| keys_by_uid(workloads));
        let state = cluster.state();
        let Some(id) = by_uid.get(uid).and_then(|key| state.workload(key)) else {
            continue;
        };
        let view = state.workload_view(id);
        let Some(queue) = view.queue().filter(|_| view.reservation().is_none()) else {
            continue;
        };
        if state.node_view(queue).strategy() == QueueingStrategy::BestEffortFifo {
            let entry = (preempted.last_transition_time.0, id);
            let known = last.entry(queue).or_insert(entry);
            *known = (*known).max(entry);
        }
    }
    let mut names = Vec::new();
    for (_, id) in last.into_values() {
        mark_preemptor(cluster.state_mut(), id);
        names.push(cluster.state().workload_name(id).to_owned());
    }
    names
}

/// The condition of an evicted workload that names its preemptor, and the uid of the preemptor.
fn preemption(workload: &Workload) -> Option<(&Condition, &str)> {
    let conditions = &workload.status.as_ref()?.conditions;
    let condition = |of: &str| {
        let mut conditions = conditions.iter();
        conditions.find(|it| it.type_ == of && it.status == "True")
    };
    condition("Evicted").filter(|it| it.reason == "Preempted")?;
    let preempted = condition("Preempted")?;
    let uid = PreemptionMessage::parse(&preempted.message).uid?;
    Some((preempted, uid))
}

fn keys_by_uid(workloads: &BTreeMap<String, Arc<Workload>>) -> BTreeMap<&str, &str> {
    let uids = workloads
        .iter()
        .filter_map(|(key, it)| Some((it.metadata.uid.as_deref()?, key.as_str())));
    uids.collect()
}

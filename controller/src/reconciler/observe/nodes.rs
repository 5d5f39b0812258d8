//! Watch events of nodes, bound pods and disruption budgets.

use crate::key::ObjectKey;
use crate::reconciler::input::Change;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::state::ReconcilerState;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

pub(super) fn observe_node(state: &mut ReconcilerState, change: Change<Box<Node>>) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    match change {
        Change::Applied(node) => placement.nodes.set_node(&node),
        Change::Deleted(key) => placement.nodes.remove_node(key.name()),
    }
}

pub(super) fn observe_bound_pod(state: &mut ReconcilerState, change: Change<Box<Pod>>) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    let key = match change {
        Change::Applied(pod) => {
            placement.nodes.set_pod(&pod);
            let key = ObjectKey::from_metadata(&pod.metadata);
            if let Some(workload) = placement.note_priority(&key) {
                state.work_queue.enqueue(ObjectRef::Workload(workload));
            }
            if pod.metadata.deletion_timestamp.is_none() {
                let version = pod.metadata.resource_version.as_deref();
                let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
                if let Some(victim) = placement.victims.get_mut(&key) {
                    victim.tracker.observe(version);
                    state.work_queue.enqueue(ObjectRef::VictimPod(key));
                }
                return;
            }
            key
        }
        Change::Deleted(key) => {
            placement.nodes.remove_pod(key.namespace(), key.name());
            key
        }
    };
    // Its eviction is done.
    if placement.victims.remove(&key).is_some() {
        state.work_queue.enqueue(ObjectRef::VictimPod(key));
    }
}

pub(super) fn observe_budget(
    state: &mut ReconcilerState,
    change: Change<Box<PodDisruptionBudget>>,
) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    match change {
        Change::Applied(budget) => placement.nodes.set_budget(&budget),
        Change::Deleted(key) => placement.nodes.remove_budget(key.namespace(), key.name()),
    }
}

//! Drops decisions that no longer apply, and undoes their effect on the cluster state.

use super::pending_decision::PendingDecision;
use super::state::ReconcilerState;
use crate::key::ObjectKey;
use lockkeeper_cluster_state::ClusterState;

/// Drops the decisions of earlier limits, so that the next cycle decides under the new ones.
pub(super) fn drop_stale_decisions(state: &mut ReconcilerState) {
    drop_stale_decisions_of(state, |_, _| true);
}

/// Drops the decisions about workloads in the tree of a ClusterQueue. Changes of a LocalQueue do not concern others:
/// a tenant who changes one again and again must not delay their admission.
pub(super) fn drop_stale_decisions_in_tree(state: &mut ReconcilerState, cluster_queue: &str) {
    let core = state.cluster.state_mut();
    core.apply_changes();
    let Some(queue) = core.queue(cluster_queue) else {
        return;
    };
    let root = core.node_view(queue).root();
    drop_stale_decisions_of(state, |cluster, key| {
        let core = cluster.state();
        let workload = core.workload(key.key());
        let queue = workload.and_then(|id| core.workload_view(id).queue());
        queue.is_none_or(|queue| core.node_view(queue).root() == root)
    });
}

fn drop_stale_decisions_of(
    state: &mut ReconcilerState,
    concerns: impl Fn(&ClusterState, &ObjectKey) -> bool,
) {
    let decided = state.model.decided();
    let concerned = decided.filter(|(key, _)| concerns(&state.cluster, key));
    let concerned: Vec<ObjectKey> = concerned.map(|(key, _)| key.clone()).collect();
    let mut droppable = Vec::new();
    for key in concerned {
        let Some(workload) = state.model.workloads.get_mut(&key) else {
            continue;
        };
        if workload.tracker.in_flight.is_some() || workload.tracker.outcome_unknown {
            // The write may be executed or not: it is not repeated, its result ends the decision.
            workload.is_stale = true;
        } else {
            droppable.push(key);
        }
    }
    drop_decisions_of(state, droppable);
}

/// Drops all decisions, also those with a write in flight.
pub(super) fn drop_all_decisions(state: &mut ReconcilerState) {
    let mut droppable = Vec::new();
    for (key, workload) in &mut state.model.workloads {
        workload.is_stale = false;
        if workload.decision().is_some() {
            droppable.push(key.clone());
        }
    }
    drop_decisions_of(state, droppable);
}

/// Takes and reverts decisions.
fn drop_decisions_of(state: &mut ReconcilerState, keys: Vec<ObjectKey>) {
    for key in keys {
        let Some(decision) = state.model.take_decision(&key) else {
            continue;
        };
        revert_decision(state, &key, &decision);
    }
}

/// Sets the cluster state to that of the object. An earlier admission that was written, but is not in the
/// watch yet, keeps its quota.
pub(super) fn revert_decision(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    decision: &PendingDecision,
) {
    if matches!(decision, PendingDecision::Admit(_)) {
        revert_admission(state, key);
    }
    state.sync_workload(key);
}

/// Releases the quota that an assumed admission holds; the workload is pending again.
pub(super) fn revert_admission(state: &mut ReconcilerState, key: &ObjectKey) {
    if !state.cluster.is_assumed(key.key()) {
        return;
    }
    let core = state.cluster.state();
    let queue = core
        .workload(key.key())
        .and_then(|id| core.workload_view(id).queue());
    if let Some(queue) = queue {
        let queue = core.node_view(queue).name().to_owned();
        state.enqueue_cluster_queue(&queue);
    }
    state.cluster.revert_admission(key.key());
}

//! Drops decisions that no longer apply, and undoes their effect on the cluster state.

use super::model::PendingDecision;
use super::output::ObjectRef;
use super::state::ReconcilerState;
use crate::key::ObjectKey;
use lockkeeper_api::Workload;
use std::sync::Arc;

/// Drops the decisions of earlier limits, so that the next cycle decides under the new ones.
pub(super) fn drop_stale_decisions(state: &mut ReconcilerState) {
    if state.model.pending_decisions() == 0 {
        return;
    }
    let mut droppable = Vec::new();
    for (key, workload) in &mut state.model.workloads {
        if workload.decision().is_none() {
            continue;
        }
        if workload.tracker.in_flight.is_some() || workload.tracker.outcome_unknown {
            // The write may be executed or not: it is not repeated, its result ends the decision.
            workload.is_stale = true;
        } else {
            droppable.push(key.clone());
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
        if let Some(workload) = state.model.workloads.get(&key) {
            let object = Arc::clone(&workload.object);
            revert_decision(state, &key, &decision, object);
        }
    }
}

/// Sets the cluster state to that of the object. An earlier admission that was written, but is not in the
/// watch yet, keeps its quota.
pub(super) fn revert_decision(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    decision: &PendingDecision,
    object: Arc<Workload>,
) {
    if matches!(decision, PendingDecision::Admit(_)) {
        revert_admission(state, key);
    }
    // An object that the core rejects gets the error as its pending reason.
    let _ = state.cluster.set_workload(object);
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
        state.work_queue.enqueue(ObjectRef::ClusterQueue(queue));
    }
    state.cluster.revert_admission(key.key());
}

//! Continues the workloads that have quota and nominated nodes: evicts their victims, and admits them when these are gone.

use super::request::placement_request;
use super::units::sync_unit;
use super::victims::evict_victims;
use crate::key::ObjectKey;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::pending_decision::{PendingDecision, PlacementStep};
use crate::reconciler::state::ReconcilerState;
use crate::reconciler::status::pending_reason::waiting_for_nodes;
use lockkeeper_cluster_state::placement_state::{PlacementDecision, PlacementOutcome};

/// How often other pods may take the room of the victims of a workload before it gives up its quota.
const LOST_ROUNDS_MAX: u32 = 3;

/// The pause of such a workload, in milliseconds.
const LOST_ROUNDS_PAUSE_MS: i64 = 60_000;

/// Plans the nominated workloads that have changed; all of them if nodes have changed. Costs a plan for each.
pub(in crate::reconciler) fn advance_nominations(state: &mut ReconcilerState, now_ms: i64) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    if !state.model.has_node_lists() {
        return;
    }
    let revision = Some(placement.nodes.revision());
    let due = std::mem::take(&mut placement.due);
    let keys = if placement.planned_revision == revision {
        due
    } else {
        placement.planned_revision = revision;
        placement.nominated.clone()
    };
    for key in keys {
        advance(state, &key, now_ms);
    }
}

fn advance(state: &mut ReconcilerState, key: &ObjectKey, now_ms: i64) {
    let tracked = state.model.workloads.get(key);
    let (Some(placement), Some(tracked)) = (&mut state.placement, tracked) else {
        return;
    };
    let status = tracked.object.status.as_ref();
    let nominated = status.and_then(|it| it.nominated_placement.as_ref());
    let admission = status.and_then(|it| it.admission.as_ref());
    let (Some(nominated), Some(admission)) = (nominated, admission) else {
        return;
    };
    // It is due again when the watch shows the result of its last write.
    if !tracked.is_nominated() || tracked.decision().is_some() || !tracked.tracker.is_settled() {
        return;
    }
    let request = placement_request(&state.cluster, &tracked.object, admission, Some(nominated));
    let PlacementDecision { outcome, dropped } = placement.nodes.plan(&request);
    let (nodes, victims) = match outcome {
        PlacementOutcome::Fits(nodes) => return decide(state, key, PlacementStep::Admit(nodes)),
        PlacementOutcome::Infeasible(message) => return withdraw(state, key, message, 0),
        PlacementOutcome::AwaitingVictims(nodes) => (nodes, Vec::new()),
        PlacementOutcome::Preempt { placement, victims } => (placement, victims),
    };
    let rounds = placement.rounds.entry(key.clone()).or_default();
    if rounds.record(&victims) > LOST_ROUNDS_MAX {
        let why = "other pods have taken the room of preempted pods several times".to_owned();
        let until_ms = now_ms.saturating_add(LOST_ROUNDS_PAUSE_MS);
        return withdraw(state, key, why, until_ms);
    }
    if nodes == *nominated {
        // Stored, so that a restart continues: the victims may be evicted.
        return evict_victims(state, key, &victims);
    }
    let message = dropped.unwrap_or_default();
    decide(state, key, PlacementStep::Nominate { nodes, message });
}

/// Records the next step of a nominated workload.
fn decide(state: &mut ReconcilerState, key: &ObjectKey, step: PlacementStep) {
    state.model.set_decision(key, PendingDecision::Place(step));
    if let Some(placement) = &mut state.placement {
        sync_unit(placement, &state.cluster, &state.model, key);
    }
    state.work_queue.enqueue(ObjectRef::Workload(key.clone()));
}

/// Gives up the quota of a workload that does not fit any more.
fn withdraw(state: &mut ReconcilerState, key: &ObjectKey, why: String, not_before_ms: i64) {
    if let Some(placement) = &mut state.placement {
        placement.waiting.insert(key.clone(), not_before_ms);
    }
    if let Some(tracked) = state.model.workloads.get_mut(key) {
        // It stays the reason after the quota is released.
        tracked.pending_reason = Some(Box::new(waiting_for_nodes(&why)));
    }
    decide(state, key, PlacementStep::Withdraw(why));
}

//! Continues the workloads that have quota and nominated nodes: evicts their victims, and admits them when these are gone.

use super::member_nodes::has_undirected_pods;
use super::units::sync_unit;
use super::victims::evict_victims;
use crate::key::ObjectKey;
use crate::reconciler::model::TrackedWorkload;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::pending_decision::{PendingDecision, PlacementStep};
use crate::reconciler::settings::Settings;
use crate::reconciler::state::ReconcilerState;
use crate::reconciler::status::conditions::{epoch_seconds, find};
use crate::reconciler::status::pending_reason::waiting_for_nodes;
use lockkeeper_cluster_state::placement_request;
use lockkeeper_cluster_state::placement_state::{PlacementDecision, PlacementOutcome};

/// How often other pods may take the room of the victims of a workload before it gives up its quota.
const LOST_ROUNDS_MAX: u32 = 3;

/// The pause of such a workload, in milliseconds.
const LOST_ROUNDS_PAUSE_MS: i64 = 60_000;

/// For how long a workload waits for its victims, in milliseconds, if no longer bound is set for evictions. As for rounds
/// in flight of job-level preemption (`docs/job.md`, R12).
const VICTIMS_MAX_MS: i64 = 600_000;

/// The pause between two plans of all nominated workloads, in milliseconds.
const PLANS_PAUSE_MS: i64 = 1_000;

/// The most pods in a message.
const PODS_IN_MESSAGE_MAX: usize = 3;

/// When the first of the nominated workloads has waited for its victims for too long, in milliseconds since 1970. Costs
/// the nominated workloads.
pub(in crate::reconciler) fn next_deadline_ms(state: &ReconcilerState) -> Option<i64> {
    if !state.model.lists.has_node_lists() {
        return None;
    }
    let nominated = state.placement.as_ref()?.nominated();
    let workloads = nominated.filter_map(|key| state.model.workloads.get(key));
    workloads
        .filter(|it| can_advance(it))
        .filter_map(|it| deadline_ms(&state.settings, it))
        .min()
}

/// When a nominated workload has waited for its victims for too long: it waits since its quota is reserved.
fn deadline_ms(settings: &Settings, workload: &TrackedWorkload) -> Option<i64> {
    let status = workload.object.status.as_ref()?;
    let reserved = find(&status.conditions, "QuotaReserved")?;
    let since_ms = epoch_seconds(&reserved.last_transition_time).saturating_mul(1000);
    let max_ms = VICTIMS_MAX_MS.max(settings.stuck_eviction_ms);
    Some(since_ms.saturating_add(max_ms))
}

/// When all nominated workloads are planned again because any node has changed since, in milliseconds since 1970.
pub(in crate::reconciler) fn next_plans_ms(state: &ReconcilerState) -> Option<i64> {
    let placement = state.placement.as_ref()?;
    let is_due = placement.planned_revision != Some(placement.nodes.revision());
    let is_due = is_due && !placement.nominated.is_empty() && state.model.lists.has_node_lists();
    is_due.then(|| placement.planned_at_ms.saturating_add(PLANS_PAUSE_MS))
}

/// Plans the nominated workloads that have changed, or whose nodes have; and all of them if any node has changed, since a
/// placement without victims replaces one with victims, but not more often than once in [`PLANS_PAUSE_MS`]. Costs a plan for
/// each.
pub(in crate::reconciler) fn advance_nominations(state: &mut ReconcilerState, now_ms: i64) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    if !state.model.lists.has_node_lists() {
        return;
    }
    let mut keys = std::mem::take(&mut placement.due);
    let is_overdue = next_deadline_ms(state).is_some_and(|at_ms| at_ms <= now_ms);
    let are_all_due = next_plans_ms(state).is_some_and(|at_ms| at_ms <= now_ms);
    let Some(placement) = &mut state.placement else {
        return;
    };
    if is_overdue || are_all_due {
        placement.planned_revision = Some(placement.nodes.revision());
        placement.planned_at_ms = now_ms;
        keys.clone_from(&placement.nominated);
    } else {
        let changed = placement.nominated.iter().filter(|key| {
            let nodes = placement.reserved.get(*key);
            nodes.is_none_or(|it| placement.nodes.has_changed(it))
        });
        keys.extend(changed.cloned());
    }
    placement.nodes.forget_changes();
    for key in keys {
        advance(state, &key, now_ms);
    }
}

/// Whether the next step of a workload can be planned. Otherwise it is due again when the watch shows the result of its last
/// write.
fn can_advance(workload: &TrackedWorkload) -> bool {
    workload.is_nominated() && workload.decision().is_none() && workload.tracker.is_settled()
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
    if !can_advance(tracked) {
        return;
    }
    let is_overdue = deadline_ms(&state.settings, tracked).is_some_and(|it| it <= now_ms);
    let request = placement_request(&state.cluster, &tracked.object, admission, Some(nominated));
    let PlacementDecision { outcome, dropped } = placement.nodes.plan(&request);
    let (nodes, victims) = match outcome {
        PlacementOutcome::Fits(nodes) => return decide(state, key, PlacementStep::Admit(nodes)),
        _ if is_overdue => {
            let overdue = placement.nodes.stop_waiting_for(nominated);
            // Without such a pod the next plan would be the same.
            let pause_ms = if overdue.is_empty() {
                LOST_ROUNDS_PAUSE_MS
            } else {
                0
            };
            let why = overdue_message(key.namespace(), &overdue);
            return withdraw(state, key, why, now_ms.saturating_add(pause_ms));
        }
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
        if has_undirected_pods(&state.model, tracked) {
            // It is due again when the last of them is directed.
            return;
        }
        // Stored, so that a restart continues: the victims may be evicted.
        return evict_victims(state, key, &victims);
    }
    let message = dropped.unwrap_or_default();
    decide(state, key, PlacementStep::Nominate { nodes, message });
}

/// Makes a nominated workload due if a write or an event shows that all its pods are directed to their nodes.
pub(in crate::reconciler) fn note_directed_pod(state: &mut ReconcilerState, workload: &ObjectKey) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    if !placement.nominated.contains(workload) {
        return;
    }
    let tracked = state.model.workloads.get(workload);
    if tracked.is_some_and(|it| !has_undirected_pods(&state.model, it)) {
        placement.due.insert(workload.clone());
    }
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

/// Why a workload does not wait for its victims any longer. Pods of other namespaces are counted, not named.
fn overdue_message(namespace: &str, pods: &[String]) -> String {
    if pods.is_empty() {
        return "its victims were not evicted in time".to_owned();
    }
    let prefix = format!("{namespace}/");
    let own = pods.iter().filter(|it| it.starts_with(&prefix));
    let named = own.take(PODS_IN_MESSAGE_MAX);
    let mut parts: Vec<String> = named.map(|it| format!("pod {it}")).collect();
    match pods.len().saturating_sub(parts.len()) {
        0 => {}
        1 => parts.push("1 pod of another namespace".to_owned()),
        others => parts.push(format!("{others} other pods")),
    }
    let pods = parts.join(", ");
    format!("not terminated in time after their preemption: {pods}; their room counts as taken")
}

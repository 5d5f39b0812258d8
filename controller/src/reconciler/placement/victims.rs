//! Evicts the victims of a nominated workload: workloads as a whole, and pods.

use super::units::sync_unit;
use super::victim_pod::VictimPod;
use crate::key::ObjectKey;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::pending_decision::{PendingDecision, PreemptionDecision};
use crate::reconciler::preemption_traits::traits;
use crate::reconciler::scheduling::{withdraw_admission, workload_and_job_uids};
use crate::reconciler::state::ReconcilerState;
use lockkeeper_cluster_state::PreemptionCause;
use lockkeeper_cluster_state::journal::mark_evicted;
use lockkeeper_cluster_state::placement_state::Victim;
use lockkeeper_preemption::TreeView;
use lockkeeper_preemption::job::VictimAction;
use std::collections::BTreeSet;

/// Evicts the victims of a workload. Pods that are no longer among them are not evicted any more.
pub(super) fn evict_victims(
    state: &mut ReconcilerState,
    preemptor: &ObjectKey,
    victims: &[Victim],
) {
    let (preemptor_uid, job_uid) = workload_and_job_uids(state, preemptor);
    let mut pods = BTreeSet::new();
    let mut has_busy_victim = false;
    for victim in victims {
        match victim {
            Victim::Workload { namespace, name } => {
                let key = ObjectKey::new(namespace, name);
                let decision = PreemptionDecision {
                    cause: PreemptionCause::Nodes,
                    preemptor: preemptor.clone(),
                    preemptor_uid: preemptor_uid.clone(),
                    job_uid: job_uid.clone(),
                    queue_paths: [queue_path(state, preemptor), queue_path(state, &key)],
                };
                has_busy_victim |= !evict_workload(state, &key, decision);
            }
            Victim::Pod {
                namespace,
                name,
                uid,
                violates_budget,
                workload,
            } => {
                let key = ObjectKey::new(namespace, name);
                pods.insert(key.clone());
                let workload = workload.as_ref().map(|it| ObjectKey::new(namespace, it));
                // A pod of no workload is evicted as the queue of its preemptor says.
                let action = victim_action(state, &workload.unwrap_or_else(|| preemptor.clone()));
                let victim =
                    VictimPod::new(uid, action, *violates_budget, preemptor, &preemptor_uid);
                evict_pod(state, key, victim);
            }
        }
    }
    forget_others(state, preemptor, &pods);
    if has_busy_victim && let Some(placement) = &mut state.placement {
        // No change of the nodes may show that the other write has ended.
        placement.due.insert(preemptor.clone());
    }
}

/// How the ClusterQueue of a workload has victims evicted.
fn victim_action(state: &ReconcilerState, workload: &ObjectKey) -> VictimAction {
    let tracked = state.model.workloads.get(workload);
    tracked.map_or(VictimAction::Delete, |it| {
        traits(&state.cluster, it).victim_action
    })
}

/// Evicts a workload; false if another write of it has to end first.
fn evict_workload(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    decision: PreemptionDecision,
) -> bool {
    // One whose admission is not written yet stays pending, without a write.
    if withdraw_admission(state, key) {
        return true;
    }
    let Some(workload) = state.model.workloads.get(key) else {
        return true;
    };
    if workload.is_evicted() || workload.is_deleted {
        return true;
    }
    match workload.decision() {
        None => {}
        Some(PendingDecision::Preempt(_)) => return true,
        Some(_) => return false,
    }
    state.counters.increment_victims(PreemptionCause::Nodes);
    let decision = PendingDecision::Preempt(Box::new(decision));
    state.model.set_decision(key, decision);
    if let Some(id) = state.cluster.state().workload(key.key()) {
        mark_evicted(&mut state.cluster, id);
    }
    if let Some(placement) = &mut state.placement {
        sync_unit(placement, &state.cluster, &state.model, key);
    }
    state.work_queue.enqueue(ObjectRef::Workload(key.clone()));
    true
}

fn evict_pod(state: &mut ReconcilerState, key: ObjectKey, victim: VictimPod) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    match placement.victims.get_mut(&key) {
        Some(known) if known.uid == victim.uid => known.violates_budget = victim.violates_budget,
        _ => {
            placement.victims.insert(key.clone(), victim);
            state.counters.increment_victims(PreemptionCause::Nodes);
        }
    }
    state.work_queue.enqueue(ObjectRef::VictimPod(key));
}

fn forget_others(state: &mut ReconcilerState, preemptor: &ObjectKey, kept: &BTreeSet<ObjectKey>) {
    if let Some(placement) = &mut state.placement {
        let victims = &mut placement.victims;
        victims.retain(|key, it| it.preemptor != *preemptor || kept.contains(key));
    }
}

/// The path of the queue of a workload in the quota tree; empty if it has none.
fn queue_path(state: &mut ReconcilerState, key: &ObjectKey) -> String {
    let core = state.cluster.state();
    let queue = core.workload(key.key());
    let queue = queue.and_then(|id| core.workload_view(id).queue());
    queue.map_or_else(String::new, |queue| {
        TreeView::new(state.cluster.state_mut()).path(queue)
    })
}

//! Keeps the units and reservations on nodes up to date with the workloads.

use super::node_placement::NodePlacement;
use super::workload_unit::workload_unit;
use crate::key::ObjectKey;
use crate::reconciler::model::{Model, TrackedWorkload};
use crate::reconciler::pending_decision::{PendingDecision, PlacementStep};
use crate::reconciler::queue_store::admitting_cluster_queue;
use crate::reconciler::status::conditions::has_status;
use lockkeeper_api::workload::{Admission, NominatedPlacement};
use lockkeeper_cluster_state::{ClusterState, placement_request};

/// The placement state of a process whose first ClusterQueue places workloads on nodes.
pub(in crate::reconciler) fn enable(cluster: &ClusterState, model: &Model) -> Box<NodePlacement> {
    let mut placement = Box::new(NodePlacement::default());
    for (name, labels) in cluster.objects().namespaces() {
        placement.nodes.set_namespace(name, labels);
    }
    for key in model.workloads.keys() {
        sync_unit(&mut placement, cluster, model, key);
    }
    placement
}

/// Brings the unit of a workload and its reservation up to date. An unchanged workload costs its pods.
pub(in crate::reconciler) fn sync_unit(
    placement: &mut NodePlacement,
    cluster: &ClusterState,
    model: &Model,
    key: &ObjectKey,
) {
    let Some(tracked) = model.workloads.get(key) else {
        return forget_unit(placement, key);
    };
    let is_assumed = cluster.is_assumed(key.key());
    if tracked.is_nominated() {
        placement.nominated.insert(key.clone());
        placement.due.insert(key.clone());
    } else {
        end_nomination(placement, key);
        if !is_assumed {
            placement.rounds.remove(key);
        }
    }
    if tracked.holds_quota() {
        let unit = workload_unit(cluster, model, tracked);
        placement.nodes.set_workload(&unit);
    } else if !is_assumed {
        placement.nodes.remove_workload(key.namespace(), key.name());
        placement.reserved.remove(key);
        placement.forget_priorities(key);
        return;
    }
    match wanted_reservation(tracked) {
        Some((admission, nodes)) if placement.reserved.get(key) != Some(nodes) => {
            reserve(placement, cluster, tracked, admission, nodes);
        }
        // The watch does not show the write of the decision yet.
        None if is_assumed && tracked.decision().is_none() => {}
        None if placement.reserved.remove(key).is_some() => {
            placement.nodes.release(key.namespace(), key.name());
        }
        _ => {}
    }
}

/// Brings the units of the workloads that a ClusterQueue has admitted up to date with its switches. Costs all workloads.
pub(in crate::reconciler) fn sync_units_of(
    placement: &mut NodePlacement,
    cluster: &ClusterState,
    model: &Model,
    cluster_queue: &str,
) {
    for (key, workload) in &model.workloads {
        if admitting_cluster_queue(&workload.object) == Some(cluster_queue) {
            sync_unit(placement, cluster, model, key);
        }
    }
}

/// Removes the unit of a workload that does not exist any more.
pub(in crate::reconciler) fn forget_unit(placement: &mut NodePlacement, key: &ObjectKey) {
    end_nomination(placement, key);
    placement.rounds.remove(key);
    placement.reserved.remove(key);
    placement.waiting.remove(key);
    placement.forget_priorities(key);
    placement.nodes.remove_workload(key.namespace(), key.name());
}

/// A workload does not wait for its victims any more: those that still run are not evicted for it.
fn end_nomination(placement: &mut NodePlacement, key: &ObjectKey) {
    placement.due.remove(key);
    if !placement.nominated.remove(key) {
        return;
    }
    placement.victims.retain(|_, it| it.preemptor != *key);
    // Another workload may need the same victims.
    placement.planned_revision = None;
}

/// Reserves nodes for a workload.
pub(super) fn reserve(
    placement: &mut NodePlacement,
    cluster: &ClusterState,
    tracked: &TrackedWorkload,
    admission: &Admission,
    nodes: &NominatedPlacement,
) {
    let request = placement_request(cluster, &tracked.object, admission, None);
    placement.nodes.reserve(&request, nodes);
    placement
        .reserved
        .insert(tracked.key.clone(), nodes.clone());
}

/// The nodes of a workload whose pods are not all bound: those of its decision, or else of its status.
fn wanted_reservation(tracked: &TrackedWorkload) -> Option<(&Admission, &NominatedPlacement)> {
    let status = tracked.object.status.as_ref();
    let admission = status.and_then(|it| it.admission.as_ref());
    match tracked.decision() {
        Some(PendingDecision::Admit(decision)) => {
            return decision.nodes().map(|nodes| (&decision.admission, nodes));
        }
        Some(PendingDecision::Place(PlacementStep::Admit(nodes))) => {
            return admission.map(|admission| (admission, nodes));
        }
        Some(PendingDecision::Place(PlacementStep::Nominate { nodes, .. })) => {
            return admission.map(|admission| (admission, nodes));
        }
        Some(PendingDecision::Preempt(_) | PendingDecision::Place(PlacementStep::Withdraw(_))) => {
            return None;
        }
        None => {}
    }
    // Pods that have ended must not keep a reservation: it ends when all have been ready.
    let is_waiting_for_pods = tracked.holds_quota()
        && !tracked.is_evicted()
        && !tracked.is_deleted
        && !has_status(&tracked.object, "PodsReady", "True")
        && !has_status(&tracked.object, "Finished", "True");
    let nodes = status.and_then(|it| it.nominated_placement.as_ref());
    admission.zip(nodes.filter(|_| is_waiting_for_pods))
}

//! Plans the nodes of a workload for which a cycle has found quota.

use super::units::reserve;
use crate::key::ObjectKey;
use crate::reconciler::pending_decision::AdmittedNodes;
use crate::reconciler::state::ReconcilerState;
use lockkeeper_api::workload::Admission;
use lockkeeper_cluster_state::placement_request;
use lockkeeper_cluster_state::placement_state::PlacementOutcome;

/// Why no workload is placed before the first lists are complete.
const INCOMPLETE_LISTS: &str = "the lists of nodes, pods and disruption budgets are not complete";

/// Plans the nodes of a workload, and reserves them. Costs a plan of the placement state.
///
/// # Errors
///
/// The obstacles if it does not fit.
pub(in crate::reconciler) fn plan_admission(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    admission: &Admission,
) -> Result<AdmittedNodes, String> {
    let objects = state.cluster.objects();
    if !objects.places_on_nodes(&admission.cluster_queue) {
        return Ok(AdmittedNodes::None);
    }
    let tracked = state.model.workloads.get(key);
    let (Some(placement), Some(tracked)) = (&mut state.placement, tracked) else {
        return Ok(AdmittedNodes::None);
    };
    if !state.model.lists.has_node_lists() {
        return Err(INCOMPLETE_LISTS.to_owned());
    }
    let request = placement_request(&state.cluster, &tracked.object, admission, None);
    let nodes = match placement.nodes.plan(&request).outcome {
        PlacementOutcome::Infeasible(message) => return Err(message),
        PlacementOutcome::Fits(nodes) => AdmittedNodes::Free(nodes),
        PlacementOutcome::Preempt {
            placement: nodes, ..
        }
        | PlacementOutcome::AwaitingVictims(nodes) => AdmittedNodes::Nominated(nodes),
    };
    if let AdmittedNodes::Free(to) | AdmittedNodes::Nominated(to) = &nodes {
        // Workloads that are placed next find this room taken.
        reserve(placement, &state.cluster, tracked, admission, to);
    }
    Ok(nodes)
}

/// Checks that a workload fits on nodes when the victims for its quota are gone, with or without further victims on nodes.
/// Costs a plan of the placement state, and the pods of the victims.
///
/// # Errors
///
/// The obstacles if it does not fit.
pub(in crate::reconciler) fn check_placement_after(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    admission: &Admission,
    victims: &[ObjectKey],
) -> Result<(), String> {
    if !state
        .cluster
        .objects()
        .places_on_nodes(&admission.cluster_queue)
    {
        return Ok(());
    }
    let tracked = state.model.workloads.get(key);
    let (Some(placement), Some(tracked)) = (&mut state.placement, tracked) else {
        return Ok(());
    };
    if !state.model.lists.has_node_lists() {
        return Err(INCOMPLETE_LISTS.to_owned());
    }
    let request = placement_request(&state.cluster, &tracked.object, admission, None);
    let victims = victims.iter().map(|it| (it.namespace(), it.name()));
    match placement
        .nodes
        .plan_after_eviction(&request, victims)
        .outcome
    {
        PlacementOutcome::Infeasible(message) => Err(message),
        _ => Ok(()),
    }
}

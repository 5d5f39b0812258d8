//! Plans the nodes of a workload for which a cycle has found quota.

use super::request::placement_request;
use super::units::reserve;
use crate::key::ObjectKey;
use crate::reconciler::pending_decision::AdmittedNodes;
use crate::reconciler::state::ReconcilerState;
use lockkeeper_api::workload::Admission;
use lockkeeper_cluster_state::placement_state::PlacementOutcome;

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
    if !state.model.has_node_lists() {
        return Err("the lists of nodes, pods and disruption budgets are not complete".to_owned());
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

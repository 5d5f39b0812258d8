//! Plans the nodes of a workload for which a cycle has found quota.

use super::request::placement_request;
use super::units::reserve;
use crate::key::ObjectKey;
use crate::reconciler::state::ReconcilerState;
use lockkeeper_api::workload::{Admission, NominatedPlacement};
use lockkeeper_cluster_state::placement_state::PlacementOutcome;

/// How a workload with quota continues.
#[derive(Debug)]
pub(in crate::reconciler) enum AdmissionPlacement {
    /// Its queue places no workloads on nodes.
    NotNeeded,
    /// It is admitted with these nodes.
    Admit(NominatedPlacement),
    /// It reserves quota and nominates these nodes, whose victims are evicted then.
    Nominate(NominatedPlacement),
    /// It does not fit, with the obstacles.
    Wait(String),
}

/// Plans the nodes of a workload, and reserves them. Costs a plan of the placement state.
pub(in crate::reconciler) fn plan_admission(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    admission: &Admission,
) -> AdmissionPlacement {
    let objects = state.cluster.objects();
    if !objects.places_on_nodes(&admission.cluster_queue) {
        return AdmissionPlacement::NotNeeded;
    }
    let tracked = state.model.workloads.get(key);
    let (Some(placement), Some(tracked)) = (&mut state.placement, tracked) else {
        return AdmissionPlacement::NotNeeded;
    };
    if !state.model.has_node_lists() {
        return AdmissionPlacement::Wait(
            "the lists of nodes, pods and disruption budgets are not complete".to_owned(),
        );
    }
    let request = placement_request(&state.cluster, &tracked.object, admission, None);
    let nodes = match placement.nodes.plan(&request).outcome {
        PlacementOutcome::Infeasible(message) => return AdmissionPlacement::Wait(message),
        PlacementOutcome::Fits(nodes) => AdmissionPlacement::Admit(nodes),
        PlacementOutcome::Preempt {
            placement: nodes, ..
        }
        | PlacementOutcome::AwaitingVictims(nodes) => AdmissionPlacement::Nominate(nodes),
    };
    if let AdmissionPlacement::Admit(to) | AdmissionPlacement::Nominate(to) = &nodes {
        // Workloads that are placed next find this room taken.
        reserve(placement, &state.cluster, tracked, admission, to);
    }
    nodes
}

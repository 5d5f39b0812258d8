//! Nodes that pods are nominated to.

use super::cluster::GangCluster;
use super::domain::Domain;
use super::hypothetical::{PriorityCutoff, SearchBaseline};
use super::hypothetical_pods;
use super::preemptor::{self, Preemptor};
use super::reason::{DroppedNomination, InfeasibleReason};
use super::request::{PreemptionRequest, zip_placement};
use crate::ids::{HostId, PodId, ResourceId};
use crate::placement::{FreeResources, Host, InterPodCounts, Overlay, Pod};
use std::collections::BTreeSet;

/// The status of a preemptor's nomination.
pub(super) enum NominationStatus {
    /// Too few of its pods are nominated.
    NotNominated,
    /// Its pods fit on their nominated nodes already.
    Fits(Vec<(PodId, Option<HostId>)>),
    /// Its pods fit once the terminating victims are gone.
    AwaitingVictims(Vec<(PodId, Option<HostId>)>),
    /// A pod does not fit even then.
    Dropped(DroppedNomination),
}

/// The nominated node of each pod.
pub(super) fn current_placement(
    state: &GangCluster,
    pods: &[PodId],
) -> Vec<(PodId, Option<HostId>)> {
    let hosts: Vec<Option<HostId>> = pods
        .iter()
        .map(|it| state.workloads().nominated_host(*it))
        .collect();
    zip_placement(pods, &hosts)
}

/// Reserves the room of other nominated pods with at least the preemptor's priority.
///
/// Source: kube-scheduler v1.37, `RunFilterPluginsWithNominatedPods`.
pub(super) fn reserve_nominated(
    state: &GangCluster,
    request: &PreemptionRequest<'_>,
    baseline: &mut SearchBaseline,
) {
    let workloads = state.workloads();
    let priority = preemptor::priority(state, request);
    // The preemptor's own nominations must not take room from it.
    let own: BTreeSet<PodId> = request.pods.iter().copied().collect();
    for id in state.nominated.difference(&own) {
        let is_above = workloads.scheduling_priority(*id) >= priority;
        if let Some(host) = workloads.nominated_host(*id).filter(|_| is_above) {
            baseline.reserve(host, *id);
        }
    }
}

/// Checks whether each pod of the preemptor fits on its nominated node, now or once the victims there are gone. Costs
/// the pods on these nodes.
///
/// Source: KEP-5710, Delayed preemption, the last point.
pub(super) fn nomination_status(
    state: &GangCluster,
    preemptor: Preemptor<'_>,
    baseline: &SearchBaseline,
) -> NominationStatus {
    let placement = current_placement(state, preemptor.pods);
    let hosts: BTreeSet<HostId> = placement.iter().filter_map(|(_, host)| *host).collect();
    if placement.iter().filter(|(_, host)| host.is_some()).count() < preemptor.count_min {
        return NominationStatus::NotNominated;
    }
    let hosts: Vec<HostId> = hosts.into_iter().collect();
    let cutoff = PriorityCutoff {
        state,
        max_priority: None,
    };
    let mut overlay = Overlay::new(&cutoff);
    baseline.apply_to(&mut overlay, &cutoff, &hosts);
    let without_changes = overlay.mark();
    let domain = Domain::Subset(hosts);
    let mut counts = preemptor
        .inter_pod
        .map(|it| hypothetical_pods::counts(state, it, baseline, &domain, None, &[]));
    let present = counts.as_ref().map(InterPodCounts::mark);
    if apply_placement(state, &placement, &mut overlay, counts.as_mut()).is_ok() {
        return NominationStatus::Fits(placement);
    }
    if let Some((counts, mark)) = counts.as_mut().zip(present) {
        counts.roll_back(mark);
        for pod in counts.table().counted_pods() {
            let host = state.cluster.pod(pod).and_then(Pod::host);
            let is_leaving = state.workloads().is_terminating_by_preemption(pod);
            if let Some(host) = host.filter(|_| is_leaving) {
                counts.remove(pod, host);
            }
        }
    }
    // The failed attempt has reserved the room of the pods before the failing one.
    overlay.roll_back(without_changes);
    for host in domain.hosts() {
        let pods = state.cluster.host(*host).map_or(&[][..], |it| it.pods());
        for pod in pods
            .iter()
            .filter(|it| state.workloads().is_terminating_by_preemption(**it))
        {
            overlay.release(*host, state.cluster.requests(*pod));
        }
    }
    match apply_placement(state, &placement, &mut overlay, counts.as_mut()) {
        Ok(()) => NominationStatus::AwaitingVictims(placement),
        Err(dropped) => NominationStatus::Dropped(dropped),
    }
}

/// Reserves the room of each pod on its node. Errors at the first pod that does not fit.
fn apply_placement(
    state: &GangCluster,
    placement: &[(PodId, Option<HostId>)],
    overlay: &mut Overlay<'_, PriorityCutoff<'_>>,
    mut counts: Option<&mut InterPodCounts<'_>>,
) -> Result<(), DroppedNomination> {
    for (pod, host) in placement {
        let shape = state.cluster.pod(*pod).map(Pod::shape);
        let Some((host, shape)) = host.zip(shape) else {
            continue;
        };
        let shape = state.cluster.shape_of(shape);
        let dropped = |reason| DroppedNomination {
            pod: *pod,
            host,
            reason,
        };
        let node = state.cluster.host(host);
        let rejection = node.and_then(|it| shape.rejection_by(it, state.cluster.symbols()));
        if let Some(rejection) = rejection {
            return Err(dropped(InfeasibleReason::Rejected(rejection)));
        }
        let requests = shape.requests.iter();
        let exceeding = requests.filter(|(it, request)| *request > overlay.free(host, *it));
        let resources: Vec<ResourceId> = exceeding.map(|(it, _)| *it).collect();
        if !resources.is_empty() {
            return Err(dropped(InfeasibleReason::InsufficientResources {
                resources,
            }));
        }
        if let Some(counts) = counts.as_deref_mut() {
            if let Some(rejection) = counts.rejection_of(*pod, host) {
                return Err(dropped(InfeasibleReason::RejectedByPods(rejection)));
            }
            counts.add(*pod, host);
        }
        // Several pods of a gang may be nominated to the same node.
        overlay.reserve(host, &shape.requests);
    }
    Ok(())
}

/// Whether a pod of lower priority is terminating by preemption on a node that one of the preemptor's pods is
/// nominated to.
///
/// Source: kube-scheduler v1.37, `isOngoingPreemption` and `PodEligibleToPreemptOthers`.
pub(super) fn has_terminating_victims(state: &GangCluster, preemptor: Preemptor<'_>) -> bool {
    let workloads = state.workloads();
    let hosts = preemptor
        .pods
        .iter()
        .filter_map(|it| workloads.nominated_host(*it));
    let pods = hosts.filter_map(|it| state.cluster.host(it));
    let mut pods = pods.flat_map(Host::pods);
    let is_below = |it: PodId| workloads.scheduling_priority(it) < preemptor.priority;
    pods.any(|it| workloads.is_terminating_by_preemption(*it) && is_below(*it))
}

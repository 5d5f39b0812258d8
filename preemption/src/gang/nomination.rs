//! Nodes that pods were nominated to before.

use super::cluster::GangCluster;
use super::decide::{DroppedNomination, InfeasibleReason, PreemptionRequest, zip_placement};
use super::hypothetical::{PriorityCutoff, SearchBaseline};
use super::search::Preemptor;
use crate::ids::{HostId, PodId, ResourceId};
use crate::placement::{FreeResources, Host, Overlay, Pod};
use std::collections::BTreeSet;

/// How it stands with the nodes that a preemptor was nominated to.
pub(super) enum NominationStatus {
    /// It was not, or too few of its pods were.
    NotNominated,
    /// They have room for it already.
    Fits(Vec<(PodId, Option<HostId>)>),
    /// They will, when those have gone that are going.
    AwaitingVictims(Vec<(PodId, Option<HostId>)>),
    /// They will not.
    Dropped(DroppedNomination),
}

/// The nodes that pods were nominated to.
pub(super) fn current_placement(
    world: &GangCluster,
    pods: &[PodId],
) -> Vec<(PodId, Option<HostId>)> {
    let hosts: Vec<Option<HostId>> = pods.iter().map(|it| world.nominated_host(*it)).collect();
    zip_placement(pods, &hosts)
}

/// Takes the room of others that wait for a node they were nominated to, if they are of at least the preemptor's
/// priority.
///
/// Source: kube-scheduler v1.37, `RunFilterPluginsWithNominatedPods`.
pub(super) fn reserve_nominated(
    world: &GangCluster,
    ask: &PreemptionRequest<'_>,
    ground: &mut SearchBaseline,
) {
    let shapes = world.shapes(ask.pods);
    let priority = world.preemptor(ask, &shapes).priority;
    let own: BTreeSet<PodId> = ask.pods.iter().copied().collect();
    for id in world.nominated.difference(&own) {
        let is_above = world.scheduling_priority(*id) >= priority;
        let host = world.nominated_host(*id).filter(|_| is_above);
        if let Some((host, pod)) = host.zip(world.cluster.pod(*id)) {
            ground.reserve(host, pod.shape());
        }
    }
}

/// Whether the nodes that a preemptor was nominated to still will do: each of its pods fits on its own, when whoever
/// is being preempted there has gone. Costs the pods on these nodes.
///
/// Source: KEP-5710, Delayed preemption, the last point.
pub(super) fn nomination_status(
    world: &GangCluster,
    preemptor: Preemptor<'_>,
    ground: &SearchBaseline,
) -> NominationStatus {
    let placement = current_placement(world, preemptor.pods);
    let hosts: BTreeSet<HostId> = placement.iter().filter_map(|(_, host)| *host).collect();
    if placement.iter().filter(|(_, host)| host.is_some()).count() < preemptor.count_min {
        return NominationStatus::NotNominated;
    }
    let hosts: Vec<HostId> = hosts.into_iter().collect();
    let cut = PriorityCutoff {
        state: world,
        max_priority: None,
    };
    let mut overlay = Overlay::new(&cut);
    ground.apply_to(&mut overlay, &cut, &hosts);
    let mark = overlay.mark();
    if apply_placement(world, &placement, &mut overlay).is_ok() {
        return NominationStatus::Fits(placement);
    }
    overlay.roll_back(mark);
    for host in &hosts {
        let pods = world.cluster.host(*host).map_or(&[][..], |it| it.pods());
        for pod in pods
            .iter()
            .filter(|it| world.is_terminating_by_preemption(**it))
        {
            overlay.release(*host, world.cluster.requests(*pod));
        }
    }
    match apply_placement(world, &placement, &mut overlay) {
        Ok(()) => NominationStatus::AwaitingVictims(placement),
        Err(lost) => NominationStatus::Dropped(lost),
    }
}

/// Puts each pod on its node, or says which does not fit there.
fn apply_placement(
    world: &GangCluster,
    placement: &[(PodId, Option<HostId>)],
    overlay: &mut Overlay<'_, PriorityCutoff<'_>>,
) -> Result<(), DroppedNomination> {
    for (pod, host) in placement {
        let shape = world.cluster.pod(*pod).map(Pod::shape);
        let Some((host, shape)) = host.zip(shape) else {
            continue;
        };
        let shape = world.cluster.shape_of(shape);
        let lost = |why| DroppedNomination {
            pod: *pod,
            host,
            reason: why,
        };
        let node = world.cluster.host(host);
        let refused = node.and_then(|it| shape.rejection_by(it, world.cluster.symbols()));
        if let Some(refusal) = refused {
            return Err(lost(InfeasibleReason::Rejected(refusal)));
        }
        let short = shape.requests.iter();
        let short = short.filter(|(it, asked)| *asked > overlay.free(host, *it));
        let short: Vec<ResourceId> = short.map(|(it, _)| *it).collect();
        if !short.is_empty() {
            return Err(lost(InfeasibleReason::InsufficientResources {
                resources: short,
            }));
        }
        overlay.reserve(host, &shape.requests);
    }
    Ok(())
}

/// Whether anybody of a lower priority is being preempted on a node that one of the pods was nominated to.
///
/// Source: kube-scheduler v1.37, `isOngoingPreemption` and `PodEligibleToPreemptOthers`.
pub(super) fn has_terminating_victims(
    world: &GangCluster,
    preemptor: Preemptor<'_>,
    is_refused: bool,
) -> bool {
    let hosts = preemptor
        .pods
        .iter()
        .filter_map(|it| world.nominated_host(*it));
    let pods = hosts.filter_map(|it| world.cluster.host(it));
    let mut pods = pods.flat_map(Host::pods);
    let is_below = |it: PodId| world.scheduling_priority(it) < preemptor.priority;
    !is_refused && pods.any(|it| world.is_terminating_by_preemption(*it) && is_below(*it))
}

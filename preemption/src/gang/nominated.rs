//! Nodes that pods were nominated to before.

use super::plan::{Ask, Dropped, Why, named};
use super::room::{Cut, Ground};
use super::search::Preemptor;
use super::world::World;
use crate::names::{HostId, PodId, ResourceId};
use crate::placement::{Host, Overlay, Pod, Room};
use std::collections::BTreeSet;

/// How it stands with the nodes that a preemptor was nominated to.
pub(super) enum Standing {
    /// It was not, or too few of its pods were.
    None,
    /// They have room for it already.
    Free(Vec<(PodId, Option<HostId>)>),
    /// They will, when those have gone that are going.
    Waits(Vec<(PodId, Option<HostId>)>),
    /// They will not.
    Lost(Dropped),
}

/// The nodes that pods were nominated to.
pub(super) fn current(world: &World, pods: &[PodId]) -> Vec<(PodId, Option<HostId>)> {
    let hosts: Vec<Option<HostId>> = pods.iter().map(|it| world.nominated_host(*it)).collect();
    named(pods, &hosts)
}

/// Takes the room of others that wait for a node they were nominated to, if they are of at least the preemptor's
/// priority.
///
/// Source: kube-scheduler v1.37, `RunFilterPluginsWithNominatedPods`.
pub(super) fn reserve(world: &World, ask: &Ask<'_>, ground: &mut Ground) {
    let shapes = world.shapes(ask.pods);
    let priority = world.preemptor(ask, &shapes).priority;
    let own: BTreeSet<PodId> = ask.pods.iter().copied().collect();
    for id in world.nominated.difference(&own) {
        let is_above = world.scheduling_priority(*id) >= priority;
        let host = world.nominated_host(*id).filter(|_| is_above);
        if let Some((host, pod)) = host.zip(world.cluster.pod(*id)) {
            ground.take(host, pod.shape());
        }
    }
}

/// Whether the nodes that a preemptor was nominated to still will do: each of its pods fits on its own, when whoever
/// is being preempted there has gone. Costs the pods on these nodes.
///
/// Source: KEP-5710, Delayed preemption, the last point.
pub(super) fn standing(world: &World, preemptor: Preemptor<'_>, ground: &Ground) -> Standing {
    let placement = current(world, preemptor.pods);
    let hosts: BTreeSet<HostId> = placement.iter().filter_map(|(_, host)| *host).collect();
    if placement.iter().filter(|(_, host)| host.is_some()).count() < preemptor.count_min {
        return Standing::None;
    }
    let hosts: Vec<HostId> = hosts.into_iter().collect();
    let cut = Cut { world, most: None };
    let mut overlay = Overlay::new(&cut);
    ground.put_on(&mut overlay, &cut, &hosts);
    let mark = overlay.mark();
    if seat(world, &placement, &mut overlay).is_ok() {
        return Standing::Free(placement);
    }
    overlay.roll_back(mark);
    for host in &hosts {
        let pods = world.cluster.host(*host).map_or(&[][..], |it| it.pods());
        for pod in pods.iter().filter(|it| world.is_going(**it)) {
            overlay.give(*host, world.cluster.requests(*pod));
        }
    }
    match seat(world, &placement, &mut overlay) {
        Ok(()) => Standing::Waits(placement),
        Err(lost) => Standing::Lost(lost),
    }
}

/// Puts each pod on its node, or says which does not fit there.
fn seat(
    world: &World,
    placement: &[(PodId, Option<HostId>)],
    overlay: &mut Overlay<'_, Cut<'_>>,
) -> Result<(), Dropped> {
    for (pod, host) in placement {
        let shape = world.cluster.pod(*pod).map(Pod::shape);
        let Some((host, shape)) = host.zip(shape) else {
            continue;
        };
        let shape = world.cluster.shape_of(shape);
        let lost = |why| Dropped {
            pod: *pod,
            host,
            why,
        };
        let node = world.cluster.host(host);
        let refused = node.and_then(|it| shape.refused_by(it, world.cluster.words()));
        if let Some(refusal) = refused {
            return Err(lost(Why::Refused(refusal)));
        }
        let short = shape.requests.iter();
        let short = short.filter(|(it, asked)| *asked > overlay.free(host, *it));
        let short: Vec<ResourceId> = short.map(|(it, _)| *it).collect();
        if !short.is_empty() {
            return Err(lost(Why::NoRoom { short }));
        }
        overlay.take(host, &shape.requests);
    }
    Ok(())
}

/// Whether anybody of a lower priority is being preempted on a node that one of the pods was nominated to.
///
/// Source: kube-scheduler v1.37, `isOngoingPreemption` and `PodEligibleToPreemptOthers`.
pub(super) fn is_going(world: &World, preemptor: Preemptor<'_>, is_refused: bool) -> bool {
    let hosts = preemptor
        .pods
        .iter()
        .filter_map(|it| world.nominated_host(*it));
    let pods = hosts.filter_map(|it| world.cluster.host(it));
    let mut pods = pods.flat_map(Host::pods);
    let is_below = |it: PodId| world.scheduling_priority(it) < preemptor.priority;
    !is_refused && pods.any(|it| world.is_going(*it) && is_below(*it))
}

//! Placement of pods that other pods restrict.

use super::cluster::Cluster;
use super::fit::{Placement, Strategy, passes_filters, remaining_share};
use super::inter_pod_counts::InterPodCounts;
use super::overlay::{FreeResources, Overlay};
use crate::ids::{HostId, PodId, ShapeId};
use std::collections::BTreeMap;

/// Like [`place()`](super::place()), for pods that other pods restrict: each pod is placed beside the pods before it.
///
/// If that places not all pods and they have an affinity to each other, the domains of the affinity are tried one after another:
/// the first pod decides about the domain of all, and its node may be in one that is too small. Returns the placement with the
/// most pods, the first of equals.
///
/// Costs the pods times the nodes, twice if the pods have an affinity.
pub fn place_beside_pods<R: FreeResources + ?Sized>(
    overlay: &mut Overlay<'_, R>,
    counts: &mut InterPodCounts<'_>,
    hosts: &[HostId],
    pods: &[PodId],
    strategy: Strategy,
) -> Placement {
    let (room, marked) = (overlay.mark(), counts.mark());
    let mut best = place_in(overlay, counts, hosts, pods, strategy);
    let placed = |it: &Placement| it.iter().flatten().count();
    if placed(&best) < pods.len() {
        for domain in counts.table().domains_to_try(hosts) {
            overlay.roll_back(room);
            counts.roll_back(marked);
            let placement = place_in(overlay, counts, &domain, pods, strategy);
            if placed(&placement) > placed(&best) {
                best = placement;
            }
            if placed(&best) == pods.len() {
                break;
            }
        }
    }
    // The last attempt need not be the best.
    overlay.roll_back(room);
    counts.roll_back(marked);
    let cluster = counts.table().cluster();
    for (pod, host) in pods.iter().zip(&best) {
        if let Some(host) = host {
            overlay.reserve(*host, cluster.requests(*pod));
            counts.add(*pod, *host);
        }
    }
    best
}

fn place_in<R: FreeResources + ?Sized>(
    overlay: &mut Overlay<'_, R>,
    counts: &mut InterPodCounts<'_>,
    hosts: &[HostId],
    pods: &[PodId],
    strategy: Strategy,
) -> Placement {
    let table = counts.table();
    let cluster = table.cluster();
    let mut candidates: BTreeMap<ShapeId, Vec<HostId>> = BTreeMap::new();
    // By kind of pods, how many candidates at the start have no room any more.
    let mut passed: BTreeMap<usize, usize> = BTreeMap::new();
    let mut placement = Placement::with_capacity(pods.len());
    for id in pods {
        let Some(shape_id) = cluster.pod(*id).map(super::pod::Pod::shape) else {
            placement.push(None);
            continue;
        };
        let shape = cluster.shape_of(shape_id);
        let hosts = candidates.entry(shape_id).or_insert_with(|| {
            let feasible = hosts.iter().copied();
            feasible
                .filter(|it| passes_filters(cluster, shape, *it))
                .collect()
        });
        let from = passed.entry(table.kind_of(*id)).or_default();
        let is_monotone = table.is_monotone(*id);
        let is_full = |host: &HostId| {
            !overlay.fits(*host, shape) || is_monotone && counts.rejection_of(*id, *host).is_some()
        };
        while hosts.get(*from).is_some_and(is_full) {
            *from = from.saturating_add(1);
        }
        let rest = hosts.get(*from..).unwrap_or_default().iter().copied();
        let host = match strategy {
            Strategy::FirstFit => first(overlay, counts, *id, rest),
            Strategy::BestFit => fullest(cluster, overlay, counts, *id, rest),
        };
        if let Some(host) = host {
            overlay.reserve(host, &shape.requests);
            counts.add(*id, host);
        }
        placement.push(host);
    }
    placement
}

fn first<R: FreeResources + ?Sized>(
    overlay: &Overlay<'_, R>,
    counts: &InterPodCounts<'_>,
    pod: PodId,
    mut hosts: impl Iterator<Item = HostId>,
) -> Option<HostId> {
    let cluster = counts.table().cluster();
    let shape = cluster.shape_of(cluster.pod(pod)?.shape());
    hosts.find(|it| overlay.fits(*it, shape) && counts.rejection_of(pod, *it).is_none())
}

fn fullest<R: FreeResources + ?Sized>(
    cluster: &Cluster,
    overlay: &Overlay<'_, R>,
    counts: &InterPodCounts<'_>,
    pod: PodId,
    hosts: impl Iterator<Item = HostId>,
) -> Option<HostId> {
    let shape = cluster.shape_of(cluster.pod(pod)?.shape());
    let feasible = hosts.filter_map(|host| {
        let remaining = remaining_share(cluster, overlay, shape, host)?;
        let is_feasible = counts.rejection_of(pod, host).is_none();
        is_feasible.then_some((remaining, host))
    });
    // `min_by_key` returns the first of equals.
    feasible.min_by_key(|it| it.0).map(|it| it.1)
}

//! Placement of pods on nodes, one after another.

use super::cluster::Cluster;
use super::overlay::{FreeResources, Overlay};
use super::pod::Shape;
use crate::amount::Amount;
use crate::ids::{HostId, ShapeId};
use std::collections::{BTreeMap, BTreeSet};

/// Selects among the nodes on which a pod fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The first in the order of nodes.
    #[default]
    FirstFit,
    /// The node that is fullest afterwards: its scarcest requested resource has the smallest remaining share of
    /// allocatable. The first in the order of nodes among equals.
    BestFit,
}

/// The node of each pod, in order; `None` if the pod fits nowhere.
pub type Placement = Vec<Option<HostId>>;

/// Places pods on nodes, in order, each beside the pods before it, and reserves their requests in the overlay. A pod
/// that fits nowhere is skipped.
///
/// [`Strategy::FirstFit`] costs the nodes for each different shape, and the pods: a node without room for a shape has
/// none later. [`Strategy::BestFit`] costs an additional logarithm of the nodes.
///
/// Placement is greedy and not monotone: with more room it may place fewer pods, since an earlier pod may occupy the
/// only node on which a later one would have fit.
pub fn place<R: FreeResources + ?Sized>(
    cluster: &Cluster,
    overlay: &mut Overlay<'_, R>,
    hosts: &[HostId],
    pods: &[ShapeId],
    strategy: Strategy,
) -> Placement {
    match strategy {
        Strategy::FirstFit => first_fit(cluster, overlay, hosts, pods),
        Strategy::BestFit => best_fit(cluster, overlay, hosts, pods),
    }
}

fn first_fit<R: FreeResources + ?Sized>(
    cluster: &Cluster,
    overlay: &mut Overlay<'_, R>,
    hosts: &[HostId],
    pods: &[ShapeId],
) -> Placement {
    // By shape, how many nodes at the start of the list have no room for it any more.
    let mut passed: BTreeMap<ShapeId, usize> = BTreeMap::new();
    let mut placement = Placement::with_capacity(pods.len());
    for id in pods {
        let shape = cluster.shape_of(*id);
        let from = passed.entry(*id).or_default();
        let mut unvisited = hosts.iter().skip(*from);
        let found = unvisited
            .position(|host| overlay.fits(*host, shape) && passes_filters(cluster, shape, *host));
        // Room only shrinks, so the next pod of this shape starts at the same node.
        *from = found.map_or(hosts.len(), |steps| from.saturating_add(steps));
        let host = found.and_then(|_| hosts.get(*from)).copied();
        if let Some(host) = host {
            overlay.reserve(host, &shape.requests);
        }
        placement.push(host);
    }
    placement
}

/// The nodes that fit a shape, the fullest first: the remaining share and the index of the node.
type HostsByRemaining = BTreeSet<(u64, usize)>;

fn best_fit<R: FreeResources + ?Sized>(
    cluster: &Cluster,
    overlay: &mut Overlay<'_, R>,
    hosts: &[HostId],
    pods: &[ShapeId],
) -> Placement {
    let mut ranked: BTreeMap<ShapeId, HostsByRemaining> = BTreeMap::new();
    let mut placement = Placement::with_capacity(pods.len());
    for id in pods {
        let shape = cluster.shape_of(*id);
        let of_shape = ranked.entry(*id).or_insert_with(|| {
            let all = hosts.iter().enumerate();
            all.filter_map(|(at, host)| {
                Some((remaining_share(cluster, overlay, shape, *host)?, at))
            })
            .collect()
        });
        let Some((at, host)) = of_shape
            .first()
            .and_then(|(_, at)| Some((*at, *hosts.get(*at)?)))
        else {
            placement.push(None);
            continue;
        };
        let before =
            |other: ShapeId| remaining_share(cluster, overlay, cluster.shape_of(other), host);
        // The reservation changes the share of this node for every shape.
        let stale: Vec<_> = ranked.keys().map(|it| (*it, before(*it))).collect();
        overlay.reserve(host, &shape.requests);
        for (other, before) in stale {
            let after = remaining_share(cluster, overlay, cluster.shape_of(other), host);
            if let Some(of_shape) = ranked.get_mut(&other) {
                of_shape.extend(after.map(|it| (it, at)));
                if let Some(before) = before.filter(|it| Some(*it) != after) {
                    of_shape.remove(&(before, at));
                }
            }
        }
        placement.push(Some(host));
    }
    placement
}

/// The unit of remaining shares: the share of an empty node.
const SHARE_UNITS: i128 = 1 << 32;

/// The remaining share of the node's scarcest requested resource; `None` if the pod does not fit.
pub(super) fn remaining_share<R: FreeResources + ?Sized>(
    cluster: &Cluster,
    overlay: &Overlay<'_, R>,
    shape: &Shape,
    host: HostId,
) -> Option<u64> {
    if !overlay.fits(host, shape) || !passes_filters(cluster, shape, host) {
        return None;
    }
    let allocatable = cluster.host(host)?.allocatable();
    let parts = shape.requests.iter().map(|(resource, requested)| {
        let all = allocatable.get(*resource);
        // Such a resource has no meaningful share, so it must not be the scarcest.
        if all.is_unlimited() || all <= Amount::ZERO {
            return u64::MAX;
        }
        let rest = overlay.free(host, *resource).minus(*requested);
        let parts = i128::from(rest.get()).saturating_mul(SHARE_UNITS);
        let parts = parts
            .checked_div(i128::from(all.get()))
            .unwrap_or(SHARE_UNITS);
        u64::try_from(parts).unwrap_or(u64::MAX)
    });
    Some(parts.min().unwrap_or(u64::MAX))
}

pub(super) fn passes_filters(cluster: &Cluster, shape: &Shape, host: HostId) -> bool {
    let host = cluster.host(host);
    host.is_some_and(|host| shape.rejection_by(host, cluster.symbols()).is_none())
}

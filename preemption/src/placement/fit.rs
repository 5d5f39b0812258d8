//! Pods put on nodes, one after the other.

use super::cluster::Cluster;
use super::overlay::{FreeResources, Overlay};
use super::pod::Shape;
use crate::amount::Amount;
use crate::ids::{HostId, ShapeId};
use std::collections::{BTreeMap, BTreeSet};

/// Which of the nodes that fit is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The first in the order of nodes.
    #[default]
    FirstFit,
    /// The one of which the least is left in its scarcest resource that the pod asks for, in parts of what it
    /// has; the first in the order of nodes among equals.
    BestFit,
}

/// For each pod, in order, where it goes; `None` if it fits nowhere.
pub type Placement = Vec<Option<HostId>>;

/// Puts pods on nodes, in order, each where it fits when those before it have their places, and takes that of the
/// overlay. A pod that fits nowhere is passed over; the others go on.
///
/// With [`Strategy::FirstFit`] it costs the nodes for each different shape, and the pods: a node that had no room
/// for a shape has none later. With [`Strategy::BestFit`] it costs a logarithm of the nodes more.
///
/// It is greedy and not monotone: with more room it may place fewer, since a pod that comes first may go where
/// only a later one would have fit.
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
    // By shape, how many nodes have no room for it any more.
    let mut passed: BTreeMap<ShapeId, usize> = BTreeMap::new();
    let mut placement = Placement::with_capacity(pods.len());
    for id in pods {
        let shape = cluster.shape_of(*id);
        let from = passed.entry(*id).or_default();
        let mut left = hosts.iter().skip(*from);
        let found = left
            .position(|host| overlay.fits(*host, shape) && passes_filters(cluster, shape, *host));
        *from = found.map_or(hosts.len(), |steps| from.saturating_add(steps));
        let host = found.and_then(|_| hosts.get(*from)).copied();
        if let Some(host) = host {
            overlay.reserve(host, &shape.requests);
        }
        placement.push(host);
    }
    placement
}

/// The nodes that fit a shape, the fullest first: what is left, the place in the order of nodes.
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

/// Parts of a node that what is left of it is counted in.
const SHARE_UNITS: i128 = 1 << 32;

/// What would be left of a node's scarcest resource; `None` if the pod does not fit.
fn remaining_share<R: FreeResources + ?Sized>(
    cluster: &Cluster,
    overlay: &Overlay<'_, R>,
    shape: &Shape,
    host: HostId,
) -> Option<u64> {
    if !overlay.fits(host, shape) || !passes_filters(cluster, shape, host) {
        return None;
    }
    let allocatable = cluster.host(host)?.allocatable();
    let parts = shape.requests.iter().map(|(resource, asked)| {
        let all = allocatable.get(*resource);
        if all.is_unlimited() || all <= Amount::ZERO {
            return u64::MAX;
        }
        let rest = overlay.free(host, *resource).minus(*asked);
        let parts = i128::from(rest.get()).saturating_mul(SHARE_UNITS);
        let parts = parts
            .checked_div(i128::from(all.get()))
            .unwrap_or(SHARE_UNITS);
        u64::try_from(parts).unwrap_or(u64::MAX)
    });
    Some(parts.min().unwrap_or(u64::MAX))
}

fn passes_filters(cluster: &Cluster, shape: &Shape, host: HostId) -> bool {
    let host = cluster.host(host);
    host.is_some_and(|host| shape.rejection_by(host, cluster.symbols()).is_none())
}

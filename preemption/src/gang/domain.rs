//! Domains: sets of nodes, in one of which a preemptor is put.

use super::cluster::GangCluster;
use crate::ids::{HostId, UnitId};

/// A set of nodes. A pod is put on a single one; a gang into the whole cluster, until there is topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// One node.
    Host(HostId),
    /// All nodes that are there, by position and name.
    Cluster(Vec<HostId>),
    /// Some nodes, in the order in which they are tried: a rack, a zone.
    Subset(Vec<HostId>),
}

impl Domain {
    /// All nodes that are there.
    #[must_use]
    pub fn whole_cluster(world: &GangCluster) -> Self {
        Self::Cluster(world.cluster.hosts().collect())
    }

    /// Its nodes, in the order in which they are tried.
    #[must_use]
    pub fn hosts(&self) -> &[HostId] {
        match self {
            Self::Host(host) => std::slice::from_ref(host),
            Self::Cluster(hosts) | Self::Subset(hosts) => hosts,
        }
    }

    /// The priorities of units with pods in it, below a bound; the lowest first.
    pub(super) fn priorities_below(&self, world: &GangCluster, bound: i32) -> Vec<i32> {
        if let Self::Cluster(_) = self {
            return world.priorities_below(bound);
        }
        let of_hosts = self.hosts().iter().filter_map(|it| world.index.node(*it));
        let mut priorities = Vec::new();
        for of_host in of_hosts {
            priorities.extend(of_host.priorities_below(bound));
        }
        // Those of one node are in order.
        if let Self::Subset(_) = self {
            priorities.sort_unstable();
            priorities.dedup();
        }
        priorities
    }

    /// The units of a lower priority with pods on some nodes, the most important first. It is asked for few nodes
    /// only.
    pub(super) fn units_below(world: &GangCluster, hosts: &[HostId], bound: i32) -> Vec<UnitId> {
        let Some(most) = bound.checked_sub(1) else {
            return Vec::new();
        };
        let of_hosts = hosts.iter().filter_map(|it| world.index.node(*it));
        let mut units: Vec<UnitId> = of_hosts.flat_map(|it| it.units(most)).collect();
        units.sort_unstable();
        units.dedup();
        world.sort_by_importance(&mut units);
        units
    }
}

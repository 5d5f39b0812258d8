//! Domains: sets of nodes that are searched together.

use super::cluster::GangCluster;
use crate::ids::{HostId, UnitId};

/// A set of nodes. A single pod is placed on one node, a gang in the whole cluster, since there is no topology yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// One node.
    Host(HostId),
    /// All existing nodes, by position and name.
    Cluster(Vec<HostId>),
    /// Some nodes, in the order in which they are tried: a rack, a zone.
    Subset(Vec<HostId>),
}

impl Domain {
    /// The domain of all existing nodes.
    #[must_use]
    pub fn whole_cluster(state: &GangCluster) -> Self {
        Self::Cluster(state.cluster.hosts().collect())
    }

    /// Its nodes, in the order in which they are tried.
    #[must_use]
    pub fn hosts(&self) -> &[HostId] {
        match self {
            Self::Host(host) => std::slice::from_ref(host),
            Self::Cluster(hosts) | Self::Subset(hosts) => hosts,
        }
    }

    /// The priorities below a bound of the units with pods in the domain, the lowest first.
    pub(super) fn priorities_below(&self, state: &GangCluster, bound: i32) -> Vec<i32> {
        // The unit table counts the priorities of the whole cluster: no walk over nodes.
        if let Self::Cluster(_) = self {
            return state.units.priorities_below(bound);
        }
        let nodes = self
            .hosts()
            .iter()
            .filter_map(|it| state.units.reclaimable.node(*it));
        let mut priorities = Vec::new();
        for node in nodes {
            priorities.extend(node.priorities_below(bound));
        }
        // The priorities of a single node are sorted already.
        if let Self::Subset(_) = self {
            priorities.sort_unstable();
            priorities.dedup();
        }
        priorities
    }

    /// The units below a priority with pods on some nodes, the most important first. Meant for few nodes: it sorts.
    pub(super) fn units_below(state: &GangCluster, hosts: &[HostId], bound: i32) -> Vec<UnitId> {
        // No unit has a priority below `i32::MIN`.
        let Some(max_priority) = bound.checked_sub(1) else {
            return Vec::new();
        };
        let nodes = hosts
            .iter()
            .filter_map(|it| state.units.reclaimable.node(*it));
        let mut units: Vec<UnitId> = nodes.flat_map(|it| it.units(max_priority)).collect();
        // A unit is listed once for each of its pods.
        units.sort_unstable();
        units.dedup();
        state.units.sort_by_importance(&mut units);
        units
    }
}

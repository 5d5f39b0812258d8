//! Ids of objects that are gone.

use super::cluster::GangCluster;
use crate::placement::UsedIds;

/// How many names, shapes, nodes, groups and budgets of a cluster have an id.
#[must_use]
pub fn ids_len(cluster: &GangCluster) -> usize {
    let (groups, budgets) = (cluster.groups.ids_len(), cluster.budgets.ids_len());
    let own = groups.saturating_add(budgets);
    own.saturating_add(cluster.cluster.ids_len())
}

/// Releases the ids of groups and budgets that were removed, and those of
/// [`Cluster::release_unused`](crate::placement::Cluster::release_unused). The caller marks the ids that it stores; its groups
/// without pods must exist. Costs all ids and pods.
pub fn release_unused(cluster: &mut GangCluster, mut used: UsedIds) {
    let nominated = cluster.nominated.iter();
    let nominated = nominated.filter_map(|it| cluster.members.get(it.index())?.nominated);
    for host in nominated {
        used.mark_host(host);
    }
    cluster.groups.release_unused();
    cluster.budgets.release_unused(&mut used);
    cluster.cluster.release_unused(used);
}

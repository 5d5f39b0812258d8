//! The pods around a preemptor without the units up to a priority.

use super::cluster::GangCluster;
use super::domain::Domain;
use super::hypothetical::SearchBaseline;
use crate::ids::{PodId, UnitId};
use crate::placement::{InterPodCounts, InterPodTable, Pod};
use std::collections::BTreeSet;

/// The table of a preemptor's pods; `None` if other pods do not restrict them.
pub(super) fn table<'a>(
    state: &'a GangCluster,
    pods: &[PodId],
    baseline: &SearchBaseline,
) -> Option<InterPodTable<'a>> {
    let reserved = baseline.reserved.values().flatten().copied();
    InterPodTable::new(&state.cluster, pods, reserved)
}

/// The counts after the decisions of the baseline, without the units up to a priority (`None` removes no unit) except those in
/// `reprieved`. In the domain of one node, only units with pods on this node are removed. Costs the counted pods.
pub(super) fn counts<'a>(
    state: &GangCluster,
    table: &'a InterPodTable<'a>,
    baseline: &SearchBaseline,
    domain: &Domain,
    max_priority: Option<i32>,
    reprieved: &[UnitId],
) -> InterPodCounts<'a> {
    let mut removed: BTreeSet<UnitId> = BTreeSet::new();
    if let Some(max_priority) = max_priority {
        removed.extend(units_up_to(state, table, domain, max_priority));
    }
    for unit in reprieved {
        removed.remove(unit);
    }
    // Those were selected before: they are not reprieved any more.
    removed.extend(baseline.victims.values().flatten());
    let mut counts = InterPodCounts::new(table);
    for unit in removed {
        remove_unit(state, &mut counts, unit);
    }
    for (host, pods) in &baseline.reserved {
        for pod in pods {
            counts.add(*pod, *host);
        }
    }
    counts
}

/// The units up to a priority with pods that restrict the preemptor.
pub(super) fn units_up_to(
    state: &GangCluster,
    table: &InterPodTable<'_>,
    domain: &Domain,
    max_priority: i32,
) -> BTreeSet<UnitId> {
    if let Domain::Host(host) = domain {
        let node = state.units.reclaimable.node(*host);
        let units = node.into_iter().flat_map(|it| it.units(max_priority));
        return units.collect();
    }
    let units = table
        .counted_pods()
        .filter_map(|it| state.members.get(it.index())?.unit);
    let is_removed = |it: &UnitId| {
        let unit = state.units.get(*it);
        unit.is_some_and(|it| it.priority <= max_priority)
    };
    units.filter(is_removed).collect()
}

/// Removes the pods of a unit.
pub(super) fn remove_unit(state: &GangCluster, counts: &mut InterPodCounts<'_>, unit: UnitId) {
    for_each_pod(state, unit, |pod, host| counts.remove(pod, host));
}

/// Adds the pods of a unit.
pub(super) fn add_unit(state: &GangCluster, counts: &mut InterPodCounts<'_>, unit: UnitId) {
    for_each_pod(state, unit, |pod, host| counts.add(pod, host));
}

fn for_each_pod(
    state: &GangCluster,
    unit: UnitId,
    mut change: impl FnMut(PodId, crate::ids::HostId),
) {
    for pod in state.units.get(unit).map_or(&[][..], |it| &it.pods) {
        if let Some(host) = state.cluster.pod(*pod).and_then(Pod::host) {
            change(*pod, host);
        }
    }
}

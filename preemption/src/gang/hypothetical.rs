//! The free resources without the units up to a priority.

use super::cluster::GangCluster;
use crate::amount::Amount;
use crate::ids::{HostId, PodId, ResourceId, UnitId};
use crate::placement::{FreeResources, Overlay, Pod, ResourceVec};
use std::collections::{BTreeMap, BTreeSet};

/// With more lookups per node, a dense overlay is cheaper: it reads every node once.
const SPARSE_LOOKUPS_MAX: usize = 4;
/// With changes to more nodes, a dense overlay is cheaper: it has a slot for each.
const SPARSE_CHANGES_MAX: usize = 512;

/// The free resources without all units of at most `max_priority`; `None` removes no unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct PriorityCutoff<'a> {
    pub(super) state: &'a GangCluster,
    pub(super) max_priority: Option<i32>,
}

impl PriorityCutoff<'_> {
    /// Whether a port of a node is free without these units. Apart from the amounts of resources, which decisions ask for far
    /// more often.
    #[cold]
    fn free_port(&self, host: HostId, port: ResourceId) -> Amount {
        let free = self.state.cluster.free(host, port);
        let Some(max_priority) = self.max_priority else {
            return free;
        };
        let node = self.state.units.reclaimable.node(host);
        let pods = node.into_iter().flat_map(|it| it.pods(max_priority));
        let requests = pods.map(|pod| self.state.cluster.requests(pod));
        let users = requests.filter(|it| it.iter().any(|(it, _)| *it == port));
        free.plus(Amount::new(
            i64::try_from(users.count()).unwrap_or(i64::MAX),
        ))
    }

    /// An overlay for this many lookups per node, and changes to this many units.
    pub(super) fn overlay(&self, lookups: usize, changes: usize) -> Overlay<'_, Self> {
        let cluster = &self.state.cluster;
        let (hosts, resources) = (cluster.hosts_len(), cluster.resources_len());
        if lookups > SPARSE_LOOKUPS_MAX || changes > SPARSE_CHANGES_MAX.min(hosts) {
            return Overlay::dense(self, hosts, resources);
        }
        Overlay::new(self)
    }
}

impl FreeResources for PriorityCutoff<'_> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        if resource.has_port_bit() {
            return self.free_port(host, resource);
        }
        let free = self.state.cluster.free(host, resource);
        let Some(max_priority) = self.max_priority else {
            return free;
        };
        let reclaimable = &self.state.units.reclaimable;
        free.plus(reclaimable.reclaimable(host, max_priority, resource))
    }

    fn fill_free(&self, host: HostId, out: &mut [Amount]) {
        self.state.cluster.fill_free(host, out);
        let level = self
            .max_priority
            .and_then(|it| self.state.units.reclaimable.reclaimable_row(host, it));
        let freed = level.map_or(&[][..], ResourceVec::amounts);
        for (slot, amount) in out.iter_mut().zip(freed) {
            *slot = slot.plus(*amount);
        }
    }
}

/// Decisions that precede a search.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchBaseline {
    /// The victims chosen for earlier pods, by each node that they have pods on (`CycleState` of KEP-5710, Delayed
    /// preemption). They count as removed and are not selected again.
    pub(super) victims: BTreeMap<HostId, BTreeSet<UnitId>>,
    /// The pods for which room is reserved on each node: those placed earlier, and nominated pods of at least the preemptor's
    /// priority.
    pub(super) reserved: BTreeMap<HostId, Vec<PodId>>,
}

impl SearchBaseline {
    pub(super) fn is_victim(&self, state: &GangCluster, unit: UnitId) -> bool {
        // `add_victim` lists a unit under each of its nodes, so one of them is enough.
        let pod = state.units.get(unit).and_then(|it| it.pods.first());
        let host = pod.and_then(|it| state.cluster.pod(*it)?.host());
        let of_host = host.and_then(|it| self.victims.get(&it));
        of_host.is_some_and(|it| it.contains(&unit))
    }

    pub(super) fn add_victim(&mut self, state: &GangCluster, unit: UnitId) {
        for pod in state.units.get(unit).map_or(&[][..], |it| &it.pods) {
            if let Some(host) = state.cluster.pod(*pod).and_then(Pod::host) {
                self.victims.entry(host).or_default().insert(unit);
            }
        }
    }

    pub(super) fn reserve(&mut self, host: HostId, pod: PodId) {
        self.reserved.entry(host).or_default().push(pod);
    }

    /// Applies these decisions to an overlay over a cutoff, for the given nodes only.
    pub(super) fn apply_to(
        &self,
        overlay: &mut Overlay<'_, PriorityCutoff<'_>>,
        cutoff: &PriorityCutoff<'_>,
        hosts: &[HostId],
    ) {
        let state = cutoff.state;
        for (host, pods) in entries_of_hosts(&self.reserved, hosts) {
            for pod in pods {
                overlay.reserve(*host, state.cluster.requests(*pod));
            }
        }
        for (host, units) in entries_of_hosts(&self.victims, hosts) {
            for unit in units.iter().filter_map(|it| state.units.get(*it)) {
                if cutoff.max_priority.is_some_and(|it| unit.priority <= it) {
                    // The cutoff has removed this unit already.
                    continue;
                }
                for pod in &unit.pods {
                    // The unit is listed under its other nodes too, where their pods are released.
                    if state.cluster.pod(*pod).and_then(Pod::host) == Some(*host) {
                        overlay.release(*host, state.cluster.requests(*pod));
                    }
                }
            }
        }
    }
}

/// The entries of the given nodes. One node costs one lookup; with more, all entries are returned, since an overlay
/// of several nodes covers them all.
fn entries_of_hosts<'a, T>(
    map: &'a BTreeMap<HostId, T>,
    hosts: &'a [HostId],
) -> impl Iterator<Item = (&'a HostId, &'a T)> {
    let one = match hosts {
        [host] => map.get_key_value(host),
        _ => None,
    };
    let all = (hosts.len() > 1).then_some(map);
    one.into_iter().chain(all.into_iter().flatten())
}

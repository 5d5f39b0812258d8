//! The room there would be if all units up to a priority went.

use super::cluster::GangCluster;
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId, ShapeId, UnitId};
use crate::placement::{FreeResources, Overlay, Pod, ResourceVec};
use std::collections::{BTreeMap, BTreeSet};

/// With more questions about every node it pays to look at all of them first.
const SPARSE_LOOKUPS_MAX: usize = 4;
/// With changes to more nodes it pays to have a place for each.
const SPARSE_CHANGES_MAX: usize = 512;

/// What is free when all units of at most a priority are gone; `None` is when nobody is.
#[derive(Clone, Copy, Debug)]
pub(super) struct PriorityCutoff<'a> {
    pub(super) state: &'a GangCluster,
    pub(super) max_priority: Option<i32>,
}

impl PriorityCutoff<'_> {
    /// On top of it, for so many questions about every node and changes to so many.
    pub(super) fn overlay(&self, questions: usize, changes: usize) -> Overlay<'_, Self> {
        let cluster = &self.state.cluster;
        let (hosts, resources) = (cluster.hosts_len(), cluster.resources_len());
        if questions > SPARSE_LOOKUPS_MAX || changes > SPARSE_CHANGES_MAX.min(hosts) {
            return Overlay::dense(self, hosts, resources);
        }
        Overlay::new(self)
    }
}

impl FreeResources for PriorityCutoff<'_> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        let free = self.state.cluster.free(host, resource);
        let Some(most) = self.max_priority else {
            return free;
        };
        free.plus(self.state.index.reclaimable(host, most, resource))
    }

    fn fill_free(&self, host: HostId, out: &mut [Amount]) {
        self.state.cluster.fill_free(host, out);
        let level = self
            .max_priority
            .and_then(|it| self.state.index.reclaimable_row(host, it));
        let freed = level.map_or(&[][..], ResourceVec::amounts);
        for (slot, amount) in out.iter_mut().zip(freed) {
            *slot = slot.plus(*amount);
        }
    }
}

/// What counts as settled before a search begins.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchBaseline {
    /// The units that were chosen for pods before, by each node that they have pods on (`CycleState` of KEP-5710,
    /// Delayed preemption). They count as gone and are no victims again.
    pub(super) victims: BTreeMap<HostId, BTreeSet<UnitId>>,
    /// What is taken besides: by pods that were placed before, and by those of at least the preemptor's priority
    /// that wait for a node they were nominated to.
    pub(super) reserved: BTreeMap<HostId, Vec<ShapeId>>,
}

impl SearchBaseline {
    pub(super) fn is_victim(&self, world: &GangCluster, unit: UnitId) -> bool {
        let pod = world.unit(unit).and_then(|it| it.pods.first());
        let host = pod.and_then(|it| world.cluster.pod(*it)?.host());
        let of_host = host.and_then(|it| self.victims.get(&it));
        of_host.is_some_and(|it| it.contains(&unit))
    }

    pub(super) fn add_victim(&mut self, world: &GangCluster, unit: UnitId) {
        for pod in world.unit(unit).map_or(&[][..], |it| &it.pods) {
            if let Some(host) = world.cluster.pod(*pod).and_then(Pod::host) {
                self.victims.entry(host).or_default().insert(unit);
            }
        }
    }

    pub(super) fn reserve(&mut self, host: HostId, shape: ShapeId) {
        self.reserved.entry(host).or_default().push(shape);
    }

    /// Puts what is settled on top of a cut, where it is about these nodes.
    pub(super) fn apply_to(
        &self,
        overlay: &mut Overlay<'_, PriorityCutoff<'_>>,
        cut: &PriorityCutoff<'_>,
        hosts: &[HostId],
    ) {
        let world = cut.state;
        for (host, shapes) in entries_of_hosts(&self.reserved, hosts) {
            for shape in shapes {
                overlay.reserve(*host, &world.cluster.shape_of(*shape).requests);
            }
        }
        for (host, units) in entries_of_hosts(&self.victims, hosts) {
            for unit in units.iter().filter_map(|it| world.unit(*it)) {
                if cut.max_priority.is_some_and(|most| unit.priority <= most) {
                    continue;
                }
                for pod in &unit.pods {
                    if world.cluster.pod(*pod).and_then(Pod::host) == Some(*host) {
                        overlay.release(*host, world.cluster.requests(*pod));
                    }
                }
            }
        }
    }
}

/// The entries of some nodes; of one node without a look at the others.
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

//! The room there would be if all units up to a priority went.

use super::world::World;
use crate::amount::Amount;
use crate::names::{HostId, ResourceId, ShapeId, UnitId};
use crate::placement::{Overlay, Pod, Room, Row};
use std::collections::{BTreeMap, BTreeSet};

/// With more questions about every node it pays to look at all of them first.
const QUESTIONS_MAX: usize = 4;
/// With changes to more nodes it pays to have a place for each.
const CHANGES_MAX: usize = 512;

/// What is free when all units of at most a priority are gone; `None` is when nobody is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut<'a> {
    pub(super) world: &'a World,
    pub(super) most: Option<i32>,
}

impl Cut<'_> {
    /// On top of it, for so many questions about every node and changes to so many.
    pub(super) fn overlay(&self, questions: usize, changes: usize) -> Overlay<'_, Self> {
        let cluster = &self.world.cluster;
        let (hosts, resources) = (cluster.hosts_len(), cluster.resources_len());
        if questions > QUESTIONS_MAX || changes > CHANGES_MAX.min(hosts) {
            return Overlay::dense(self, hosts, resources);
        }
        Overlay::new(self)
    }
}

impl Room for Cut<'_> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        let free = self.world.cluster.free(host, resource);
        let Some(most) = self.most else {
            return free;
        };
        free.plus(self.world.index.freed(host, most, resource))
    }

    fn fill(&self, host: HostId, out: &mut [Amount]) {
        self.world.cluster.fill(host, out);
        let level = self.most.and_then(|it| self.world.index.level(host, it));
        let freed = level.map_or(&[][..], Row::amounts);
        for (slot, amount) in out.iter_mut().zip(freed) {
            *slot = slot.plus(*amount);
        }
    }
}

/// What counts as settled before a search begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Ground {
    /// The units that were chosen for pods before, by each node that they have pods on (`CycleState` of KEP-5710,
    /// Delayed preemption). They count as gone and are no victims again.
    pub(super) chosen: BTreeMap<HostId, BTreeSet<UnitId>>,
    /// What is taken besides: by pods that were placed before, and by those of at least the preemptor's priority
    /// that wait for a node they were nominated to.
    pub(super) taken: BTreeMap<HostId, Vec<ShapeId>>,
}

impl Ground {
    pub(super) fn is_chosen(&self, world: &World, unit: UnitId) -> bool {
        let pod = world.unit(unit).and_then(|it| it.pods.first());
        let host = pod.and_then(|it| world.cluster.pod(*it)?.host());
        let of_host = host.and_then(|it| self.chosen.get(&it));
        of_host.is_some_and(|it| it.contains(&unit))
    }

    pub(super) fn choose(&mut self, world: &World, unit: UnitId) {
        for pod in world.unit(unit).map_or(&[][..], |it| &it.pods) {
            if let Some(host) = world.cluster.pod(*pod).and_then(Pod::host) {
                self.chosen.entry(host).or_default().insert(unit);
            }
        }
    }

    pub(super) fn take(&mut self, host: HostId, shape: ShapeId) {
        self.taken.entry(host).or_default().push(shape);
    }

    /// Puts what is settled on top of a cut, where it is about these nodes.
    pub(super) fn put_on(
        &self,
        overlay: &mut Overlay<'_, Cut<'_>>,
        cut: &Cut<'_>,
        hosts: &[HostId],
    ) {
        let world = cut.world;
        for (host, shapes) in among(&self.taken, hosts) {
            for shape in shapes {
                overlay.take(*host, &world.cluster.shape_of(*shape).requests);
            }
        }
        for (host, units) in among(&self.chosen, hosts) {
            for unit in units.iter().filter_map(|it| world.unit(*it)) {
                if cut.most.is_some_and(|most| unit.priority <= most) {
                    continue;
                }
                for pod in &unit.pods {
                    if world.cluster.pod(*pod).and_then(Pod::host) == Some(*host) {
                        overlay.give(*host, world.cluster.requests(*pod));
                    }
                }
            }
        }
    }
}

/// The entries of some nodes; of one node without a look at the others.
fn among<'a, T>(
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

//! Letting units stay where they are, as far as the preemptor keeps its place.

use super::room::Cut;
use super::world::World;
use crate::names::{HostId, ResourceId, ShapeId, UnitId};
use crate::placement::{Overlay, Pod, Room};
use std::collections::{BTreeMap, BTreeSet};

/// The room with all who may go gone, the preemptor in its place, and those let off back in theirs.
pub(super) struct Reprieve<'a> {
    world: &'a World,
    overlay: Overlay<'a, Cut<'a>>,
    /// What the preemptor asks for on each of its nodes. Elsewhere nobody is in its way.
    asked: BTreeMap<HostId, BTreeSet<ResourceId>>,
}

impl<'a> Reprieve<'a> {
    /// The overlay has the room without the preemptor; this puts it in its place.
    pub(super) fn new(
        world: &'a World,
        mut overlay: Overlay<'a, Cut<'a>>,
        shapes: &[ShapeId],
        placement: &[Option<HostId>],
    ) -> Self {
        let mut asked: BTreeMap<HostId, BTreeSet<ResourceId>> = BTreeMap::new();
        for (shape, host) in shapes.iter().zip(placement) {
            let Some(host) = host else {
                continue;
            };
            let requests = &world.cluster.shape_of(*shape).requests;
            overlay.take(*host, requests);
            let of_host = asked.entry(*host).or_default();
            of_host.extend(requests.iter().map(|(resource, _)| *resource));
        }
        Self {
            world,
            overlay,
            asked,
        }
    }

    /// The nodes that the preemptor is put on.
    pub(super) fn hosts(&self) -> Vec<HostId> {
        self.asked.keys().copied().collect()
    }

    /// Puts a unit back where it runs, if every pod of the preemptor still fits where it is; or says where it is in
    /// the way. Costs the pods of the unit.
    ///
    /// Source: KEP-5710, Preemption algorithm; kube-scheduler v1.37, `reprieveVictim` of
    /// `selectVictimsOnDomain` and of `SelectVictimsOnNode`.
    pub(super) fn let_off(&mut self, unit: UnitId) -> Result<(), (HostId, ResourceId)> {
        let world = self.world;
        let mark = self.overlay.mark();
        let pods = world.unit(unit).map_or(&[][..], |it| &it.pods);
        for pod in pods {
            let Some(host) = world.cluster.pod(*pod).and_then(Pod::host) else {
                continue;
            };
            let Some(asked) = self.asked.get(&host) else {
                continue;
            };
            let requests = world.cluster.requests(*pod);
            self.overlay.take(host, requests);
            let mut both = requests.iter().filter(|(it, _)| asked.contains(it));
            let overlay = &self.overlay;
            let is_short = |resource| overlay.free(host, resource) < crate::amount::Amount::ZERO;
            if let Some((resource, _)) = both.find(|(resource, _)| is_short(*resource)) {
                self.overlay.roll_back(mark);
                return Err((host, *resource));
            }
        }
        Ok(())
    }
}

//! Letting units stay where they are, as far as the preemptor keeps its place.

use super::cluster::GangCluster;
use super::hypothetical::PriorityCutoff;
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId, ShapeId, UnitId};
use crate::placement::{FreeResources, Overlay, Pod};

/// The room with all who may go gone, the preemptor in its place, and those let off back in theirs.
pub(super) struct Reprieve<'a> {
    state: &'a GangCluster,
    overlay: Overlay<'a, PriorityCutoff<'a>>,
    /// What the preemptor asks for on each of its nodes, sorted. Elsewhere nobody is in its way.
    requested: Vec<(HostId, ResourceId)>,
}

impl<'a> Reprieve<'a> {
    /// The overlay has the room without the preemptor; this puts it in its place.
    pub(super) fn new(
        state: &'a GangCluster,
        mut overlay: Overlay<'a, PriorityCutoff<'a>>,
        shapes: &[ShapeId],
        placement: &[Option<HostId>],
    ) -> Self {
        let mut requested: Vec<(HostId, ResourceId)> = Vec::new();
        for (shape, host) in shapes.iter().zip(placement) {
            let Some(host) = host else {
                continue;
            };
            let requests = &state.cluster.shape_of(*shape).requests;
            overlay.reserve(*host, requests);
            requested.extend(requests.iter().map(|(resource, _)| (*host, *resource)));
        }
        requested.sort_unstable();
        requested.dedup();
        Self {
            state,
            overlay,
            requested,
        }
    }

    /// The nodes that the preemptor is put on.
    pub(super) fn hosts(&self) -> Vec<HostId> {
        let mut hosts: Vec<HostId> = self.requested.iter().map(|(host, _)| *host).collect();
        hosts.dedup();
        hosts
    }

    /// Puts a unit back where it runs, if every pod of the preemptor still fits where it is; or says where it is in
    /// the way. Costs the pods of the unit.
    ///
    /// Source: KEP-5710, Preemption algorithm; kube-scheduler v1.37, `reprieveVictim` of
    /// `selectVictimsOnDomain` and of `SelectVictimsOnNode`.
    pub(super) fn try_reprieve(&mut self, unit: UnitId) -> Result<(), (HostId, ResourceId)> {
        let world = self.state;
        let mark = self.overlay.mark();
        let pods = world.unit(unit).map_or(&[][..], |it| &it.pods);
        for pod in pods {
            let Some(host) = world.cluster.pod(*pod).and_then(Pod::host) else {
                continue;
            };
            let from = self.requested.partition_point(|(it, _)| *it < host);
            let asked = self.requested.get(from..).unwrap_or_default();
            if asked.first().is_none_or(|(it, _)| *it != host) {
                continue;
            }
            let requests = world.cluster.requests(*pod);
            self.overlay.reserve(host, requests);
            let overlay = &self.overlay;
            let mut asked = asked.iter().take_while(|(it, _)| *it == host);
            let is_short = |resource| overlay.free(host, resource) < Amount::ZERO;
            if let Some((_, resource)) = asked.find(|(_, resource)| is_short(*resource)) {
                let resource = *resource;
                self.overlay.roll_back(mark);
                return Err((host, resource));
            }
        }
        Ok(())
    }
}

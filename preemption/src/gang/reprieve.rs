//! Reprieves: potential victims that can stay while the preemptor keeps its placement.

use super::cluster::GangCluster;
use super::hypothetical::PriorityCutoff;
use super::hypothetical_pods;
use super::preemptor::Preemptor;
use super::reason::Conflict;
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId, UnitId};
use crate::placement::{FreeResources, InterPodCounts, Overlay, PlacedPods, Pod};

/// The free resources without the potential victims, with the preemptor placed, and with reprieved units put back.
pub(super) struct Reprieve<'a> {
    state: &'a GangCluster,
    overlay: Overlay<'a, PriorityCutoff<'a>>,
    /// The resources that the preemptor requests on each of its nodes, sorted. On other nodes, and for other
    /// resources, no unit is in its way.
    requested: Vec<(HostId, ResourceId)>,
    /// The pods around the preemptor and its own, if others restrict it.
    around: Option<(InterPodCounts<'a>, PlacedPods)>,
}

impl<'a> Reprieve<'a> {
    /// `overlay` and `counts` do not include the preemptor; this adds it.
    pub(super) fn new(
        state: &'a GangCluster,
        mut overlay: Overlay<'a, PriorityCutoff<'a>>,
        counts: Option<InterPodCounts<'a>>,
        preemptor: Preemptor<'_>,
        placement: &[Option<HostId>],
    ) -> Self {
        let mut requested: Vec<(HostId, ResourceId)> = Vec::new();
        for (shape, host) in preemptor.shapes.iter().zip(placement) {
            let Some(host) = host else {
                continue;
            };
            let requests = &state.cluster.shape_of(*shape).requests;
            overlay.reserve(*host, requests);
            requested.extend(requests.iter().map(|(resource, _)| (*host, *resource)));
        }
        // Sorted by node first: `try_reprieve` searches the range of a node.
        requested.sort_unstable();
        requested.dedup();
        let around = counts.map(|mut counts| {
            let placed = PlacedPods::add(&mut counts, preemptor.pods, placement);
            (counts, placed)
        });
        Self {
            state,
            overlay,
            requested,
            around,
        }
    }

    /// The nodes of the preemptor.
    pub(super) fn hosts(&self) -> Vec<HostId> {
        let mut hosts: Vec<HostId> = self.requested.iter().map(|(host, _)| *host).collect();
        hosts.dedup();
        hosts
    }

    /// Whether a reprieved unit may make room for another one: by affinity or topology spread.
    pub(super) fn may_help_others(&self) -> bool {
        let placed = self.around.as_ref();
        placed.is_some_and(|(_, it)| it.may_need_others())
    }

    /// Puts a unit back if every pod of the preemptor still fits. Otherwise returns a node and why there is no room for both.
    /// Costs the pods of the unit, and those of the preemptor that other pods restrict.
    ///
    /// Source: KEP-5710, Preemption algorithm; kube-scheduler v1.37, `reprieveVictim` of
    /// `selectVictimsOnDomain` and of `SelectVictimsOnNode`.
    pub(super) fn try_reprieve(&mut self, unit: UnitId) -> Result<(), (HostId, Conflict)> {
        let state = self.state;
        // A unit stays as a whole or not at all: its pods on earlier nodes are undone as well.
        let mark = self.overlay.mark();
        let pods = state.units.get(unit).map_or(&[][..], |it| &it.pods);
        for pod in pods {
            let Some(host) = state.cluster.pod(*pod).and_then(Pod::host) else {
                continue;
            };
            let from = self.requested.partition_point(|(it, _)| *it < host);
            let requested = self.requested.get(from..).unwrap_or_default();
            // The preemptor has no pod on this node.
            if requested.first().is_none_or(|(it, _)| *it != host) {
                continue;
            }
            let requests = state.cluster.requests(*pod);
            self.overlay.reserve(host, requests);
            let overlay = &self.overlay;
            let mut requested = requested.iter().take_while(|(it, _)| *it == host);
            // The preemptor's requests are reserved already, so a conflict is a negative amount.
            let is_short = |resource| overlay.free(host, resource) < Amount::ZERO;
            if let Some((_, resource)) = requested.find(|(_, resource)| is_short(*resource)) {
                let resource = *resource;
                self.overlay.roll_back(mark);
                return Err((host, Conflict::Resource(resource)));
            }
        }
        self.add_to_counts(unit)
            .inspect_err(|_| self.overlay.roll_back(mark))
    }

    fn add_to_counts(&mut self, unit: UnitId) -> Result<(), (HostId, Conflict)> {
        let Some((counts, placed)) = &mut self.around else {
            return Ok(());
        };
        let mark = counts.mark();
        hypothetical_pods::add_unit(self.state, counts, unit);
        let conflict = placed.conflict(counts, mark);
        let Some((host, rejection)) = conflict else {
            return Ok(());
        };
        counts.roll_back(mark);
        Err((host, Conflict::Pods(rejection)))
    }
}

//! The resources of each node that preemption up to a priority would reclaim.

use crate::amount::Amount;
use crate::ids::{HostId, PodId, ResourceId, UnitId};
use crate::placement::ResourceVec;

/// The pods of one node, by the priority of their units.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeReclaimable {
    /// Sorted by priority, the lowest first.
    entries: Vec<(i32, UnitId, PodId)>,
    /// For each priority, the sum of the requests up to it.
    levels: Vec<(i32, ResourceVec)>,
}

/// The pods of all nodes. Adding a pod costs the pods of its node; a lookup costs their logarithm.
#[derive(Clone, Debug, Default)]
pub(super) struct ReclaimableIndex(Vec<NodeReclaimable>);

impl ReclaimableIndex {
    pub(super) fn node(&self, host: HostId) -> Option<&NodeReclaimable> {
        self.0.get(host.index())
    }

    pub(super) fn node_mut(&mut self, host: HostId) -> Option<&mut NodeReclaimable> {
        if self.0.len() <= host.index() {
            let len = host.index().saturating_add(1);
            self.0.resize_with(len, NodeReclaimable::default);
        }
        self.0.get_mut(host.index())
    }

    /// How much of a resource the units up to a priority use on a node.
    pub(super) fn reclaimable(
        &self,
        host: HostId,
        max_priority: i32,
        resource: ResourceId,
    ) -> Amount {
        let level = self.reclaimable_row(host, max_priority);
        level.map_or(Amount::ZERO, |row| row.get(resource))
    }

    /// How much of each resource the units up to a priority use on a node.
    pub(super) fn reclaimable_row(&self, host: HostId, max_priority: i32) -> Option<&ResourceVec> {
        self.node(host).and_then(|it| it.level(max_priority))
    }
}

impl NodeReclaimable {
    pub(super) fn insert(&mut self, priority: i32, unit: UnitId, pod: PodId) {
        let entry = (priority, unit, pod);
        if let Err(at) = self.entries.binary_search(&entry) {
            self.entries.insert(at, entry);
        }
    }

    pub(super) fn remove(&mut self, priority: i32, unit: UnitId, pod: PodId) {
        if let Ok(at) = self.entries.binary_search(&(priority, unit, pod)) {
            self.entries.remove(at);
        }
    }

    /// Recomputes the sums of requests.
    pub(super) fn rebuild_levels<'a>(
        &mut self,
        requests: impl Fn(PodId) -> &'a [(ResourceId, Amount)],
    ) {
        self.levels.clear();
        for (priority, _, pod) in &self.entries {
            match self.levels.last_mut() {
                Some((last, row)) if last == priority => row.add(requests(*pod)),
                last => {
                    // Sums are cumulative: each level contains the levels below it.
                    let mut row = last.map(|(_, row)| row.clone()).unwrap_or_default();
                    row.add(requests(*pod));
                    self.levels.push((*priority, row));
                }
            }
        }
    }

    fn level(&self, max_priority: i32) -> Option<&ResourceVec> {
        let above = self
            .levels
            .partition_point(|(priority, _)| *priority <= max_priority);
        self.levels.get(above.checked_sub(1)?).map(|(_, row)| row)
    }

    /// The lowest priority below a bound such that the resources of all units up to it are enough. Costs the logarithm of the
    /// priorities.
    pub(super) fn lowest_cutoff(
        &self,
        bound: i32,
        is_enough: impl Fn(&ResourceVec) -> bool,
    ) -> Option<i32> {
        let below = self
            .levels
            .partition_point(|(priority, _)| *priority < bound);
        let below = self.levels.get(..below).unwrap_or_default();
        // Sums grow with the priority, so a binary search finds the first that is enough.
        let at = below.partition_point(|(_, row)| !is_enough(row));
        below.get(at).map(|(priority, _)| *priority)
    }

    /// The units up to a priority with pods on this node; once for each pod.
    pub(super) fn units(&self, max_priority: i32) -> impl Iterator<Item = UnitId> + '_ {
        let entries = self.entries.iter();
        entries
            .take_while(move |(priority, _, _)| *priority <= max_priority)
            .map(|(_, unit, _)| *unit)
    }

    /// The pods on this node of the units up to a priority.
    pub(super) fn pods(&self, max_priority: i32) -> impl Iterator<Item = PodId> + '_ {
        let entries = self.entries.iter();
        entries
            .take_while(move |(priority, _, _)| *priority <= max_priority)
            .map(|(_, _, pod)| *pod)
    }

    /// The priorities below a bound on this node, the lowest first.
    pub(super) fn priorities_below(&self, bound: i32) -> impl ExactSizeIterator<Item = i32> + '_ {
        let below = self
            .levels
            .partition_point(|(priority, _)| *priority < bound);
        let below = self.levels.get(..below).unwrap_or_default();
        below.iter().map(|(priority, _)| *priority)
    }
}

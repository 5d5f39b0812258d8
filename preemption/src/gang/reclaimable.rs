//! What each node would have free if all up to a priority went.

use crate::amount::Amount;
use crate::ids::{HostId, PodId, ResourceId, UnitId};
use crate::placement::ResourceVec;

/// The pods of one node by the priority of their units.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeReclaimable {
    /// By priority, the lowest first.
    entries: Vec<(i32, UnitId, PodId)>,
    /// For each priority, what all up to it have together.
    levels: Vec<(i32, ResourceVec)>,
}

/// The pods of all nodes. A pod costs the pods of its node to put in, and a question the logarithm of these.
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

    /// What would be free in addition on a node if all units up to a priority went.
    pub(super) fn reclaimable(&self, host: HostId, most: i32, resource: ResourceId) -> Amount {
        let level = self.reclaimable_row(host, most);
        level.map_or(Amount::ZERO, |row| row.get(resource))
    }

    /// The same of all resources.
    pub(super) fn reclaimable_row(&self, host: HostId, most: i32) -> Option<&ResourceVec> {
        self.node(host).and_then(|it| it.level(most))
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

    /// Adds up again what the pods have.
    pub(super) fn rebuild_levels<'a>(
        &mut self,
        requests: impl Fn(PodId) -> &'a [(ResourceId, Amount)],
    ) {
        self.levels.clear();
        for (priority, _, pod) in &self.entries {
            match self.levels.last_mut() {
                Some((last, row)) if last == priority => row.add(requests(*pod)),
                last => {
                    let mut row = last.map(|(_, row)| row.clone()).unwrap_or_default();
                    row.add(requests(*pod));
                    self.levels.push((*priority, row));
                }
            }
        }
    }

    fn level(&self, most: i32) -> Option<&ResourceVec> {
        let above = self
            .levels
            .partition_point(|(priority, _)| *priority <= most);
        self.levels.get(above.checked_sub(1)?).map(|(_, row)| row)
    }

    /// The units that have pods here, up to a priority; one with several pods stands there as often.
    pub(super) fn units(&self, most: i32) -> impl Iterator<Item = UnitId> + '_ {
        let upto = self.entries.iter();
        upto.take_while(move |(priority, _, _)| *priority <= most)
            .map(|(_, unit, _)| *unit)
    }

    /// The priorities below a bound that there are here, the lowest first.
    pub(super) fn priorities_below(&self, bound: i32) -> impl ExactSizeIterator<Item = i32> + '_ {
        let below = self
            .levels
            .partition_point(|(priority, _)| *priority < bound);
        let below = self.levels.get(..below).unwrap_or_default();
        below.iter().map(|(priority, _)| *priority)
    }
}

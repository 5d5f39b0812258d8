//! The units of a cluster with their indexes.

use super::importance::Importance;
use super::reclaimable::ReclaimableIndex;
use super::unit::{Unit, UnitKey};
use crate::ids::{HostId, UnitId};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// All units of the running pods, indexed by id, key, priority and node.
#[derive(Clone, Debug, Default)]
pub struct UnitTable {
    units: Vec<Option<Unit>>,
    /// Ids of removed units, to be reused.
    free_ids: Vec<UnitId>,
    ids: BTreeMap<UnitKey, UnitId>,
    /// The pods of each node, by the priority of their units.
    pub(super) reclaimable: ReclaimableIndex,
    /// How many units there are of each priority.
    priorities: BTreeMap<i32, usize>,
    /// The units with a pod that a disruption budget protects, the most important first.
    protected: BTreeSet<Importance>,
}

impl UnitTable {
    /// The unit with this id; `None` after its last pod is removed.
    #[must_use]
    pub fn get(&self, id: UnitId) -> Option<&Unit> {
        self.units.get(id.index()).and_then(Option::as_ref)
    }

    /// All units, by id.
    pub fn iter(&self) -> impl Iterator<Item = (UnitId, &Unit)> {
        let slots = self.units.iter().enumerate();
        slots.filter_map(|(at, unit)| Some((UnitId::of(at), unit.as_ref()?)))
    }

    /// The units with pods on a node, by id.
    #[must_use]
    pub fn on_host(&self, host: HostId) -> BTreeSet<UnitId> {
        let node = self.reclaimable.node(host).into_iter();
        node.flat_map(|it| it.units(i32::MAX)).collect()
    }

    pub(super) fn find(&self, key: UnitKey) -> Option<UnitId> {
        self.ids.get(&key).copied()
    }

    /// Adds a unit without pods. [`Self::update`] must add a pod next.
    pub(super) fn insert(&mut self, unit: Unit) -> UnitId {
        let id = match self.free_ids.pop() {
            Some(id) => id,
            None => UnitId::of(self.units.len()),
        };
        if self.units.len() <= id.index() {
            self.units.push(None);
        }
        self.ids.insert(unit.key, id);
        let count = self.priorities.entry(unit.priority).or_default();
        *count = count.saturating_add(1);
        if let Some(slot) = self.units.get_mut(id.index()) {
            *slot = Some(unit);
        }
        id
    }

    /// Changes the pods of a unit, and removes the unit if none is left.
    pub(super) fn update(&mut self, id: UnitId, change: impl FnOnce(&mut Unit)) {
        // The change may alter the unit's importance, which is its key in the set.
        self.set_protected(id, false);
        let Some(unit) = self.units.get_mut(id.index()).and_then(Option::as_mut) else {
            return;
        };
        change(unit);
        if unit.pods.is_empty() {
            self.remove(id);
        } else {
            self.set_protected(id, true);
        }
    }

    fn remove(&mut self, id: UnitId) {
        let slot = self.units.get_mut(id.index());
        let Some(unit) = slot.and_then(Option::take) else {
            return;
        };
        self.ids.remove(&unit.key);
        self.free_ids.push(id);
        if let Some(count) = self.priorities.get_mut(&unit.priority) {
            *count = count.saturating_sub(1);
            // `priorities_below` returns the keys, so no key may remain without units.
            if *count == 0 {
                self.priorities.remove(&unit.priority);
            }
        }
    }

    fn set_protected(&mut self, id: UnitId, is_listed: bool) {
        let unit = self.get(id).filter(|it| it.protected_pods > 0);
        let Some(importance) = unit.map(|it| it.importance(id)) else {
            return;
        };
        if is_listed {
            self.protected.insert(importance);
        } else {
            self.protected.remove(&importance);
        }
    }

    /// Whether a disruption budget protects any unit.
    pub(super) fn has_protected(&self) -> bool {
        !self.protected.is_empty()
    }

    /// The protected units below a priority, the most important first.
    pub(super) fn protected_below(&self, bound: i32) -> impl Iterator<Item = &Importance> {
        let all = self.protected.iter();
        // `Reverse`: the set begins with the highest priorities.
        all.skip_while(move |it| it.priority.0 >= bound)
    }

    /// The priorities of units below a bound, the lowest first.
    pub(super) fn priorities_below(&self, bound: i32) -> Vec<i32> {
        self.priorities.range(..bound).map(|it| *it.0).collect()
    }

    /// Sorts units by importance, the most important first.
    pub(super) fn sort_by_importance(&self, ids: &mut [UnitId]) {
        ids.sort_unstable_by(|a, b| {
            let both = self.get(*a).zip(self.get(*b));
            both.map_or(Ordering::Equal, |(one, other)| one.compare(*a, other, *b))
        });
    }
}

//! The total quota and usage of all objects, checked so that no sum of the core can overflow.

use lockkeeper_preemption::{Amount, ResourceId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The amounts of one object by resource, summed up.
pub(crate) type ObjectTotals = BTreeMap<ResourceId, i128>;

/// Totals by resource, and the amounts of each object in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverflowGuard {
    totals: ObjectTotals,
    by_object: BTreeMap<Arc<str>, ObjectTotals>,
}

impl OverflowGuard {
    /// Sets the amounts of an object. Returns false and changes nothing if a total would be too large.
    pub(crate) fn set(&mut self, key: &str, part: ObjectTotals) -> bool {
        let before = self.by_object.get(key);
        let sum = |resource: &ResourceId, amount: i128| {
            let others = self.totals.get(resource).copied().unwrap_or_default();
            // An update replaces the former amounts of the object.
            let own = before.and_then(|it| it.get(resource));
            let others = others.saturating_sub(own.copied().unwrap_or_default());
            others.saturating_add(amount)
        };
        // `i64::MAX` itself means unlimited, so a total must stay below it.
        let is_small = |(resource, amount): (&ResourceId, &i128)| {
            sum(resource, *amount) < i128::from(i64::MAX)
        };
        if !part.iter().all(is_small) {
            return false;
        }
        self.remove(key);
        for (resource, amount) in &part {
            let sum = self.totals.entry(*resource).or_default();
            *sum = sum.saturating_add(*amount);
        }
        if !part.is_empty() {
            self.by_object.insert(key.into(), part);
        }
        true
    }

    pub(crate) fn remove(&mut self, key: &str) {
        for (resource, amount) in self.by_object.remove(key).into_iter().flatten() {
            if let Some(sum) = self.totals.get_mut(&resource) {
                *sum = sum.saturating_sub(amount);
                if *sum == 0 {
                    self.totals.remove(&resource);
                }
            }
        }
    }
}

/// The amounts of an object by resource, without unlimited ones.
pub(crate) fn object_totals(amounts: impl Iterator<Item = (ResourceId, Amount)>) -> ObjectTotals {
    let mut part = ObjectTotals::new();
    for (resource, amount) in amounts.filter(|(_, amount)| !amount.is_unlimited()) {
        let sum = part.entry(resource).or_default();
        *sum = sum.saturating_add(i128::from(amount.get()));
    }
    part
}

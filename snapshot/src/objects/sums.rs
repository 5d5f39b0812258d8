//! What all objects together have or hold, so that no sum of the core's can be too large.

use lockkeeper_preemption::{Amount, ResourceId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The amounts of one object by resource, summed up.
pub(super) type Part = BTreeMap<ResourceId, i128>;

/// A sum by resource, and whose parts it is of.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    of: Part,
    parts: BTreeMap<Arc<str>, Part>,
}

impl Sums {
    /// An object has these amounts now. False, and nothing is changed, if a sum would be too large.
    pub(super) fn set(&mut self, key: &str, part: Part) -> bool {
        let before = self.parts.get(key);
        let sum = |resource: &ResourceId, amount: i128| {
            let others = self.of.get(resource).copied().unwrap_or_default();
            let own = before.and_then(|it| it.get(resource));
            let others = others.saturating_sub(own.copied().unwrap_or_default());
            others.saturating_add(amount)
        };
        let is_small = |(resource, amount): (&ResourceId, &i128)| {
            sum(resource, *amount) < i128::from(i64::MAX)
        };
        if !part.iter().all(is_small) {
            return false;
        }
        self.remove(key);
        for (resource, amount) in &part {
            let sum = self.of.entry(*resource).or_default();
            *sum = sum.saturating_add(*amount);
        }
        if !part.is_empty() {
            self.parts.insert(key.into(), part);
        }
        true
    }

    pub(super) fn remove(&mut self, key: &str) {
        for (resource, amount) in self.parts.remove(key).into_iter().flatten() {
            if let Some(sum) = self.of.get_mut(&resource) {
                *sum = sum.saturating_sub(amount);
                if *sum == 0 {
                    self.of.remove(&resource);
                }
            }
        }
    }
}

/// What is unlimited is no number to sum up.
pub(super) fn part(amounts: impl Iterator<Item = (ResourceId, Amount)>) -> Part {
    let mut part = Part::new();
    for (resource, amount) in amounts.filter(|(_, amount)| !amount.is_unlimited()) {
        let sum = part.entry(resource).or_default();
        *sum = sum.saturating_add(i128::from(amount.get()));
    }
    part
}

//! Amounts of all resources.

use crate::amount::Amount;
use crate::ids::ResourceId;

/// An amount of each resource; what was never set is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceVec(Vec<Amount>);

impl ResourceVec {
    /// Of nothing anything.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Of these resources as much; what stands twice is added up.
    #[must_use]
    pub fn from_amounts(amounts: &[(ResourceId, Amount)]) -> Self {
        let mut row = Self::new();
        row.add(amounts);
        row
    }

    /// How much of a resource.
    #[must_use]
    pub fn get(&self, resource: ResourceId) -> Amount {
        self.0.get(resource.index()).copied().unwrap_or_default()
    }

    /// Every resource up to the last that was set, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, Amount)> + '_ {
        let each = self.0.iter().enumerate();
        each.map(|(at, amount)| (ResourceId::of(at), *amount))
    }

    /// Sets how much of a resource.
    pub fn set(&mut self, resource: ResourceId, amount: Amount) {
        if let Some(slot) = self.slot(resource) {
            *slot = amount;
        }
    }

    /// Adds amounts.
    pub fn add(&mut self, amounts: &[(ResourceId, Amount)]) {
        for (resource, amount) in amounts {
            if let Some(slot) = self.slot(*resource) {
                *slot = slot.plus(*amount);
            }
        }
    }

    /// Takes amounts away; what is left may be negative.
    pub fn subtract(&mut self, amounts: &[(ResourceId, Amount)]) {
        for (resource, amount) in amounts {
            if let Some(slot) = self.slot(*resource) {
                *slot = slot.minus(*amount);
            }
        }
    }

    /// What an amount of each resource up to one is.
    pub(super) fn from_fn(amount: impl Fn(ResourceId) -> Amount, upto: ResourceId) -> Self {
        let mut row = Self::new();
        row.extend_with(upto, amount);
        row
    }

    /// Adds the amounts of resources up to one that were never set.
    pub(super) fn extend_with(&mut self, upto: ResourceId, amount: impl Fn(ResourceId) -> Amount) {
        let len = upto.index().saturating_add(1);
        while self.0.len() < len {
            self.0.push(amount(ResourceId::of(self.0.len())));
        }
    }

    /// How much of a resource, if it or a later one was ever set.
    pub(super) fn get_stored(&self, resource: ResourceId) -> Option<Amount> {
        self.0.get(resource.index()).copied()
    }

    /// The amounts, by the number of the resource.
    pub(crate) fn amounts(&self) -> &[Amount] {
        &self.0
    }

    fn slot(&mut self, resource: ResourceId) -> Option<&mut Amount> {
        let at = resource.index();
        if self.0.len() <= at {
            self.0.resize(at.saturating_add(1), Amount::ZERO);
        }
        self.0.get_mut(at)
    }
}

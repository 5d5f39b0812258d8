//! Vectors of resource amounts, indexed by resource id.

use crate::amount::Amount;
use crate::ids::ResourceId;

/// An amount of each resource. Amounts that were never set are zero. Host ports are not stored: their ids are no indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceVec(Vec<Amount>);

impl ResourceVec {
    /// An empty vector.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// A vector of these amounts; amounts of the same resource are added.
    #[must_use]
    pub fn from_amounts(amounts: &[(ResourceId, Amount)]) -> Self {
        let mut row = Self::new();
        row.add(amounts);
        row
    }

    /// The amount of a resource.
    #[must_use]
    pub fn get(&self, resource: ResourceId) -> Amount {
        self.0.get(resource.index()).copied().unwrap_or_default()
    }

    /// Every resource up to the last that was set, by id.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, Amount)> + '_ {
        let each = self.0.iter().enumerate();
        each.map(|(at, amount)| (ResourceId::of(at), *amount))
    }

    /// Sets the amount of a resource.
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

    /// Subtracts amounts; the result may be negative.
    pub fn subtract(&mut self, amounts: &[(ResourceId, Amount)]) {
        for (resource, amount) in amounts {
            if let Some(slot) = self.slot(*resource) {
                *slot = slot.minus(*amount);
            }
        }
    }

    /// A vector of the resources up to `upto`, with amounts from a function.
    pub(super) fn from_fn(amount: impl Fn(ResourceId) -> Amount, upto: ResourceId) -> Self {
        let mut row = Self::new();
        row.extend_with(upto, amount);
        row
    }

    /// Appends the missing resources up to `upto`, with amounts from a function.
    pub(super) fn extend_with(&mut self, upto: ResourceId, amount: impl Fn(ResourceId) -> Amount) {
        let len = upto.index().saturating_add(1);
        while self.0.len() < len {
            self.0.push(amount(ResourceId::of(self.0.len())));
        }
    }

    /// The amount of a resource, if it or a later one was ever set.
    pub(super) fn get_stored(&self, resource: ResourceId) -> Option<Amount> {
        self.0.get(resource.index()).copied()
    }

    /// The amounts, indexed by resource id.
    pub(crate) fn amounts(&self) -> &[Amount] {
        &self.0
    }

    fn slot(&mut self, resource: ResourceId) -> Option<&mut Amount> {
        if resource.has_port_bit() {
            return None;
        }
        let at = resource.index();
        if self.0.len() <= at {
            self.0.resize(at.saturating_add(1), Amount::ZERO);
        }
        self.0.get_mut(at)
    }
}

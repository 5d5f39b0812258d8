//! The usage of non-preemptible workloads of an elastic queue.

use crate::amount::Amount;
use crate::ids::{FlavorResource, ResourceId};
use std::collections::BTreeMap;

/// What non-preemptible workloads of an elastic queue use and ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NonPreemptibleUsage {
    pub(crate) used: BTreeMap<FlavorResource, Amount>,
    /// Of those that wait.
    pub(crate) pending: BTreeMap<ResourceId, Amount>,
}

impl NonPreemptibleUsage {
    /// Nobody is non-preemptible.
    pub(crate) const EMPTY: Self = Self {
        used: BTreeMap::new(),
        pending: BTreeMap::new(),
    };

    pub(crate) fn used(&self, of: FlavorResource) -> Amount {
        self.used.get(&of).copied().unwrap_or_default()
    }
}

/// Changes one sum; a missing one is zero.
pub(crate) fn update_sum<K: Ord>(
    sums: &mut BTreeMap<K, Amount>,
    key: K,
    change: impl FnOnce(Amount) -> Amount,
) {
    let sum = sums.entry(key).or_default();
    *sum = change(*sum);
}

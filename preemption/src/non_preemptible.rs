//! The usage of non-preemptible workloads of an elastic queue.

use crate::amount::Amount;
use crate::ids::{FlavorResource, ResourceId};
use std::collections::BTreeMap;

/// The usage and the pending requests of the non-preemptible workloads of an elastic queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NonPreemptibleUsage {
    pub(crate) used: BTreeMap<FlavorResource, Amount>,
    /// The requests of pending workloads.
    pub(crate) pending: BTreeMap<ResourceId, Amount>,
}

impl NonPreemptibleUsage {
    /// No usage and no requests.
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

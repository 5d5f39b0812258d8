//! Values that many jobs have in common, stored once: a trace may have millions of jobs.

use lockkeeper_scenario::PodSet;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Stores equal pod sets once. A lookup costs the logarithm of the number of different ones.
#[derive(Clone, Debug, Default)]
pub struct PodSetTable {
    pod_sets: BTreeSet<Arc<[PodSet]>>,
}

impl PodSetTable {
    /// Returns the stored pod sets that equal these.
    pub fn share(&mut self, pod_sets: Vec<PodSet>) -> Arc<[PodSet]> {
        if let Some(known) = self.pod_sets.get(pod_sets.as_slice()) {
            return Arc::clone(known);
        }
        let shared: Arc<[PodSet]> = pod_sets.into();
        self.pod_sets.insert(Arc::clone(&shared));
        shared
    }
}

/// Returns the known value that equals this one.
pub(super) fn shared<T: ?Sized + Ord>(known: &mut BTreeSet<Arc<T>>, value: Arc<T>) -> Arc<T> {
    if let Some(known) = known.get(&value) {
        return Arc::clone(known);
    }
    known.insert(Arc::clone(&value));
    value
}

//! The cached summaries of quota trees.

use super::by_flavor::ByFlavor;
use crate::preemption_loops::QueuePreemption;
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The precomputed results for the queues of one tree.
#[derive(Debug, Default)]
pub(crate) struct TreeSummary {
    /// The distinct preemption policies of its queues.
    pub(super) preemption_policies: Vec<QueuePreemption>,
    pub(super) is_nested: bool,
    /// The index of each queue by name.
    pub(super) queue_indexes: BTreeMap<String, usize>,
    /// Queues that could borrow, at most two: enough to find one other than a given queue.
    pub(super) borrowers: ByFlavor<Vec<usize>>,
    /// The most that each queue could borrow, by index.
    pub(super) borrowable: ByFlavor<Vec<Option<Quantity>>>,
}

/// A cache of the summaries of a project, by root. Not part of the value: clones start empty and all are equal.
#[derive(Debug, Default)]
pub(super) struct Summaries(Mutex<BTreeMap<String, Arc<TreeSummary>>>);

impl Summaries {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Drops all summaries after a change.
    pub(super) fn clear(&mut self) {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.clear();
    }

    pub(super) fn get(
        &self,
        root: &str,
        make: impl FnOnce() -> Option<TreeSummary>,
    ) -> Option<Arc<TreeSummary>> {
        // A panic leaves at most a missing entry in the map, so a poisoned lock is usable.
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all().get(root) {
            return Some(Arc::clone(known));
        }
        // Two threads may compute the same summary at once; the results are equal, so the lock is not held.
        let summary = Arc::new(make()?);
        all().insert(root.to_owned(), Arc::clone(&summary));
        Some(summary)
    }
}

impl Clone for Summaries {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl PartialEq for Summaries {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Summaries {}

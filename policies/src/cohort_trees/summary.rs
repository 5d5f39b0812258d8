//! The cached summaries of quota trees.

use super::by_flavor::ByFlavor;
use crate::preemption_loops::QueuePreemption;
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a tree says of its queues.
#[derive(Debug, Default)]
pub(crate) struct TreeSummary {
    /// What its policies let workloads do, each once.
    pub(super) preemption_policies: Vec<QueuePreemption>,
    pub(super) is_nested: bool,
    /// The numbers of the queues.
    pub(super) queue_indexes: BTreeMap<String, usize>,
    /// Which queues could borrow: two of them at most, as one of two is another than any other.
    pub(super) borrowers: ByFlavor<Vec<usize>>,
    /// The most that each queue could borrow.
    pub(super) borrowable: ByFlavor<Vec<Option<Quantity>>>,
}

/// The summaries of the trees of a family, by the names of their roots. They follow from the rest.
#[derive(Debug, Default)]
pub(super) struct Summaries(Mutex<BTreeMap<String, Arc<TreeSummary>>>);

impl Summaries {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Something has changed.
    pub(super) fn clear(&mut self) {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.clear();
    }

    pub(super) fn get(
        &self,
        root: &str,
        make: impl FnOnce() -> Option<TreeSummary>,
    ) -> Option<Arc<TreeSummary>> {
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all().get(root) {
            return Some(Arc::clone(known));
        }
        // Two who ask at once may both make it, and make the same.
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

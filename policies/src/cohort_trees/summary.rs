//! The cached summaries of quota trees.

use super::by_flavor::{ByFlavor, HashedKey};
use super::lending::{self, lent_quota};
use super::node::Limits;
use crate::preemption_loops::QueuePreemption;
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What rules need of the other nodes of a tree, for any queue of it.
#[derive(Debug, Default)]
pub(crate) struct TreeSummary {
    /// The distinct preemption policies of its queues.
    pub(super) preemption_policies: Vec<QueuePreemption>,
    pub(super) is_nested: bool,
    pub(super) queue_positions: BTreeMap<String, usize>,
    pub(super) cohort_positions: BTreeMap<String, usize>,
    /// The parents of the cohorts, by position.
    pub(super) cohort_parents: Vec<Option<usize>>,
    pub(super) resources: ByFlavor<ResourceSummary>,
}

/// A resource of a flavor in a tree.
#[derive(Debug, Default)]
pub(super) struct ResourceSummary {
    /// Queues that could borrow it, at most two: enough to find one other than a given queue.
    pub(super) borrowers: Vec<usize>,
    /// The limits and the subtree quota of each cohort, by position. `None` on overflow.
    pub(super) cohorts: Option<Vec<(Option<Limits>, Quantity)>>,
}

impl TreeSummary {
    pub(super) fn queue_position(&self, name: &str) -> Option<usize> {
        self.queue_positions.get(name).copied()
    }

    /// The positions of a cohort and the cohorts above it, up to the root.
    pub(super) fn path_from(&self, cohort: &str) -> Option<Vec<usize>> {
        let mut at = *self.cohort_positions.get(cohort)?;
        let mut path = vec![at];
        while let Some(parent) = *self.cohort_parents.get(at)? {
            path.push(parent);
            at = parent;
        }
        Some(path)
    }

    /// Whether a queue other than the one at this position could borrow this quota.
    pub(super) fn has_borrower(&self, key: HashedKey<'_>, except: Option<usize>) -> bool {
        let resource = self.resources.get_hashed(key);
        let mut borrowers = resource.into_iter().flat_map(|it| &it.borrowers);
        borrowers.any(|it| Some(*it) != except)
    }

    /// The most that a queue could borrow if no other node used quota, given the quota that its stored version lends and
    /// its present limits. `None` on overflow. Costs the length of the path.
    pub(super) fn max_borrowable(
        &self,
        key: HashedKey<'_>,
        path: &[usize],
        stored: Option<&Limits>,
        limits: &Limits,
    ) -> Option<Quantity> {
        let lent = lent_quota(Some(limits), limits.nominal)?;
        let stored_nominal = stored.map_or(Quantity::ZERO, |it| it.nominal);
        let (mut before, mut after) = (lent_quota(stored, stored_nominal)?, lent);
        let cohorts = match self.resources.get_hashed(key) {
            Some(resource) => resource.cohorts.as_deref()?,
            None => &[],
        };
        let mut replaced = Vec::with_capacity(path.len());
        for at in path {
            let cohort = cohorts.get(*at);
            let limits = cohort.and_then(|(limits, _)| limits.as_ref());
            let subtree = cohort.map_or(Quantity::ZERO, |(_, subtree)| *subtree);
            let changed = subtree.checked_sub(before)?.checked_add(after)?;
            before = lent_quota(limits, subtree)?;
            after = lent_quota(limits, changed)?;
            replaced.push((limits, changed));
        }
        let path = replaced.into_iter().rev();
        lending::potential_available(path)?.checked_sub(lent)
    }
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

    pub(super) fn get(&self, root: &str, make: impl FnOnce() -> TreeSummary) -> Arc<TreeSummary> {
        // A panic leaves at most a missing entry in the map, so a poisoned lock is usable.
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all().get(root) {
            return Arc::clone(known);
        }
        // Two threads may compute the same summary at once; the results are equal, so the lock is not held.
        let summary = Arc::new(make());
        all().insert(root.to_owned(), Arc::clone(&summary));
        summary
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

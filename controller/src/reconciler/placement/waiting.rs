//! Workloads with quota that do not fit on nodes: they wait until nodes change.

use crate::key::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};

/// The most workloads that are tried again at once: each costs a plan.
const RETRIES_MAX: usize = 64;

/// The pause between two batches of retries, in milliseconds.
const RETRY_PAUSE_MS: i64 = 100;

/// The workloads that wait for nodes.
#[derive(Debug, Default)]
pub(in crate::reconciler) struct WaitingWorkloads {
    /// With the time before which they are not tried again, in milliseconds since 1970.
    not_before_ms: BTreeMap<ObjectKey, i64>,
    /// Those that are tried again because nodes have changed since they were tried.
    due: BTreeSet<ObjectKey>,
    /// The revision of the nodes at which `due` was filled; `None` if all are tried again.
    revision: Option<u64>,
    next_batch_ms: i64,
}

impl WaitingWorkloads {
    /// Adds a workload that did not fit.
    pub(in crate::reconciler) fn insert(&mut self, key: ObjectKey, not_before_ms: i64) {
        self.due.remove(&key);
        self.not_before_ms.insert(key, not_before_ms);
    }

    pub(in crate::reconciler) fn remove(&mut self, key: &ObjectKey) {
        self.not_before_ms.remove(key);
        self.due.remove(key);
    }

    pub(in crate::reconciler) fn contains(&self, key: &ObjectKey) -> bool {
        self.not_before_ms.contains_key(key)
    }

    /// All are tried again.
    pub(in crate::reconciler) const fn retry_all(&mut self) {
        self.revision = None;
    }

    /// When the next workload is due, in milliseconds since 1970.
    pub(in crate::reconciler) fn wake_at_ms(&self, now_ms: i64) -> Option<i64> {
        let paused = self.not_before_ms.values().copied();
        let paused = paused.filter(|it| *it > now_ms).min();
        let batch = (!self.due.is_empty()).then_some(self.next_batch_ms.max(now_ms));
        paused.into_iter().chain(batch).min()
    }

    /// The next workloads to try again. All that wait are tried, in batches, before one of them is tried a second time.
    pub(super) fn next_batch(&mut self, revision: u64, now_ms: i64) -> Vec<ObjectKey> {
        if now_ms < self.next_batch_ms
            && self.next_batch_ms <= now_ms.saturating_add(RETRY_PAUSE_MS)
        {
            return Vec::new();
        }
        if self.due.is_empty() && self.revision != Some(revision) {
            self.revision = Some(revision);
            self.due = self.not_before_ms.keys().cloned().collect();
        }
        // A pause that is over counts as a change of the nodes.
        let over = self.not_before_ms.iter_mut();
        for (key, at_ms) in over.filter(|(_, at_ms)| **at_ms > 0 && **at_ms <= now_ms) {
            *at_ms = 0;
            self.due.insert(key.clone());
        }
        let not_before_ms = &self.not_before_ms;
        let is_paused = |key: &&ObjectKey| not_before_ms.get(*key).is_some_and(|it| *it > now_ms);
        let batch = self.due.iter().filter(|it| !is_paused(it));
        let batch: Vec<ObjectKey> = batch.take(RETRIES_MAX).cloned().collect();
        self.due
            .retain(|key| !is_paused(&key) && !batch.contains(key));
        if !batch.is_empty() {
            self.next_batch_ms = now_ms.saturating_add(RETRY_PAUSE_MS);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::{RETRIES_MAX, RETRY_PAUSE_MS, WaitingWorkloads};
    use crate::key::ObjectKey;

    fn key(number: usize) -> ObjectKey {
        ObjectKey::new("team", &format!("w{number:03}"))
    }

    #[test]
    fn all_are_tried_in_batches_before_one_is_tried_again() {
        let mut waiting = WaitingWorkloads::default();
        let total = RETRIES_MAX + 10;
        for number in 0..total {
            waiting.insert(key(number), 0);
        }
        let first = waiting.next_batch(1, 0);
        assert_eq!(first.len(), RETRIES_MAX);
        // They do not fit again, and nodes change meanwhile.
        for key in first {
            waiting.insert(key, 0);
        }
        assert_eq!(waiting.next_batch(2, 0), []);
        assert_eq!(waiting.wake_at_ms(0), Some(RETRY_PAUSE_MS));
        let rest = waiting.next_batch(2, RETRY_PAUSE_MS);
        assert_eq!(rest, (RETRIES_MAX..total).map(key).collect::<Vec<_>>());
        let again = waiting.next_batch(2, 2 * RETRY_PAUSE_MS);
        assert_eq!(again.first(), Some(&key(0)));
    }

    #[test]
    fn unchanged_nodes_cause_no_retry() {
        let mut waiting = WaitingWorkloads::default();
        waiting.insert(key(0), 0);
        assert_eq!(waiting.next_batch(1, 0), [key(0)]);
        waiting.insert(key(0), 0);
        assert_eq!(waiting.next_batch(1, 1_000), []);
        waiting.retry_all();
        assert_eq!(waiting.next_batch(1, 1_000), [key(0)]);
    }

    #[test]
    fn paused_workload_is_tried_after_its_pause() {
        let mut waiting = WaitingWorkloads::default();
        waiting.insert(key(0), 60_000);
        assert_eq!(waiting.next_batch(1, 0), []);
        assert_eq!(waiting.wake_at_ms(0), Some(60_000));
        assert_eq!(waiting.next_batch(1, 60_000), [key(0)]);
    }
}

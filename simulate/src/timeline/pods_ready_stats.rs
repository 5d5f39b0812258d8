//! Sums over what happened because pods were not ready.

use lockkeeper_preemption::requeue::EvictionReason;
use serde::Serialize;
use std::collections::BTreeMap;

/// What happened because pods were not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodsReadyStats {
    /// The evictions.
    pub evictions: usize,
    /// The evictions by reason.
    pub evictions_by_reason: BTreeMap<&'static str, usize>,
    /// The requeueings after a backoff.
    pub requeues: usize,
    /// The jobs that were deactivated.
    pub deactivated: usize,
    /// The seconds in which jobs had quota and their pods were not ready.
    pub not_ready_seconds: i64,
    /// The seconds of evicted runs, which have to be repeated.
    pub lost_seconds: i64,
}

impl PodsReadyStats {
    /// Counts an eviction.
    pub(super) fn add_eviction(&mut self, reason: EvictionReason) {
        self.evictions = self.evictions.saturating_add(1);
        let by_reason = &mut self.evictions_by_reason;
        let count = by_reason.entry(reason.as_str()).or_default();
        *count = count.saturating_add(1);
        if matches!(reason, EvictionReason::Deactivated(_)) {
            self.deactivated = self.deactivated.saturating_add(1);
        }
    }
}

//! The last changes of Workloads.

use crate::workload_facts::{admission, preempted, transition_s, true_condition};
use lockkeeper_api::Workload;
use std::sync::Arc;

/// A change of a Workload.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When the watch delivered it, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Its position among all changes.
    pub(crate) seq: u64,
    /// `namespace/name`.
    pub(crate) key: Arc<str>,
    pub(crate) before: Option<Arc<Workload>>,
    /// `None` if it was deleted.
    pub(crate) after: Option<Arc<Workload>>,
    /// Its ClusterQueue; empty if it is in none.
    pub(crate) queue: Arc<str>,
    /// The second of the decision of Kueue that the change is, if it is one.
    pub(crate) decided_s: Option<i64>,
    /// The workload that was preempted for, if it is a preemption; else the workload.
    pub(crate) decided_on: Arc<str>,
}

impl Entry {
    /// When it took effect for Kueue at the latest: a decision before it was written.
    pub(crate) fn effective_ms(&self) -> i64 {
        let end_ms = |second: i64| second.saturating_mul(1000).saturating_add(999);
        self.decided_s
            .map_or(self.at_ms, |second| end_ms(second).min(self.at_ms))
    }
}

/// The second of an admission that a change is; `None` if it is none.
pub(crate) fn admitted_s(before: Option<&Workload>, after: &Workload) -> Option<i64> {
    if before.is_some_and(|it| admission(it).is_some()) || admission(after).is_none() {
        return None;
    }
    let reserved = true_condition(after, "QuotaReserved").or(true_condition(after, "Admitted"));
    reserved.map(transition_s)
}

/// The second of a preemption that a change is; `None` if it is none.
pub(crate) fn preempted_s(before: Option<&Workload>, after: &Workload) -> Option<i64> {
    let second = transition_s(preempted(after)?);
    let is_known = before.and_then(preempted).map(transition_s) == Some(second);
    let had_quota = before.is_none_or(|it| admission(it).is_some());
    (!is_known && had_quota).then_some(second)
}

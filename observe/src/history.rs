//! The last changes of Workloads.

use crate::core_cycles::{Action, OtherDecision};
use crate::workload_facts::{admission, condition, preempted, transition_s, true_condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockkeeper_api::Workload;
use std::sync::Arc;

/// A change of a Workload.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When the watch delivered it, in milliseconds since 1970.
    pub(crate) delivered_ms: i64,
    /// When the watch delivered it, in milliseconds since 1970; of others than decisions at the latest the end of the second in
    /// which it was written.
    pub(crate) at_ms: i64,
    /// The earliest time at which it was written, in milliseconds since 1970.
    pub(crate) earliest_ms: i64,
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
    /// Whether it is a decision of Kueue on the workload of a decision of the core, on one of its victims if it preempts.
    pub(crate) fn is_decision(&self, own: &OtherDecision) -> bool {
        match &own.action {
            Action::Admission => self.decided_on == self.key && self.key == own.key,
            Action::Preemption(victims) => {
                self.decided_on == own.key && victims.contains(&self.key)
            }
        }
    }

    /// Whether it is an admission.
    pub(crate) fn is_admission(&self) -> bool {
        self.decided_s.is_some() && self.decided_on == self.key
    }

    /// When it took effect for Kueue at the latest: a decision before it was written.
    pub(crate) fn effective_ms(&self) -> i64 {
        self.decided_s.map_or(self.at_ms, |second| {
            end_of_second_ms(second).min(self.at_ms)
        })
    }
}

/// The end of a second, in milliseconds.
pub(crate) const fn end_of_second_ms(second: i64) -> i64 {
    second.saturating_mul(1000).saturating_add(999)
}

/// The newest time in the metadata and conditions of a version that the version before does not have, in seconds since 1970. The
/// change was written then: the watch may deliver it later.
pub(crate) fn written_s(before: Option<&Workload>, after: &Workload) -> Option<i64> {
    let created = after.metadata.creation_timestamp.as_ref();
    let created = created
        .filter(|_| before.is_none())
        .map(|it| it.0.as_second());
    let conditions = after.status.iter().flat_map(|it| &it.conditions);
    let is_new = |it: &&Condition| {
        let known = before.and_then(|before| condition(before, &it.type_));
        known.is_none_or(|known| known.last_transition_time != it.last_transition_time)
    };
    let changed = conditions.filter(is_new).map(transition_s).max();
    created.max(changed)
}

/// The second of an admission that a change is; `None` if it is none.
pub(crate) fn admitted_s(before: Option<&Workload>, after: &Workload) -> Option<i64> {
    if before.is_some_and(|it| admission(it).is_some()) || admission(after).is_none() {
        return None;
    }
    let reserved = true_condition(after, "QuotaReserved").or(true_condition(after, "Admitted"));
    reserved.map(transition_s)
}

/// The second of a preemption that a change is; `None` if it is none. Kueue may write it before the admission of the victim.
pub(crate) fn preempted_s(before: Option<&Workload>, after: &Workload) -> Option<i64> {
    let second = transition_s(preempted(after)?);
    let is_known = before.and_then(preempted).map(transition_s) == Some(second);
    (!is_known).then_some(second)
}

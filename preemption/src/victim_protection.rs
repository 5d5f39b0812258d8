//! Candidates that are protected although the policy of the preemptor permits to preempt them. Apart from
//! damping, every protection is off by default; the trace shows each one.
//!
//! Sources: Kueue issues 9596, 9876 and 8522 (minimum run time), 12001 and 12046 (thresholds), KEP-13396
//! (limits for all, for a queue and for a workload).

use crate::admitted::AdmittedWorkload;
use crate::damping::{Histories, Holds};
use crate::ids::WorkloadId;
use crate::queue::Queue;
use crate::victim::Protection;
use std::cell::Cell;

/// The protections that apply in one search.
#[derive(Clone, Copy)]
pub(crate) struct VictimProtection<'a> {
    pub(crate) preemptor: WorkloadId,
    pub(crate) histories: &'a Histories,
    pub(crate) holds: &'a Holds,
    /// Preemptors that this preemptor displaces: it uses the quota held for them.
    pub(crate) displaced: &'a [WorkloadId],
    pub(crate) queues: &'a [Queue],
    pub(crate) now_s: i64,
    pub(crate) is_damped: bool,
    /// Whether any queue has preemption limits or is elastic.
    pub(crate) has_limits: bool,
    /// Set to the earliest second at which a candidate reaches its minimum run time, or at which the preemptor has waited
    /// long enough.
    pub(crate) next_candidate_at_s: &'a Cell<Option<i64>>,
}

impl VictimProtection<'_> {
    /// Records a second at which a new search may have another result.
    pub(crate) fn wake_at(&self, at_s: i64) {
        let before = self.next_candidate_at_s.get();
        let earliest_s = before.map_or(at_s, |it| it.min(at_s));
        self.next_candidate_at_s.set(Some(earliest_s));
    }

    /// Returns the reason if damping protects a candidate.
    pub(crate) fn damping_protection(
        &self,
        preemptor_priority: i32,
        id: WorkloadId,
        priority: i32,
    ) -> Option<Protection> {
        if !self.is_damped || self.histories.is_empty() {
            return None;
        }
        // Its quota is held for that preemptor and would not become available.
        if let Some(by) = self.histories.evicting_preemptor(id)
            && by != self.preemptor
            && self.holds.contains(by)
            && !self.displaced.contains(&by)
        {
            return Some(Protection::EvictedForAnother);
        }
        // Downwards in priority, repeated preemption terminates by itself (see `damping`).
        let has_preempted = || self.histories.has_preempted(self.preemptor, id);
        (priority >= preemptor_priority && has_preempted()).then_some(Protection::PreemptedBefore)
    }

    /// Whether the workload is non-preemptible in its own, elastic queue.
    fn is_protected_by_queue(&self, admitted: &AdmittedWorkload) -> bool {
        let queue = self.queues.get(admitted.queue.index());
        queue.is_some_and(|it| it.settings.protects(admitted.preemption_labels))
    }

    /// Returns the reason if a candidate is protected from a preemptor of this priority.
    pub(crate) fn protection(
        &self,
        priority: i32,
        is_own_queue: bool,
        id: WorkloadId,
        admitted: &AdmittedWorkload,
    ) -> Option<Protection> {
        if self.has_limits && self.is_protected_by_queue(admitted) {
            return Some(Protection::NonPreemptible);
        }
        let damping = self.damping_protection(priority, id, admitted.preemption_priority);
        // Limits do not protect a workload that is being evicted: sparing it saves no run time.
        if damping.is_some() || !self.has_limits || admitted.is_evicted {
            return damping;
        }
        let limits = &self
            .queues
            .get(admitted.queue.index())?
            .settings
            .preemption
            .limits;
        let min_runtime_s = if is_own_queue {
            limits.min_run_within_s
        } else {
            limits.min_run_beyond_s
        };
        let runtime_s = self.now_s.saturating_sub(admitted.reserved_at_s);
        if let Some(min_runtime_s) = min_runtime_s.filter(|it| runtime_s < *it) {
            self.wake_at(admitted.reserved_at_s.saturating_add(min_runtime_s));
            return Some(Protection::BelowMinRuntime {
                runtime_s,
                min_runtime_s,
            });
        }
        let preemption_count = self.histories.preemption_count(id);
        let max = limits.preemptions_max?;
        (preemption_count >= max).then_some(Protection::PreemptedTooOften {
            times: preemption_count,
        })
    }
}

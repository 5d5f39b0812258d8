//! What users ask for beyond Kueue's policies: whom a preemptor spares although the policy lets it
//! take him. All of it is off by default, and each is seen in the trace.
//!
//! Sources: Kueue issues 9596, 9876 and 8522 (minimum run time), 12001 and 12046 (thresholds), KEP-13396
//! (limits for all, for a queue and for a workload).

use crate::admitted::AdmittedWorkload;
use crate::damping::{Histories, Holds};
use crate::ids::WorkloadId;
use crate::queue::Queue;
use crate::victim::Protection;
use std::cell::Cell;

/// Says who is spared in one search.
#[derive(Clone, Copy)]
pub(crate) struct VictimProtection<'a> {
    pub(crate) preemptor: WorkloadId,
    pub(crate) histories: &'a Histories,
    pub(crate) holds: &'a Holds,
    /// Workloads whose held quota the preemptor takes.
    pub(crate) displaced: &'a [WorkloadId],
    pub(crate) queues: &'a [Queue],
    pub(crate) now_s: i64,
    pub(crate) is_damped: bool,
    /// Whether any queue has limits, or is elastic.
    pub(crate) has_limits: bool,
    /// The first second at which somebody has run for long enough who has not now.
    pub(crate) next_candidate_at_s: &'a Cell<Option<i64>>,
}

impl VictimProtection<'_> {
    /// Why a candidate of a priority is spared by damping, if it is.
    pub(crate) fn damping_protection(
        &self,
        preemptor_priority: i32,
        id: WorkloadId,
        priority: i32,
    ) -> Option<Protection> {
        if !self.is_damped || self.histories.is_empty() {
            return None;
        }
        if let Some(by) = self.histories.evicting_preemptor(id)
            && by != self.preemptor
            && self.holds.contains(by)
            && !self.displaced.contains(&by)
        {
            return Some(Protection::EvictedForAnother);
        }
        let has_taken = || self.histories.has_preempted(self.preemptor, id);
        (priority >= preemptor_priority && has_taken()).then_some(Protection::PreemptedBefore)
    }

    /// Whether the workload's own queue is elastic, and never gives it.
    fn is_protected_by_queue(&self, running: &AdmittedWorkload) -> bool {
        let queue = self.queues.get(running.queue.index());
        queue.is_some_and(|it| it.settings.protects(running.preemption_labels))
    }

    /// Why a candidate is spared, if it is. `preemptor` and candidate are told by priority and queue.
    pub(crate) fn protection(
        &self,
        priority: i32,
        is_own_queue: bool,
        id: WorkloadId,
        running: &AdmittedWorkload,
    ) -> Option<Protection> {
        if self.has_limits && self.is_protected_by_queue(running) {
            return Some(Protection::NonPreemptible);
        }
        let damped = self.damping_protection(priority, id, running.priority);
        if damped.is_some() || !self.has_limits || running.is_evicted {
            return damped;
        }
        let limits = &self
            .queues
            .get(running.queue.index())?
            .settings
            .preemption
            .limits;
        let least_s = if is_own_queue {
            limits.min_run_within_s
        } else {
            limits.min_run_beyond_s
        };
        let for_s = self.now_s.saturating_sub(running.reserved_at_s);
        if let Some(least_s) = least_s.filter(|it| for_s < *it) {
            let at_s = running.reserved_at_s.saturating_add(least_s);
            let soonest_s = self
                .next_candidate_at_s
                .get()
                .map_or(at_s, |it| it.min(at_s));
            self.next_candidate_at_s.set(Some(soonest_s));
            return Some(Protection::BelowMinRuntime {
                runtime_s: for_s,
                min_runtime_s: least_s,
            });
        }
        let times = self.histories.preemption_count(id);
        let most = limits.preemptions_max?;
        (times >= most).then_some(Protection::PreemptedTooOften { times })
    }
}

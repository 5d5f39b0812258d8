//! Counters of the scheduling cycles and evictions, for metrics.

use lockkeeper_cluster_state::PreemptionCause;
use lockkeeper_preemption::requeue::EvictionReason;
use lockkeeper_preemption::{Decision, PreemptionReason};

/// Counters of the scheduling cycles; they only grow while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Scheduling cycles.
    pub cycles: u64,
    /// Workloads that cycles processed, by the name of the decision.
    pub decisions: [(&'static str, u64); 6],
    /// Admissions that were written.
    pub admitted: u64,
    /// Admissions of workloads ahead of the head of their queue.
    pub backfilled: u64,
    /// Victims chosen by cycles, and workloads and pods preempted on nodes, by reason.
    pub victims: [(PreemptionCause, u64); 5],
    /// Events that were dropped because too many were pending.
    pub dropped_events: u64,
}

/// An eviction whose write has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The ClusterQueue that had admitted the workload; empty if there was none.
    pub cluster_queue: String,
    /// The reason of the condition `Evicted`.
    pub reason: EvictionReason,
    /// Whether the workload was never evicted for this reason before.
    pub is_first: bool,
}

impl Default for Counters {
    fn default() -> Self {
        let reasons = [
            PreemptionCause::Quota(PreemptionReason::InClusterQueue),
            PreemptionCause::Quota(PreemptionReason::InCohortReclamation),
            PreemptionCause::Quota(PreemptionReason::InCohortReclaimWhileBorrowing),
            PreemptionCause::Quota(PreemptionReason::InCohortFairSharing),
            PreemptionCause::Nodes,
        ];
        Self {
            cycles: 0,
            decisions: Decision::NAMES.map(|it| (it, 0)),
            admitted: 0,
            backfilled: 0,
            victims: reasons.map(|it| (it, 0)),
            dropped_events: 0,
        }
    }
}

impl Counters {
    pub(super) fn increment_cycles(&mut self) {
        self.cycles = self.cycles.saturating_add(1);
    }

    pub(super) fn increment_admitted(&mut self) {
        self.admitted = self.admitted.saturating_add(1);
    }

    pub(super) fn increment_backfilled(&mut self) {
        self.backfilled = self.backfilled.saturating_add(1);
    }

    pub(super) fn increment_decision(&mut self, name: &'static str) {
        increment(&mut self.decisions, name);
    }

    pub(super) fn increment_victims(&mut self, cause: PreemptionCause) {
        increment(&mut self.victims, cause);
    }
}

fn increment<T: Copy + PartialEq>(all: &mut [(T, u64)], label: T) {
    for (_, number) in all.iter_mut().filter(|(it, _)| *it == label) {
        *number = number.saturating_add(1);
    }
}

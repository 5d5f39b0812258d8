//! State of scheduling between two cycles.

use lockkeeper_preemption::WorkloadId;
use std::collections::{BTreeMap, BTreeSet};

/// The pause between two rounds of cycles, in milliseconds. Inputs that arrive meanwhile are scheduled
/// together; the first input after an idle time is scheduled at once.
pub(super) const SCHEDULING_PAUSE_MS: i64 = 20;

/// The most cycles that a workload may continue its flavor search between two inputs. The search of a workload with several
/// pod sets may never end, as in Kueue: while one pod set tries its last flavor, another begins again at its first.
const CONTINUED_CYCLES_MAX: u32 = 64;

/// State of the scheduling cycles.
#[derive(Debug, Default)]
pub(super) struct CycleState {
    /// Whether a cycle may find something to do.
    pub(super) is_due: bool,
    /// Workloads that continue their flavor search in the next cycle.
    pub(super) continuing_searches: BTreeSet<WorkloadId>,
    /// The cycles since the last input in which a workload has continued its search.
    continued_cycles: BTreeMap<WorkloadId, u32>,
    /// Workloads that have searched all flavors once more since the last input.
    pub(super) searched_again: BTreeSet<WorkloadId>,
    /// Inadmissible workloads that will search all flavors once more.
    pub(super) to_requeue: Vec<WorkloadId>,
    /// Admissions withdrawn since the last input.
    pub(super) withdrawn_admissions: u32,
    /// No cycle runs before this time, in milliseconds.
    next_at_ms: i64,
}

impl CycleState {
    /// The earliest time of the next cycle.
    pub(super) fn next_at_ms(&self, now_ms: i64) -> i64 {
        // A time too far ahead means that the clock was set back.
        let is_plausible = self.next_at_ms.saturating_sub(now_ms) <= SCHEDULING_PAUSE_MS;
        let at_ms = if is_plausible {
            self.next_at_ms
        } else {
            now_ms
        };
        at_ms.max(now_ms)
    }

    /// Counts a cycle in which a workload continues its search; false if these were too many.
    pub(super) fn continue_search(&mut self, workload: WorkloadId) -> bool {
        let cycles = self.continued_cycles.entry(workload).or_default();
        *cycles = cycles.saturating_add(1);
        *cycles <= CONTINUED_CYCLES_MAX
    }

    pub(super) fn pause_from(&mut self, now_ms: i64) {
        self.next_at_ms = now_ms.saturating_add(SCHEDULING_PAUSE_MS);
    }

    /// An input arrived: the limits per input start again.
    pub(super) fn reset_limits(&mut self) {
        self.searched_again.clear();
        self.continued_cycles.clear();
        self.withdrawn_admissions = 0;
    }
}

//! State of scheduling between two cycles.

use lockkeeper_cluster_state::FlavorSearches;

/// The pause between two rounds of cycles, in milliseconds. Inputs that arrive meanwhile are scheduled
/// together; the first input after an idle time is scheduled at once.
pub(super) const SCHEDULING_PAUSE_MS: i64 = 20;

/// State of the scheduling cycles.
#[derive(Debug, Default)]
pub(super) struct CycleState {
    /// Whether a cycle may find something to do.
    pub(super) is_due: bool,
    /// The flavor searches that continue over several cycles.
    pub(super) searches: FlavorSearches,
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

    pub(super) fn pause_from(&mut self, now_ms: i64) {
        self.next_at_ms = now_ms.saturating_add(SCHEDULING_PAUSE_MS);
    }

    /// An input arrived: the limits per input start again.
    pub(super) fn reset_limits(&mut self) {
        self.searches.reset_limits();
        self.withdrawn_admissions = 0;
    }
}

//! How often the status of a queue is written.

use super::output::WriteOp;
use serde_json::Value;

/// How often the interval is doubled while the status changes all the time.
const DOUBLINGS_MAX: u32 = 2;

/// When a status was made up last, and how soon that may be done again.
///
/// The first change after a rest is written at once, the next after the interval. As long as there is something
/// new each time, the interval is doubled, up to four times its length: where a queue is busy, its sums have
/// changed again by the time somebody reads them.
#[derive(Debug, Default)]
pub(super) struct StatusThrottle {
    computed_at_ms: Option<i64>,
    doublings: u32,
}

impl StatusThrottle {
    /// When it may be made up again, in milliseconds since 1970; `None` at once.
    pub(super) fn due_ms(&self, interval_ms: i64) -> Option<i64> {
        let pause_ms = interval_ms.saturating_mul(1 << self.doublings);
        Some(self.computed_at_ms?.saturating_add(pause_ms))
    }

    fn record_computed(&mut self, now_ms: i64, interval_ms: i64, has_changed: bool) {
        let due_ms = self.due_ms(interval_ms);
        let has_rested = due_ms.is_none_or(|it| it.saturating_add(interval_ms) <= now_ms);
        self.doublings = if has_changed && !has_rested {
            self.doublings.saturating_add(1).min(DOUBLINGS_MAX)
        } else {
            0
        };
        self.computed_at_ms = Some(now_ms);
    }

    /// The status is made up now, and this is what is new of it.
    pub(super) fn throttled_patch(
        &mut self,
        now_ms: i64,
        interval_ms: i64,
        patch: Option<Value>,
    ) -> Option<WriteOp> {
        self.record_computed(now_ms, interval_ms, patch.is_some());
        patch.map(WriteOp::PatchStatus)
    }

    /// Somebody has changed the spec, and waits for what comes of it.
    pub(super) const fn reset(&mut self) {
        self.computed_at_ms = None;
        self.doublings = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::StatusThrottle;

    /// When a status that has always something new is written.
    fn write_times_when_busy(pace: &mut StatusThrottle, begin_ms: i64, writes: usize) -> Vec<i64> {
        let mut now_ms = begin_ms;
        let write = |_| {
            now_ms = pace.due_ms(5_000).unwrap_or(now_ms).max(now_ms);
            pace.record_computed(now_ms, 5_000, true);
            now_ms - begin_ms
        };
        (0..writes).map(write).collect()
    }

    #[test]
    fn status_throttle_busy_queue_doubles_interval_up_to_four_times() {
        let mut pace = StatusThrottle::default();
        let written = write_times_when_busy(&mut pace, 1_000_000, 6);
        assert_eq!(written, [0, 5_000, 15_000, 35_000, 55_000, 75_000]);
        // After a rest it begins again.
        let written = write_times_when_busy(&mut pace, 2_000_000, 3);
        assert_eq!(written, [0, 5_000, 15_000]);
    }

    #[test]
    fn status_throttle_no_change_or_new_spec_resets_interval() {
        let mut pace = StatusThrottle::default();
        write_times_when_busy(&mut pace, 1_000_000, 4);
        pace.record_computed(1_055_000, 5_000, false);
        assert_eq!(pace.due_ms(5_000), Some(1_060_000));
        write_times_when_busy(&mut pace, 1_060_000, 4);
        pace.reset();
        assert_eq!(pace.due_ms(5_000), None);
    }
}

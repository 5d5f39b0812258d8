//! Rate limits: a token bucket for reports, and a throttle for statuses.

/// Tokens of this many idle seconds are saved up, for a burst.
const BURST_SECONDS: u64 = 10;

/// One token in millitokens: fractions earned between two calls are not lost.
const TOKEN: u64 = 1_000;

/// A token bucket: one token per write.
#[derive(Debug, Default)]
pub(super) struct TokenBucket {
    millitokens: u64,
    refilled_at_ms: i64,
}

impl TokenBucket {
    /// Whether a token was left at the last call of [`Self::try_take`]; does not refill.
    pub(super) const fn has_token(&self) -> bool {
        self.millitokens >= TOKEN
    }

    /// Refills the bucket at `per_second` and takes a token, if there is one.
    pub(super) fn try_take(&mut self, now_ms: i64, per_second: u32) -> bool {
        let rate = u64::from(per_second);
        let passed_ms = now_ms.saturating_sub(self.refilled_at_ms).max(0);
        let passed_ms = u64::try_from(passed_ms).unwrap_or(0);
        self.refilled_at_ms = now_ms;
        let max = rate.saturating_mul(BURST_SECONDS).saturating_mul(TOKEN);
        // Milliseconds times tokens per second are millitokens.
        let earned = passed_ms.saturating_mul(rate);
        self.millitokens = self.millitokens.saturating_add(earned).min(max);
        let Some(rest) = self.millitokens.checked_sub(TOKEN) else {
            return false;
        };
        self.millitokens = rest;
        true
    }
}

/// How many times the interval is doubled while the status keeps changing.
const DOUBLINGS_MAX: u32 = 2;

/// Limits how often the status of a queue is computed.
///
/// The first change after an idle time is written at once, the next after the interval. While each computed
/// status differs from the one before, the interval doubles, up to four times its length: the sums of a busy
/// queue are outdated by the time they are read anyway.
#[derive(Debug, Default)]
pub(super) struct StatusThrottle {
    computed_at_ms: Option<i64>,
    doublings: u32,
}

impl StatusThrottle {
    /// When the status may be computed again, in milliseconds since 1970; `None` means now.
    pub(super) fn due_ms(&self, interval_ms: i64) -> Option<i64> {
        let pause_ms = interval_ms.saturating_mul(1 << self.doublings);
        Some(self.computed_at_ms?.saturating_add(pause_ms))
    }

    /// Records that the status was computed, and whether it differed from the stored one.
    pub(super) fn record_computed(&mut self, now_ms: i64, interval_ms: i64, has_changed: bool) {
        let due_ms = self.due_ms(interval_ms);
        let was_idle = due_ms.is_none_or(|it| it.saturating_add(interval_ms) <= now_ms);
        self.doublings = if has_changed && !was_idle {
            self.doublings.saturating_add(1).min(DOUBLINGS_MAX)
        } else {
            0
        };
        self.computed_at_ms = Some(now_ms);
    }

    /// The spec has changed: the next status is due at once, because a user is waiting for the result.
    pub(super) const fn reset(&mut self) {
        self.computed_at_ms = None;
        self.doublings = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{StatusThrottle, TokenBucket};

    fn take_all(bucket: &mut TokenBucket, now_ms: i64, per_second: u32) -> usize {
        (0..1_000)
            .take_while(|_| bucket.try_take(now_ms, per_second))
            .count()
    }

    #[test]
    fn token_bucket_after_idle_time_holds_ten_seconds_of_tokens() {
        let mut bucket = TokenBucket::default();
        let start_ms = 1_000_000;
        assert_eq!(take_all(&mut bucket, start_ms, 5), 50);
        assert_eq!(take_all(&mut bucket, start_ms, 5), 0);
        assert_eq!(take_all(&mut bucket, start_ms + 1_000, 5), 5);
        assert_eq!(take_all(&mut bucket, start_ms + 4_000, 5), 15);
        assert_eq!(take_all(&mut bucket, start_ms + 600_000, 5), 50);
    }

    #[test]
    fn token_bucket_at_zero_rate_stays_empty() {
        assert_eq!(take_all(&mut TokenBucket::default(), 1_000_000, 0), 0);
    }

    /// The times at which a status that changes each time is written, from `start_ms` on.
    fn write_times_when_busy(
        throttle: &mut StatusThrottle,
        start_ms: i64,
        writes: usize,
    ) -> Vec<i64> {
        let mut now_ms = start_ms;
        let write = |_| {
            now_ms = throttle.due_ms(5_000).unwrap_or(now_ms).max(now_ms);
            throttle.record_computed(now_ms, 5_000, true);
            now_ms - start_ms
        };
        (0..writes).map(write).collect()
    }

    #[test]
    fn status_throttle_busy_queue_doubles_interval_up_to_four_times() {
        let mut throttle = StatusThrottle::default();
        let written = write_times_when_busy(&mut throttle, 1_000_000, 6);
        assert_eq!(written, [0, 5_000, 15_000, 35_000, 55_000, 75_000]);
        // After an idle time the interval is the first again.
        let written = write_times_when_busy(&mut throttle, 2_000_000, 3);
        assert_eq!(written, [0, 5_000, 15_000]);
    }

    #[test]
    fn status_throttle_no_change_or_new_spec_resets_interval() {
        let mut throttle = StatusThrottle::default();
        write_times_when_busy(&mut throttle, 1_000_000, 4);
        throttle.record_computed(1_055_000, 5_000, false);
        assert_eq!(throttle.due_ms(5_000), Some(1_060_000));
        write_times_when_busy(&mut throttle, 1_060_000, 4);
        throttle.reset();
        assert_eq!(throttle.due_ms(5_000), None);
    }
}

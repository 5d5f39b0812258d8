//! Times: objects contain whole seconds since 1970, as the API server stores them; the clock is in milliseconds. Sums
//! saturate at the earliest or latest representable time.

use crate::policy::Compatibility;
use std::time::Duration;

const MS_PER_S: i64 = 1_000;
const NS_PER_MS: i128 = 1_000_000;
const NS_PER_S: i128 = 1_000_000_000;

/// Converts seconds to milliseconds.
pub(super) fn to_ms(at_s: i64) -> i64 {
    at_s.saturating_mul(MS_PER_S)
}

/// The time from now until a second; zero if it has passed.
pub(super) fn duration_until(at_s: i64, now_ms: i64) -> Duration {
    let remaining_ms = i128::from(to_ms(at_s)).saturating_sub(i128::from(now_ms));
    Duration::from_millis(u64::try_from(remaining_ms).unwrap_or_default())
}

/// The remainder of a timeout that began at a second; zero if it has expired.
pub(super) fn remaining(since_s: i64, timeout: Duration, now_ms: i64) -> Duration {
    let elapsed_ms = i128::from(now_ms).saturating_sub(i128::from(to_ms(since_s)));
    match u64::try_from(elapsed_ms) {
        Ok(elapsed_ms) => timeout.saturating_sub(Duration::from_millis(elapsed_ms)),
        // The timeout begins in the future: clocks differ.
        Err(_) => timeout.saturating_add(duration_until(since_s, now_ms)),
    }
}

/// The second that contains a time.
pub(super) fn to_second(now_ms: i64) -> i64 {
    now_ms.div_euclid(MS_PER_S)
}

/// The second to store for a time after now. Kueue truncates, which shortens the delay by up to one second; otherwise
/// it is rounded up.
pub(super) fn second_after(now_ms: i64, delay: Duration, compatibility: Compatibility) -> i64 {
    let delay_ns = i128::try_from(delay.as_nanos()).unwrap_or(i128::MAX);
    let instant_ns = i128::from(now_ms)
        .saturating_mul(NS_PER_MS)
        .saturating_add(delay_ns);
    let full_ns = match compatibility {
        Compatibility::Kueue => instant_ns,
        Compatibility::Lockkeeper => instant_ns.saturating_add(NS_PER_S.saturating_sub(1)),
    };
    i64::try_from(full_ns.div_euclid(NS_PER_S)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{duration_until, remaining, second_after, to_second};
    use crate::policy::Compatibility;
    use std::time::Duration;

    #[test]
    fn timeout_is_reached_exactly_at_its_end() {
        let timeout = Duration::from_mins(5);
        assert_eq!(remaining(10, timeout, 309_999), Duration::from_millis(1));
        assert_eq!(remaining(10, timeout, 310_000), Duration::ZERO);
        assert_eq!(remaining(10, timeout, 9_000), Duration::from_secs(301));
    }

    #[test]
    fn second_after_rounds_to_whole_seconds() {
        let delay = Duration::from_millis(60_006);
        assert_eq!(second_after(500, delay, Compatibility::Kueue), 60);
        assert_eq!(second_after(500, delay, Compatibility::Lockkeeper), 61);
        let exact = Duration::from_mins(1);
        assert_eq!(second_after(1_000, exact, Compatibility::Lockkeeper), 61);
        assert_eq!(
            second_after(-1_500, Duration::ZERO, Compatibility::Kueue),
            -2
        );
        assert_eq!(to_second(-1), -1);
    }

    #[test]
    fn extreme_instants_do_not_overflow() {
        assert_eq!(
            duration_until(i64::MAX, i64::MIN).as_millis(),
            u128::from(u64::MAX)
        );
        assert_eq!(duration_until(i64::MIN, i64::MAX), Duration::ZERO);
        assert!(!remaining(i64::MIN, Duration::MAX, i64::MAX).is_zero());
        assert_eq!(remaining(i64::MAX, Duration::MAX, i64::MIN), Duration::MAX);
        let latest = second_after(i64::MAX, Duration::MAX, Compatibility::Lockkeeper);
        assert!(latest > i64::MAX / 1_000);
    }
}

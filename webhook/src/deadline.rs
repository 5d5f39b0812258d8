//! How long a request may take.

use std::time::Duration;
use tokio::time::Instant;

pub(crate) mod missed;

/// What the API server waits when it says nothing, in seconds.
const TIMEOUT_SECONDS_DEFAULT: u64 = 10;

/// The most that it may say, in seconds.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// How much sooner the answer is given, in seconds: it has a way to go.
const RESERVE_SECONDS: u64 = 1;

/// The most that rules may take of the reserve when they run again after a lookup, in milliseconds.
const SECOND_LOOK_MAX_MS: u64 = 500;

/// When the work must end: a second before the `timeout` in the query, at least half of it.
pub(crate) fn of(query: Option<&str>, started: Instant) -> Instant {
    let given = query.and_then(|query| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut values = pairs
            .filter(|(key, _)| *key == "timeout")
            .map(|(_, value)| value);
        duration(values.next()?)
    });
    let most = Duration::from_secs(TIMEOUT_SECONDS_MAX);
    let timeout = given
        .unwrap_or(Duration::from_secs(TIMEOUT_SECONDS_DEFAULT))
        .min(most);
    let reserve = Duration::from_secs(RESERVE_SECONDS).min(timeout / 2);
    started + timeout.saturating_sub(reserve)
}

/// When the rules must be done that run again after a lookup. A lookup may go on to the deadline, so
/// a part of the reserve is theirs.
pub(crate) fn for_second_look(started: Instant, deadline: Instant) -> Instant {
    let given = deadline.saturating_duration_since(started);
    // The reserve is at most as long as the time before it: `of` sees to that.
    deadline + (given / 2).min(Duration::from_millis(SECOND_LOOK_MAX_MS))
}

/// Reads a Go duration of hours, minutes, seconds and milliseconds, such as `10s` or `1m30s`.
fn duration(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let number: u32 = number.parse().ok()?;
        let units = [
            ("ms", Duration::from_millis(1)),
            ("h", Duration::from_hours(1)),
            ("m", Duration::from_mins(1)),
            ("s", Duration::from_secs(1)),
        ];
        let (unit, tail) = units
            .iter()
            .find_map(|(name, unit)| Some((*unit, tail.strip_prefix(name)?)))?;
        total = total.checked_add(unit.checked_mul(number)?)?;
        rest = tail;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: Option<&str>, expected_ms: u64) {
        let now = Instant::now();
        let left = of(query, now).saturating_duration_since(now);
        assert_eq!(left, Duration::from_millis(expected_ms), "{query:?}");
    }

    #[test]
    fn ends_a_second_early() {
        check(None, 9_000);
        check(Some("timeout=10s"), 9_000);
        check(Some("timeout=5s"), 4_000);
        check(Some("a=b&timeout=2s"), 1_000);
        check(Some("timeout=1s"), 500);
        check(Some("timeout=500ms"), 250);
        check(Some("timeout=1m0s"), 29_000);
        check(Some("timeout=30s"), 29_000);
    }

    #[test]
    fn a_second_look_ends_before_the_timeout() {
        for (timeout, expected_ms) in [("10s", 9_500), ("2s", 1_500), ("1s", 750), ("30s", 29_500)]
        {
            let now = Instant::now();
            let deadline = of(Some(&format!("timeout={timeout}")), now);
            let left = for_second_look(now, deadline).saturating_duration_since(now);
            assert_eq!(left, Duration::from_millis(expected_ms), "{timeout}");
        }
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        for text in [
            "timeout=",
            "timeout=10",
            "timeout=-1s",
            "timeout=1y",
            "timeout=99999999999s",
        ] {
            check(Some(text), 9_000);
        }
    }
}

//! How long a request may take.

use std::time::Duration;
use tokio::time::Instant;

pub(crate) mod timeout_response;

/// What the API server waits when it says nothing, in seconds.
const TIMEOUT_SECONDS_DEFAULT: u64 = 10;

/// The most that it may say, in seconds.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// What is left of the timeout of a request when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineReserve {
    /// How much sooner than the timeout the answer is given: it has a way to go.
    pub answer: Duration,
    /// The most that rules may take of that when they run again after a lookup. At most as long as
    /// [`Self::answer`], or the answer would be late.
    pub retry_reserve: Duration,
}

/// When the work must end: sooner than the `timeout` in the query by the reserve, which is at most
/// half of it.
pub(crate) fn from_query(
    query: Option<&str>,
    started: Instant,
    reserve: &DeadlineReserve,
) -> Instant {
    let given = query.and_then(|query| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut values = pairs
            .filter(|(key, _)| *key == "timeout")
            .map(|(_, value)| value);
        parse_duration(values.next()?)
    });
    let most = Duration::from_secs(TIMEOUT_SECONDS_MAX);
    let timeout = given
        .unwrap_or(Duration::from_secs(TIMEOUT_SECONDS_DEFAULT))
        .min(most);
    let reserve = reserve.answer.min(timeout / 2);
    started + timeout.saturating_sub(reserve)
}

/// When the rules must be done that run again after a lookup. A lookup may go on to the deadline, so
/// a part of the reserve is theirs.
pub(crate) fn for_retry(started: Instant, deadline: Instant, reserve: &DeadlineReserve) -> Instant {
    let given = deadline.saturating_duration_since(started);
    // The reserve is at most as long as the time before it: `of` sees to that.
    deadline + (given / 2).min(reserve.retry_reserve)
}

/// Reads a Go duration of hours, minutes, seconds and milliseconds, such as `10s` or `1m30s`.
fn parse_duration(text: &str) -> Option<Duration> {
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
    use crate::load_shedding::LoadLimits;

    #[track_caller]
    fn check(query: Option<&str>, expected_ms: u64) {
        let now = Instant::now();
        let left =
            from_query(query, now, &LoadLimits::default().reserve).saturating_duration_since(now);
        assert_eq!(left, Duration::from_millis(expected_ms), "{query:?}");
    }

    #[test]
    fn deadline_is_timeout_minus_reserve() {
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
    fn retry_deadline_is_before_timeout() {
        let usual = LoadLimits::default().reserve;
        let large = DeadlineReserve {
            answer: Duration::from_secs(4),
            retry_reserve: Duration::from_secs(4),
        };
        for (reserve, timeout, first_ms, second_ms) in [
            (usual, "10s", 9_000, 9_500),
            (usual, "2s", 1_000, 1_500),
            (usual, "1s", 500, 750),
            (usual, "30s", 29_000, 29_500),
            (large, "10s", 6_000, 9_000),
            (large, "5s", 2_500, 3_750),
            (large, "30s", 26_000, 30_000),
        ] {
            let now = Instant::now();
            let deadline = from_query(Some(&format!("timeout={timeout}")), now, &reserve);
            let second = for_retry(now, deadline, &reserve);
            let left = [deadline, second].map(|end| end.saturating_duration_since(now));
            let expected = [first_ms, second_ms].map(Duration::from_millis);
            assert_eq!(left, expected, "{timeout}");
        }
    }

    #[test]
    fn invalid_timeout_uses_default() {
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

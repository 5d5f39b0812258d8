//! The deadline of a request.

pub(crate) mod timeout_response;

use lockkeeper_api::config::GoDuration;
use std::time::Duration;
use tokio::time::Instant;

/// The API server's default timeout, in seconds.
const TIMEOUT_SECONDS_DEFAULT: u64 = 10;

/// The largest timeout of a webhook configuration, in seconds.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// Time before the timeout of a request that is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineReserve {
    /// Time reserved for the response to reach the API server.
    pub answer: Duration,
    /// The part of it that a retry after a lookup may use. At most [`Self::answer`], or the response would
    /// be late.
    pub retry_reserve: Duration,
}

/// Returns the deadline: the `timeout` of the query minus the reserve, which is at most half of the timeout.
pub(crate) fn from_query(
    query: Option<&str>,
    started: Instant,
    reserve: &DeadlineReserve,
) -> Instant {
    let requested = query.and_then(|query| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut values = pairs
            .filter(|(key, _)| *key == "timeout")
            .map(|(_, value)| value);
        values.next()?.parse::<GoDuration>().ok()
    });
    let timeout = requested.map_or(
        Duration::from_secs(TIMEOUT_SECONDS_DEFAULT),
        GoDuration::get,
    );
    // The client chooses the query: a huge timeout must not keep its request open.
    let timeout = timeout.min(Duration::from_secs(TIMEOUT_SECONDS_MAX));
    // A reserve longer than a short timeout would leave no time to evaluate.
    let reserve = reserve.answer.min(timeout / 2);
    started + timeout.saturating_sub(reserve)
}

/// Returns the deadline of a retry: later than `deadline`, until which the lookup may last.
pub(crate) fn for_retry(started: Instant, deadline: Instant, reserve: &DeadlineReserve) -> Instant {
    let available = deadline.saturating_duration_since(started);
    // `from_query` limits the reserve to half of the timeout, so the retry ends before the timeout.
    deadline + (available / 2).min(reserve.retry_reserve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_shedding::LoadLimits;

    #[track_caller]
    fn check(query: Option<&str>, expected_ms: u64) {
        let now = Instant::now();
        let remaining =
            from_query(query, now, &LoadLimits::default().reserve).saturating_duration_since(now);
        assert_eq!(remaining, Duration::from_millis(expected_ms), "{query:?}");
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
            let remaining = [deadline, second].map(|end| end.saturating_duration_since(now));
            let expected = [first_ms, second_ms].map(Duration::from_millis);
            assert_eq!(remaining, expected, "{timeout}");
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

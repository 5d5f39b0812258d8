//! Log lines about reviews. Any pod can send reviews, so each event is throttled, and values of the caller are cut.

use crate::load_shedding::LogThrottle;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most lines about denied reviews at once: those of one `kubectl apply` of a directory.
const DENIED_AT_ONCE_MAX: u32 = 20;

/// The most characters of a value of the caller in a line: the length of the longest name of an object.
const VALUE_LENGTH_MAX: usize = 253;

/// The events of reviews that any caller can cause.
#[derive(Debug)]
pub(super) struct ReviewLog {
    pub(super) denied: ThrottledEvent,
    pub(super) timed_out: ThrottledEvent,
    pub(super) not_converted: ThrottledEvent,
    pub(super) ignored_annotation: ThrottledEvent,
}

impl ReviewLog {
    /// Creates a log with at most one line about each event in the interval. Denied reviews may be logged in a burst.
    pub(super) fn new(interval: Duration) -> Self {
        let once = || ThrottledEvent::new(LogThrottle::new(interval));
        Self {
            denied: ThrottledEvent::new(LogThrottle::with_burst(interval, DENIED_AT_ONCE_MAX)),
            timed_out: once(),
            not_converted: once(),
            ignored_annotation: once(),
        }
    }
}

/// An event that is counted each time and logged when a line is due.
#[derive(Debug)]
pub(super) struct ThrottledEvent {
    count: AtomicU64,
    throttle: LogThrottle,
}

impl ThrottledEvent {
    fn new(throttle: LogThrottle) -> Self {
        Self {
            count: AtomicU64::new(0),
            throttle,
        }
    }

    /// Counts the event. Returns the count so far if a line is due.
    pub(super) fn record(&self) -> Option<u64> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let is_due = self.throttle.is_due();
        is_due.then_some(before.saturating_add(1))
    }
}

/// A value of the caller for a line, cut at a bound. The subscriber quotes and escapes a string, unlike one that is
/// recorded with `%`.
pub(super) fn cut(value: &str) -> Cow<'_, str> {
    let end = value.char_indices().nth(VALUE_LENGTH_MAX);
    match end.and_then(|(end, _)| value.get(..end)) {
        Some(prefix) => Cow::Owned(format!("{prefix}…")),
        None => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_keeps_longest_name_and_whole_characters() {
        let name = "ä".repeat(VALUE_LENGTH_MAX);
        assert_eq!(cut(&name), name.as_str());
        assert_eq!(cut(&format!("{name}ä")), format!("{name}…"));
    }

    #[tokio::test(start_paused = true)]
    async fn event_is_counted_without_line() {
        let event = ThrottledEvent::new(LogThrottle::new(Duration::from_secs(1)));
        let lines: Vec<_> = (0..3).map(|_| event.record()).collect();
        assert_eq!(lines, [Some(1), None, None]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(event.record(), Some(4));
    }
}

//! Limits the log lines about rejected clients: any process that can reach the port can cause one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines with the same reason.
const INTERVAL: Duration = Duration::from_secs(1);

/// When each reason was logged last. A reason is a fixed text, so there are only a few.
#[derive(Debug, Default)]
pub(super) struct RejectionLog(Mutex<BTreeMap<&'static str, Instant>>);

impl RejectionLog {
    /// Returns true if a line with this reason is due, and remembers that it is written.
    pub(super) fn is_due(&self, reason: &'static str, now: Instant) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = logged.get(reason);
        let is_due = last.is_none_or(|last| now.saturating_duration_since(*last) >= INTERVAL);
        if is_due {
            logged.insert(reason, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejection_log_allows_one_line_per_reason_and_interval() {
        let log = RejectionLog::default();
        let begun = Instant::now();
        let flood = |reason, at| (0..1_000).filter(|_| log.is_due(reason, at)).count();
        assert_eq!(flood("no certificate", begun), 1);
        // A flood with one reason hides no other.
        assert_eq!(flood("expired", begun), 1);
        assert_eq!(flood("expired", begun + INTERVAL / 2), 0);
        assert_eq!(flood("expired", begun + INTERVAL), 1);
        assert_eq!(flood("expired", begun), 0);
        assert_eq!(flood("no certificate", begun + INTERVAL * 2), 1);
    }
}

//! The clock of observe mode.

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time, in milliseconds since 1970.
pub(super) fn unix_time_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

//! Waits for a condition, never for a fixed time.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of one condition. It is far above the usual time, because a busy machine is slow and a missed deadline
/// says nothing about the code.
const TIMEOUT_S: u64 = 120;

/// Overrides the timeout in seconds, for developing a trial.
const TIMEOUT: &str = "LOCKKEEPER_PATIENCE_SECONDS";

const POLL_INTERVAL_MS: u64 = 50;

/// Polls `condition` until it returns a value. It stops early if `condition` returns an error, and returns `late()`
/// after the timeout.
pub fn until<T>(
    mut condition: impl FnMut() -> Result<Option<T>, String>,
    late: impl FnOnce() -> String,
) -> Result<T, String> {
    let patience_s = env::var(TIMEOUT).map_or(TIMEOUT_S, |it| it.parse().unwrap());
    let deadline = Instant::now() + Duration::from_secs(patience_s);
    loop {
        if let Some(value) = condition()? {
            return Ok(value);
        }
        if Instant::now() > deadline {
            return Err(late());
        }
        thread::sleep(Duration::from_millis(POLL_INTERVAL_MS));
    }
}

//! Waiting for a condition, never for an amount of time.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

/// How long any one condition may take. Far above what is usual, because a
/// busy machine is slow and a missed deadline tells nothing about the code.
const TIMEOUT_S: u64 = 120;

/// Another patience, in seconds, for whoever writes a trial.
const TIMEOUT: &str = "LOCKKEEPER_PATIENCE_SECONDS";

const POLL_INTERVAL_MS: u64 = 50;

/// Asks `condition` until it gives a value. It stops early when `condition`
/// gives an error, and gives `late()` when the patience is over.
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

//! Runs the evaluation of a large body on a separate thread.

use super::handler_state::HandlerState;
use crate::trace::{ReviewStep, ReviewTrace};
use std::panic::resume_unwind;
use tokio::time::{Instant, timeout_at};

/// Runs `work` on a body of this size: inline for a small one, on a blocking thread for a large one. `None`
/// if it did not finish before the deadline; a thread that has started still runs to its end.
pub(super) async fn run_inline_or_blocking<T: Send + 'static>(
    server: &HandlerState,
    trace: &ReviewTrace,
    bytes: usize,
    deadline: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if bytes < server.load.limits().large_body_min_bytes {
        return Some(work());
    }
    let waiting = trace.begin(ReviewStep::Wait);
    let permit = server.load.acquire_large(deadline).await?;
    waiting.end();
    // A large object would delay all connections of the runtime's thread.
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        // Released here, not with the request: the thread continues when the client disconnects.
        drop(permit);
        done
    });
    match timeout_at(deadline, done).await.ok()? {
        Ok(done) => Some(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Only a shutdown of the runtime cancels a thread that has not started.
            Err(_) => None,
        },
    }
}

//! Where the work on a body is done.

use super::handler_state::HandlerState;
use crate::trace::{ReviewStep, ReviewTrace};
use std::panic::resume_unwind;
use tokio::time::{Instant, timeout_at};

/// Does the work on a body of so many bytes. That on a large one is done on a thread of its own: the threads that serve
/// the connections must not be held up by it. `None` when that was not done in time; a thread that has begun goes on to
/// its end.
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
    let place = server.load.acquire_large(deadline).await?;
    waiting.end();
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        // Here, not with the request: a client that leaves does not end this thread.
        drop(place);
        done
    });
    match timeout_at(deadline, done).await.ok()? {
        Ok(done) => Some(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Only the end of the runtime stops a thread that has not begun.
            Err(_) => None,
        },
    }
}

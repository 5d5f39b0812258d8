//! A review that has been read from the connection.

use super::review_log::ReviewLog;
use crate::app_state::AppState;
use crate::caller_tokens::Caller;
use crate::load_shedding::BufferedBody;
use crate::request_observer::RequestObserver;
use crate::trace::ReviewTrace;
use std::sync::Arc;
use tokio::time::Instant;

/// A review that has been read. It owns its bytes, so that any thread can evaluate it.
pub(super) struct ReceivedReview {
    pub(super) app: Arc<AppState>,
    /// The caller, if a token is required.
    pub(super) caller: Option<Caller>,
    pub(super) observer: RequestObserver,
    pub(super) trace: ReviewTrace,
    pub(super) log: Arc<ReviewLog>,
    pub(super) body: BufferedBody,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
}

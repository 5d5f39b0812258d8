//! The state shared by all handlers.

use super::review_log::ReviewLog;
use crate::app_state::AppState;
use crate::load_shedding::LoadShedder;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Version};
use axum::response::Response;
use lockkeeper_kube_support::health::Health;
use std::sync::Arc;

/// The state shared by the handlers of reviews.
#[derive(Clone)]
pub(super) struct HandlerState {
    pub(super) app: Arc<AppState>,
    pub(super) load: Arc<LoadShedder>,
    pub(super) health: Arc<Health>,
    pub(super) log: Arc<ReviewLog>,
}

/// The state of the probes.
#[derive(Clone)]
pub(super) struct ProbeState {
    pub(super) app: Arc<AppState>,
    pub(super) health: Arc<Health>,
}

impl HandlerState {
    pub(super) fn new(app: Arc<AppState>, load: Arc<LoadShedder>, health: Arc<Health>) -> Self {
        let log = Arc::new(ReviewLog::new(load.limits().log_interval));
        Self {
            app,
            load,
            health,
            log,
        }
    }

    /// Adds `Connection: close` to an HTTP/1.1 response while the server shuts down.
    pub(super) fn close_if_stopping(&self, version: Version, mut response: Response) -> Response {
        // Closing an idle connection may lose a request in transit, which no client retries; after
        // a response there is none. HTTP/2 has GOAWAY for this.
        if version < Version::HTTP_2 && self.health.is_stopping() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }
}

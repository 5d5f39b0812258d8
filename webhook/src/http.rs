//! HTTP paths and limits, and requests that are rejected before they are decoded as reviews.

mod body;
mod convert;
mod error;
mod handler_state;
mod offload;
mod received;
mod review;

use crate::app_state::AppState;
use crate::deadline;
use crate::load_shedding::LoadShedder;
use crate::metric_labels::ReviewPath;
use crate::request_observer::RequestObserver;
use crate::trace::{ReviewSpan, ReviewStep};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use error::HttpError;
use handler_state::HandlerState;
use lockkeeper_kube_support::health::Health;
use received::ReceivedReview;
use review::{Endpoint, ReviewTask};
use std::sync::Arc;
use tokio::time::Instant;

/// Returns the router with the default limits and a health that never stops.
pub fn router(app: Arc<AppState>) -> Router {
    router_with(app, Arc::default(), Arc::default())
}

/// Returns the router of the server. `/noop` reads a request and returns a constant, to measure the cost
/// of the transport.
///
/// The probes have no concurrency limit: an overloaded server is still alive and ready.
pub fn router_with(app: Arc<AppState>, load: Arc<LoadShedder>, health: Arc<Health>) -> Router {
    Router::new()
        .route("/validate", review_handler(ReviewPath::Validate))
        .route("/mutate", review_handler(ReviewPath::Mutate))
        .route("/convert", review_handler(ReviewPath::Convert))
        .route("/noop", post(noop))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .with_state(HandlerState { app, load, health })
}

async fn readyz(State(server): State<HandlerState>) -> Response {
    let mut reasons = server.health.problems();
    let missing = server.app.readiness.missing();
    if !missing.is_empty() {
        reasons.push(format!("still listing {}", missing.join(", ")));
    }
    if reasons.is_empty() {
        return "ok\n".into_response();
    }
    let text = format!("not ready: {}\n", reasons.join("; "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// Returns the handler of the reviews of a path.
fn review_handler(path: ReviewPath) -> MethodRouter<HandlerState> {
    let handle = async move |State(server): State<HandlerState>,
                             RawQuery(query): RawQuery,
                             version: Version,
                             headers: HeaderMap,
                             body: Body| {
        let response = handle_review(&server, path, query.as_deref(), &headers, body).await;
        server.close_if_stopping(version, response.into_response())
    };
    post(handle)
}

async fn noop(State(server): State<HandlerState>, headers: HeaderMap, body: Body) -> Response {
    let response = async {
        let _permit = server.load.acquire()?;
        let deadline = deadline::from_query(None, Instant::now(), &server.load.limits().reserve);
        body::read(&server, &headers, body, deadline).await?;
        Ok::<_, HttpError>(JsonBody(Bytes::from_static(b"{}")))
    };
    response.await.into_response()
}

/// Handles one review, of any path.
async fn handle_review(
    server: &HandlerState,
    path: ReviewPath,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<JsonBody, HttpError> {
    let started = Instant::now();
    // Before the permit, so that a rejected request is counted too.
    let observer = RequestObserver::new(&server.app, path);
    let root = ReviewSpan::new(&server.app, path, headers);
    let response = async {
        // Before the body is read: rejecting an overload must not need memory.
        let _permit = server.load.acquire()?;
        let deadline = deadline::from_query(query, started, &server.load.limits().reserve);
        let reading = root.trace().begin(ReviewStep::Read);
        let body = body::read(server, headers, body, deadline).await?;
        reading.end();
        observer.record_body(body.bytes().len());
        let received = ReceivedReview {
            trace: root.trace().clone(),
            app: Arc::clone(&server.app),
            observer,
            body,
            started,
            deadline,
        };
        let response = match path {
            ReviewPath::Validate => {
                ReviewTask::new(received, Endpoint::Validate)
                    .run(server)
                    .await
            }
            ReviewPath::Mutate => {
                ReviewTask::new(received, Endpoint::Mutate)
                    .run(server)
                    .await
            }
            ReviewPath::Convert => convert::run(received, server).await,
        };
        response.map(JsonBody)
    };
    let response = response.await;
    if let Err(error) = &response {
        root.trace().record_http_error(error.code());
        if matches!(error, HttpError::Overloaded(_)) {
            server.app.metrics.count_shed();
        }
    }
    response
}

/// A response body that is encoded JSON.
struct JsonBody(Bytes);

impl IntoResponse for JsonBody {
    fn into_response(self) -> Response {
        let kind = HeaderValue::from_static("application/json");
        ([(CONTENT_TYPE, kind)], self.0).into_response()
    }
}

//! HTTP paths and limits, and requests that are rejected before they are decoded as reviews.

mod body;
mod convert;
mod error;
mod handler_state;
mod offload;
mod received;
mod review;
mod review_log;

use crate::app_state::AppState;
use crate::caller_tokens::{Caller, CallerTokens, TokenError};
use crate::deadline;
use crate::load_shedding::LoadShedder;
use crate::metric_labels::ReviewPath;
use crate::request_observer::RequestObserver;
use crate::trace::{ReviewSpan, ReviewStep};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use body::RequestBody;
use error::HttpError;
use handler_state::{HandlerState, ProbeState};
use lockkeeper_kube_support::health::Health;
use received::ReceivedReview;
use review::{Endpoint, ReviewTask};
use std::sync::Arc;
use tokio::time::Instant;

/// Returns the router with the default limits and a health that never stops.
pub fn router(app: Arc<AppState>) -> Router {
    router_with(app, Arc::default(), Arc::default())
}

/// Returns the router of the server.
///
/// The probes have no concurrency limit: an overloaded server is still alive and ready.
pub fn router_with(app: Arc<AppState>, load: Arc<LoadShedder>, health: Arc<Health>) -> Router {
    Router::new()
        .route("/validate", review_handler(ReviewPath::Validate))
        .route("/mutate", review_handler(ReviewPath::Mutate))
        .route("/convert", review_handler(ReviewPath::Convert))
        .with_state(HandlerState::new(
            Arc::clone(&app),
            load,
            Arc::clone(&health),
        ))
        .merge(probe_router(app, health))
}

/// Returns the router of the probes alone.
pub fn probe_router(app: Arc<AppState>, health: Arc<Health>) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .with_state(ProbeState { app, health })
}

/// Returns the router of `/noop`, which reads a request and returns a constant, to measure the cost of the
/// transport.
pub fn noop_router(app: Arc<AppState>, load: Arc<LoadShedder>, health: Arc<Health>) -> Router {
    Router::new()
        .route("/noop", post(noop))
        .with_state(HandlerState::new(app, load, health))
}

async fn readyz(State(server): State<ProbeState>) -> Response {
    let mut reasons = server.health.problems();
    reasons.extend(server.app.readiness.problem());
    let tokens = server.app.caller_tokens.as_deref();
    reasons.extend(tokens.and_then(CallerTokens::problem));
    if reasons.is_empty() {
        return "ok\n".into_response();
    }
    let text = format!("not ready: {}\n", reasons.join("; "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// Returns the handler of the reviews of a path.
fn review_handler(path: ReviewPath) -> MethodRouter<HandlerState> {
    let handle = async move |State(server): State<HandlerState>, request: Request| {
        let (head, body) = request.into_parts();
        let request = RequestBody::new(&head, body);
        let response = handle_review(&server, path, head.uri.query(), request).await;
        server.close_if_stopping(head.version, response.into_response())
    };
    post(handle)
}

async fn noop(State(server): State<HandlerState>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let request = RequestBody::new(&head, body);
    let response = async {
        let _permit = server.load.acquire(request.peer)?;
        let deadline = deadline::from_query(None, Instant::now(), &server.load.limits().reserve);
        body::read(&server, request, deadline).await?;
        Ok::<_, HttpError>(JsonBody(Bytes::from_static(b"{}")))
    };
    response.await.into_response()
}

/// Handles one review, of any path.
async fn handle_review(
    server: &HandlerState,
    path: ReviewPath,
    query: Option<&str>,
    request: RequestBody<'_>,
) -> Result<JsonBody, HttpError> {
    let started = Instant::now();
    // Before the permit, so that a rejected request is counted too.
    let observer = RequestObserver::new(&server.app, path);
    let root = ReviewSpan::new(&server.app, path, request.headers);
    let response = async {
        // Before the body is read: rejecting an overload must not need memory.
        let _permit = server.load.acquire(request.peer)?;
        let caller = verify_caller(&server.app, path, &request)?;
        let deadline = deadline::from_query(query, started, &server.load.limits().reserve);
        let reading = root.trace().begin(ReviewStep::Read);
        let body = body::read(server, request, deadline).await?;
        reading.end();
        observer.record_body(body.bytes().len());
        let received = ReceivedReview {
            trace: root.trace().clone(),
            app: Arc::clone(&server.app),
            log: Arc::clone(&server.log),
            caller,
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
            // The load shedder logs overload.
            server.app.metrics.count_shed();
        } else {
            if matches!(error, HttpError::Token(_)) {
                server.app.metrics.count_rejected_token();
            }
            server
                .load
                .log_rejected(error.code().as_u16(), error.cause());
        }
    }
    response
}

/// Verifies the token of an admission review; `None` if none is required.
fn verify_caller(
    app: &AppState,
    path: ReviewPath,
    request: &RequestBody<'_>,
) -> Result<Option<Caller>, TokenError> {
    match &app.caller_tokens {
        Some(tokens) if path != ReviewPath::Convert => {
            tokens.verify(path, request.headers).map(Some)
        }
        _ => Ok(None),
    }
}

/// A response body that is encoded JSON.
struct JsonBody(Bytes);

impl IntoResponse for JsonBody {
    fn into_response(self) -> Response {
        let kind = HeaderValue::from_static("application/json");
        ([(CONTENT_TYPE, kind)], self.0).into_response()
    }
}

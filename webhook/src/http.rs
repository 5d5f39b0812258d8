//! The HTTP side: paths, limits, and what is refused before it is a review.

use crate::admission_review::AdmissionReviewError;
use crate::app_state::AppState;
use crate::conversion_review::ConversionReviewError;
use crate::deadline;
use crate::load_shedding::{BufferedBody, LoadShedder, Overloaded};
use crate::metrics::{RequestObserver, ReviewPath};
use crate::trace::{ReviewSpan, ReviewStep, ReviewTrace};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use lockkeeper_kube_support::health::Health;
use std::sync::Arc;
use tokio::time::Instant;

mod body;
mod convert;
mod offload;
mod review;

use review::{Endpoint, ReviewTask};

/// What all handlers share.
#[derive(Clone)]
struct HandlerState {
    app: Arc<AppState>,
    load: Arc<LoadShedder>,
    health: Arc<Health>,
}

impl HandlerState {
    /// Once the server is about to stop, an answer on HTTP/1.1 is the last one of its connection. One
    /// that is closed while it rests may have a request on its way, which nobody sends again; after
    /// an answer there is none. HTTP/2 can say by itself what it has not taken.
    fn close_if_stopping(&self, version: Version, mut answer: Response) -> Response {
        if version < Version::HTTP_2 && self.health.is_stopping() {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        answer
    }
}

/// The paths of a server with the usual limits that nobody tells to stop.
pub fn router(app: Arc<AppState>) -> Router {
    router_with(app, Arc::default(), Arc::default())
}

/// The paths of the server. `/noop` reads a request and answers with a constant: what the transport
/// costs by itself, for measurements.
///
/// The probes have no limit: a server that is busy is neither dead nor of no use.
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

/// What answers the reviews of a path.
fn review_handler(path: ReviewPath) -> MethodRouter<HandlerState> {
    let handle = async move |State(server): State<HandlerState>,
                             RawQuery(query): RawQuery,
                             version: Version,
                             headers: HeaderMap,
                             body: Body| {
        let answer = handle_review(&server, path, query.as_deref(), &headers, body);
        server.close_if_stopping(version, answer.await.into_response())
    };
    post(handle)
}

async fn noop(State(server): State<HandlerState>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let _place = server.load.acquire()?;
        let deadline = deadline::from_query(None, Instant::now(), &server.load.limits().reserve);
        body::read(&server, &headers, body, deadline).await?;
        Ok::<_, HttpError>(JsonBody(Bytes::from_static(b"{}")))
    };
    answer.await.into_response()
}

/// A review that has arrived. It owns its bytes, so that work can be done on any thread.
struct ReceivedReview {
    app: Arc<AppState>,
    observer: RequestObserver,
    trace: ReviewTrace,
    body: BufferedBody,
    started: Instant,
    deadline: Instant,
}

/// Answers one review.
async fn handle_review(
    server: &HandlerState,
    path: ReviewPath,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<JsonBody, HttpError> {
    let started = Instant::now();
    let observed = RequestObserver::new(&server.app, path);
    let root = ReviewSpan::new(&server.app, path, headers);
    let answer = async {
        let _place = server.load.acquire()?;
        let deadline = deadline::from_query(query, started, &server.load.limits().reserve);
        let reading = root.trace().begin(ReviewStep::Read);
        let body = body::read(server, headers, body, deadline).await?;
        reading.end();
        observed.record_body(body.bytes().len());
        let received = ReceivedReview {
            trace: root.trace().clone(),
            app: Arc::clone(&server.app),
            observer: observed,
            body,
            started,
            deadline,
        };
        let answer = match path {
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
        answer.map(JsonBody)
    };
    let answer = answer.await;
    if let Err(refused) = &answer {
        root.trace().record_http_error(refused.code());
        if matches!(refused, HttpError::Overloaded(_)) {
            server.app.metrics.count_shed();
        }
    }
    answer
}

/// Why a request is answered with an HTTP error instead of a review.
#[derive(Debug, thiserror::Error)]
enum HttpError {
    /// Too much is in work already.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// Not JSON by its header.
    #[error("the content type is {0:?}; send application/json")]
    ContentType(String),
    /// More bytes than the limit.
    #[error("the body is larger than the limit of {0} bytes")]
    TooLarge(usize),
    /// The client sends too slowly, or stopped.
    #[error("the body did not arrive in time")]
    BodyTimeout,
    /// The connection broke.
    #[error("the body could not be read: {0}")]
    ConnectionBroken(String),
    /// There is no request to answer.
    #[error(transparent)]
    AdmissionReview(#[from] AdmissionReviewError),
    /// There are no objects to convert.
    #[error(transparent)]
    ConversionReview(#[from] ConversionReviewError),
    /// The answer has no JSON form.
    #[error("the answer could not be written: {0}")]
    Encoding(serde_json::Error),
}

impl HttpError {
    fn code(&self) -> StatusCode {
        match self {
            Self::Overloaded(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::ConnectionBroken(_) | Self::AdmissionReview(_) | Self::ConversionReview(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::Encoding(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let (code, text) = (self.code(), format!("{self}\n"));
        if let Self::Overloaded(full) = &self {
            // Logged once a second where it is counted: there may be many.
            let headers = [(RETRY_AFTER, HeaderValue::from(full.retry_after_seconds))];
            return (code, headers, text).into_response();
        }
        tracing::info!(code = code.as_u16(), reason = %self, "refused a request");
        (code, text).into_response()
    }
}

/// A body that is JSON already.
struct JsonBody(Bytes);

impl IntoResponse for JsonBody {
    fn into_response(self) -> Response {
        let kind = HeaderValue::from_static("application/json");
        ([(CONTENT_TYPE, kind)], self.0).into_response()
    }
}

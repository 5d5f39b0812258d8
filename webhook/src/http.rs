//! The HTTP side: paths, limits, and what is logged.

use crate::answer::Answer;
use crate::app::App;
use crate::deadline;
use crate::envelope::{self, EnvelopeError, Request, Review};
use crate::route::Route;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use lockkeeper_api::GROUP;
use std::sync::Arc;
use std::time::Instant;

/// Which of the two questions a path asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Validate,
    Mutate,
}

/// The paths of the server. `/noop` reads a request and answers with a constant: what the transport
/// costs by itself, for measurements.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/validate", post(validate))
        .route("/mutate", post(mutate))
        .route("/noop", post(noop))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .with_state(app)
}

async fn readyz(State(app): State<Arc<App>>) -> Response {
    let missing = app.readiness.missing();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let text = format!("not ready: still listing {}\n", missing.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn validate(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    answer(&app, Question::Validate, query.as_deref(), &headers, body).await
}

async fn mutate(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    answer(&app, Question::Mutate, query.as_deref(), &headers, body).await
}

async fn noop(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Response {
    let deadline = deadline::of(None, Instant::now());
    match read(&app, &headers, body, deadline).await {
        Ok(_) => json(Bytes::from_static(b"{}")),
        Err(refused) => refused.into_response(),
    }
}

/// Answers one review.
async fn answer(
    app: &App,
    question: Question,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Response {
    let started = Instant::now();
    let deadline = deadline::of(query, started);
    let body = match read(app, headers, body, deadline).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    let (review, request) = match envelope::decode(&body) {
        Ok(decoded) => decoded,
        Err(error) => return Refused::Envelope(error).into_response(),
    };
    let answer = judge(app, question, &review, &request, deadline).await;
    log(question, &request, &answer, started);
    match answer.encode() {
        Ok(bytes) => json(bytes.into()),
        Err(error) => Refused::Encoding(error).into_response(),
    }
}

async fn judge(
    app: &App,
    question: Question,
    review: &Review<'_>,
    request: &Request<'_>,
    deadline: Instant,
) -> Answer {
    let version = review.api_version.as_deref().unwrap_or_default();
    if version != envelope::API_VERSION {
        let spoken = envelope::API_VERSION;
        let message = format!("apiVersion {version:?} is not spoken here; send {spoken}");
        return Answer::bad_request(&request.uid, message);
    }
    let has_subresource = request
        .sub_resource
        .as_ref()
        .is_some_and(|name| !name.is_empty());
    let Some(operation) = request.operation().filter(|_| !has_subresource) else {
        // Rules are about whole objects that are made, changed or deleted.
        return Answer::allow(&request.uid);
    };
    match (Route::find(request), question) {
        (Some(route), Question::Validate) => {
            (route.validate)(app, request, operation, deadline).await
        }
        (Some(route), Question::Mutate) => (route.mutate)(app, request, operation, deadline).await,
        (None, _) => unknown_kind(request),
    }
}

/// A kind that no rule is about. One of another group passes: somebody registered more than needed.
/// One of our own group is of a version or kind that this build does not know, and must not pass
/// unguarded.
fn unknown_kind(request: &Request<'_>) -> Answer {
    let kind = &request.kind;
    let what = format!("{}/{} {}", kind.group, kind.version, kind.name);
    if kind.group == GROUP {
        let message = format!("{what} is not known to this version of lockkeeper; upgrade it");
        return Answer::bad_request(&request.uid, message);
    }
    let mut answer = Answer::allow(&request.uid);
    answer.warn(format!(
        "lockkeeper has no rule for {what}; do not register it"
    ));
    answer
}

/// Why a request is answered with an HTTP error instead of a review.
#[derive(Debug, thiserror::Error)]
enum Refused {
    /// Not JSON by its header.
    #[error("the content type is {0:?}; send application/json")]
    ContentType(String),
    /// More bytes than the limit.
    #[error("the body is larger than the limit of {0} bytes")]
    TooLarge(usize),
    /// The client stopped sending.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke.
    #[error("the body could not be read: {0}")]
    Broken(String),
    /// There is no request to answer.
    #[error(transparent)]
    Envelope(EnvelopeError),
    /// The answer has no JSON form.
    #[error("the answer could not be written: {0}")]
    Encoding(serde_json::Error),
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let code = match self {
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) | Self::Envelope(_) => StatusCode::BAD_REQUEST,
            Self::Encoding(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        tracing::info!(code = code.as_u16(), reason = %self, "refused a request");
        (code, format!("{self}\n")).into_response()
    }
}

/// Reads the body, at most to the limit and the deadline.
async fn read(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    deadline: Instant,
) -> Result<Bytes, Refused> {
    content_type(headers)?;
    let limit = app.body_limit_bytes;
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: usize| length > limit) {
        return Err(Refused::TooLarge(limit));
    }
    let collected = Limited::new(body, limit).collect();
    match tokio::time::timeout_at(deadline.into(), collected).await {
        Err(_) => Err(Refused::TooSlow),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refused::TooLarge(limit)),
        Ok(Err(error)) => Err(Refused::Broken(error.to_string())),
    }
}

fn content_type(headers: &HeaderMap) -> Result<(), Refused> {
    let value = headers
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    if essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
    {
        return Ok(());
    }
    Err(Refused::ContentType(
        String::from_utf8_lossy(value).into_owned(),
    ))
}

fn json(body: Bytes) -> Response {
    (
        [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        body,
    )
        .into_response()
}

/// Names what was judged, never what it holds.
fn log(question: Question, request: &Request<'_>, answer: &Answer, started: Instant) {
    let duration_ms = started.elapsed().as_secs_f64() * 1e3;
    macro_rules! event {
        ($level:ident, $text:literal) => {
            tracing::$level!(
                uid = %request.uid,
                kind = %request.kind.name,
                namespace = %request.namespace,
                name = %request.name,
                operation = %request.operation,
                question = ?question,
                rules = answer.denied_by(),
                duration_ms,
                $text
            )
        };
    }
    if answer.allowed() {
        event!(debug, "allowed");
    } else {
        event!(info, "denied");
    }
}

//! The HTTP side: paths, limits, and what is refused before it is a review.

use crate::app::App;
use crate::conversion::ReviewError;
use crate::deadline;
use crate::envelope::EnvelopeError;
use crate::limits::{Full, Held, Load};
use crate::metrics::{Observed, Path};
use crate::readiness::Health;
use crate::trace::{Root, Step, Trace};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use std::sync::Arc;
use tokio::time::Instant;

mod body;
mod converting;
mod turn;
mod work;

use work::{Question, Work};

/// What all handlers share.
#[derive(Clone)]
struct Server {
    app: Arc<App>,
    load: Arc<Load>,
    health: Arc<Health>,
}

impl Server {
    /// Once the server is about to stop, an answer on HTTP/1.1 is the last one of its connection. One
    /// that is closed while it rests may have a request on its way, which nobody sends again; after
    /// an answer there is none. HTTP/2 can say by itself what it has not taken.
    fn part(&self, version: Version, mut answer: Response) -> Response {
        if version < Version::HTTP_2 && self.health.is_stopping() {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        answer
    }
}

/// The paths of a server with the usual limits that nobody tells to stop.
pub fn router(app: Arc<App>) -> Router {
    router_with(app, Arc::default(), Arc::default())
}

/// The paths of the server. `/noop` reads a request and answers with a constant: what the transport
/// costs by itself, for measurements.
///
/// The probes have no limit: a server that is busy is neither dead nor of no use.
pub fn router_with(app: Arc<App>, load: Arc<Load>, health: Arc<Health>) -> Router {
    Router::new()
        .route("/validate", reviews(Path::Validate))
        .route("/mutate", reviews(Path::Mutate))
        .route("/convert", reviews(Path::Convert))
        .route("/noop", post(noop))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .with_state(Server { app, load, health })
}

async fn readyz(State(server): State<Server>) -> Response {
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
fn reviews(path: Path) -> MethodRouter<Server> {
    let handle = async move |State(server): State<Server>,
                             RawQuery(query): RawQuery,
                             version: Version,
                             headers: HeaderMap,
                             body: Body| {
        let answer = answer(&server, path, query.as_deref(), &headers, body);
        server.part(version, answer.await.into_response())
    };
    post(handle)
}

async fn noop(State(server): State<Server>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let _place = server.load.enter()?;
        let deadline = deadline::of(None, Instant::now(), &server.load.bounds().reserve);
        body::read(&server, &headers, body, deadline).await?;
        Ok::<_, Refused>(Json(Bytes::from_static(b"{}")))
    };
    answer.await.into_response()
}

/// A review that has arrived. It owns its bytes, so that work can be done on any thread.
struct Received {
    app: Arc<App>,
    observed: Observed,
    trace: Trace,
    body: Held,
    started: Instant,
    deadline: Instant,
}

/// Answers one review.
async fn answer(
    server: &Server,
    path: Path,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Json, Refused> {
    let started = Instant::now();
    let observed = Observed::new(&server.app, path);
    let root = Root::new(&server.app, path, headers);
    let answer = async {
        let _place = server.load.enter()?;
        let deadline = deadline::of(query, started, &server.load.bounds().reserve);
        let reading = root.trace().begin(Step::Read);
        let body = body::read(server, headers, body, deadline).await?;
        reading.end();
        observed.body(body.bytes().len());
        let received = Received {
            trace: root.trace().clone(),
            app: Arc::clone(&server.app),
            observed,
            body,
            started,
            deadline,
        };
        let answer = match path {
            Path::Validate => Work::new(received, Question::Validate).run(server).await,
            Path::Mutate => Work::new(received, Question::Mutate).run(server).await,
            Path::Convert => converting::run(received, server).await,
        };
        answer.map(Json)
    };
    let answer = answer.await;
    if let Err(refused) = &answer {
        root.trace().refused(refused.code());
        if matches!(refused, Refused::Full(_)) {
            server.app.metrics.shed();
        }
    }
    answer
}

/// Why a request is answered with an HTTP error instead of a review.
#[derive(Debug, thiserror::Error)]
enum Refused {
    /// Too much is in work already.
    #[error(transparent)]
    Full(#[from] Full),
    /// Not JSON by its header.
    #[error("the content type is {0:?}; send application/json")]
    ContentType(String),
    /// More bytes than the limit.
    #[error("the body is larger than the limit of {0} bytes")]
    TooLarge(usize),
    /// The client sends too slowly, or stopped.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke.
    #[error("the body could not be read: {0}")]
    Broken(String),
    /// There is no request to answer.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// There are no objects to convert.
    #[error(transparent)]
    Conversion(#[from] ReviewError),
    /// The answer has no JSON form.
    #[error("the answer could not be written: {0}")]
    Encoding(serde_json::Error),
}

impl Refused {
    fn code(&self) -> StatusCode {
        match self {
            Self::Full(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) | Self::Envelope(_) | Self::Conversion(_) => StatusCode::BAD_REQUEST,
            Self::Encoding(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (code, text) = (self.code(), format!("{self}\n"));
        if let Self::Full(full) = &self {
            // Logged once a second where it is counted: there may be many.
            let headers = [(RETRY_AFTER, HeaderValue::from(full.retry_after_seconds))];
            return (code, headers, text).into_response();
        }
        tracing::info!(code = code.as_u16(), reason = %self, "refused a request");
        (code, text).into_response()
    }
}

/// A body that is JSON already.
struct Json(Bytes);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        let kind = HeaderValue::from_static("application/json");
        ([(CONTENT_TYPE, kind)], self.0).into_response()
    }
}

//! The port that scrapers ask: plain HTTP, apart from the reviews.
//!
//! It shares the process with what is in the path of writes, so a bad client of it must not cost
//! anything that counts: few connections, one request each, and an end to all of them.

use super::text_format::TextFormat;
use crate::app_state::AppState;
use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lockkeeper_api::config::MetricsLimits;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// What scrapers may take of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsServerLimits {
    /// Connections open at once; the next ones wait in the kernel's queue.
    pub connections_max: usize,
    /// Longest for the head of the request to arrive.
    pub header_timeout: Duration,
    /// Longest for a connection in all.
    pub connection_timeout: Duration,
}

impl From<&MetricsLimits> for MetricsServerLimits {
    fn from(settings: &MetricsLimits) -> Self {
        Self {
            connections_max: settings.connections_max.count(),
            header_timeout: settings.head_timeout_seconds.seconds(),
            connection_timeout: settings.connection_timeout_seconds.seconds(),
        }
    }
}

impl Default for MetricsServerLimits {
    fn default() -> Self {
        Self::from(&MetricsLimits::default())
    }
}

/// Wait after a failed accept, in milliseconds.
const ACCEPT_BACKOFF_MS: u64 = 100;

/// The paths of the port.
pub(super) fn router(app: Arc<AppState>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .with_state(app)
}

async fn metrics(State(app): State<Arc<AppState>>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = TextFormat::from_accept(accept.unwrap_or_default());
    let text = match format {
        TextFormat::OpenMetrics => app.metrics().openmetrics(),
        TextFormat::Prometheus => app.metrics().prometheus(),
    };
    let content_type = HeaderValue::from_static(format.content_type());
    ([(CONTENT_TYPE, content_type)], text).into_response()
}

/// Answers scrapes on `tcp`. It goes on until it is dropped.
pub async fn serve(tcp: TcpListener, app: Arc<AppState>, limits: MetricsServerLimits) {
    serve_router(tcp, router(app), limits).await;
}

/// Answers on `tcp` what `router` has, within the same limits. It goes on until it is dropped.
pub async fn serve_router(tcp: TcpListener, router: Router, limits: MetricsServerLimits) {
    let connections_max = limits.connections_max.min(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match tcp.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    serve_connection(stream, router, limits).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics; trying again");
                tokio::time::sleep(Duration::from_millis(ACCEPT_BACKOFF_MS)).await;
            }
        }
    }
}

/// Answers one request and closes.
async fn serve_connection(stream: TcpStream, router: Router, limits: MetricsServerLimits) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .keep_alive(false);
    let service = TowerToHyperService::new(router);
    let served = http.serve_connection(TokioIo::new(stream), service);
    match timeout(limits.connection_timeout, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection for metrics failed"),
        Err(_) => tracing::debug!("a connection for metrics was not finished in time"),
    }
}

//! The port that scrapers ask: plain HTTP, apart from the reviews.
//!
//! It shares the process with what is in the path of writes, so a bad client of it must not cost
//! anything that counts: few connections, one request each, and an end to all of them.

use super::text::Format;
use crate::app::App;
use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Connections open at once; the next ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 16;

/// Longest for the head of the request to arrive, in seconds.
const HEADER_TIMEOUT_S: u64 = 5;

/// Longest for a connection in all, in seconds: Prometheus gives up after ten by default.
const CONNECTION_TIMEOUT_S: u64 = 10;

/// Wait after a failed accept, in milliseconds.
const ACCEPT_BACKOFF_MS: u64 = 100;

/// The paths of the port.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok\n"))
        .with_state(app)
}

async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    let text = match format {
        Format::OpenMetrics => app.metrics().openmetrics(),
        Format::Prometheus => app.metrics().prometheus(),
    };
    let content_type = HeaderValue::from_static(format.content_type());
    ([(CONTENT_TYPE, content_type)], text).into_response()
}

/// Answers scrapes on `tcp`. It goes on until it is dropped.
pub async fn serve(tcp: TcpListener, app: Arc<App>) {
    let router = router(app);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match tcp.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    connection(stream, router).await;
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
async fn connection(stream: TcpStream, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEADER_TIMEOUT_S))
        .keep_alive(false);
    let service = TowerToHyperService::new(router);
    let served = http.serve_connection(TokioIo::new(stream), service);
    match timeout(Duration::from_secs(CONNECTION_TIMEOUT_S), served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection for metrics failed"),
        Err(_) => tracing::debug!("a connection for metrics was not finished in time"),
    }
}

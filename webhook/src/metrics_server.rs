//! The routes of the metrics port.

use crate::app_state::AppState;
use crate::metrics::TextFormat;
use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lockkeeper_kube_support::probe_server::{ProbeServerLimits, serve_router};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Returns the routes of the port.
fn router(app: Arc<AppState>) -> Router {
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

/// Serves scrapes on `tcp`. Runs until it is dropped.
pub async fn serve(tcp: TcpListener, app: Arc<AppState>, limits: ProbeServerLimits) {
    serve_router(tcp, router(app), limits).await;
}

//! The port of observe mode: probes, metrics, and `/observed`.

use super::event_loop::SharedState;
use super::metrics::metrics_text;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lockkeeper_kube_support::api_client::WatchAges;
use lockkeeper_observe::write_report;
use std::sync::Arc;

/// The content type of the metrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone)]
struct Served {
    shared: Arc<SharedState>,
    ages: WatchAges,
}

/// The routes.
pub(super) fn router(shared: Arc<SharedState>, ages: WatchAges) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/observed", get(observed))
        .with_state(Served { shared, ages })
}

async fn livez(State(served): State<Served>) -> Response {
    probe(served.shared.is_alive(), "stuck")
}

async fn readyz(State(served): State<Served>) -> Response {
    probe(served.shared.is_ready(), "initial lists are not complete")
}

fn probe(is_ok: bool, reason: &'static str) -> Response {
    if is_ok {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response()
    }
}

async fn metrics(State(served): State<Served>) -> Response {
    match metrics_text(served.shared.report(), &served.ages) {
        Some(text) => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The report as JSON, or as text for clients that accept text and no JSON.
async fn observed(State(served): State<Served>, headers: HeaderMap) -> Response {
    let report = served.shared.report();
    let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok());
    if accept.is_some_and(|it| it.contains("text/plain")) {
        let mut text = String::new();
        return match write_report(&report, &mut text) {
            Ok(()) => text.into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
    }
    match serde_json::to_string_pretty(&report) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], format!("{text}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

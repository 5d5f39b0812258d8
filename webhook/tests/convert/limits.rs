//! The limits that apply to conversions as to other reviews.

use axum::http::StatusCode;
use lockkeeper_webhook::load_shedding::LoadLimits;
use serde_json::json;

use crate::{
    BODY_LIMIT_BYTES, Server, api_version, assert_failed, offline, older, reservation, review,
};

/// The smallest large body, in bytes.
const LARGE_BODY_MIN_BYTES: usize = 16 * 1024;

fn server_with_large_max(heavy_max: usize) -> Server {
    let bounds = LoadLimits {
        large_body_min_bytes: LARGE_BODY_MIN_BYTES,
        heavy_max,
        ..LoadLimits::default()
    };
    Server::with_app(offline().with_converters(reservation::converters()), bounds)
}

/// Returns a large review.
fn large_review() -> serde_json::Value {
    let all: Vec<_> = (0..200).map(|it| older(&format!("r{it}"))).collect();
    let review = review(&api_version("v1beta1"), &json!(all));
    assert!(review.to_string().len() > LARGE_BODY_MIN_BYTES);
    review
}

#[tokio::test]
async fn large_conversion_runs_on_blocking_thread() {
    let server = server_with_large_max(1);
    let answer = server.review(&large_review()).await;
    assert_eq!(answer["convertedObjects"].as_array().unwrap().len(), 200);
    server.assert_metric(r#"lockkeeper_webhook_conversions_total{result="converted"} 1"#);
}

#[tokio::test(start_paused = true)]
async fn queued_conversion_is_answered_before_timeout() {
    let server = server_with_large_max(0);
    let body = large_review().to_string().into_bytes();
    let (status, body) = server.post("/convert?timeout=1s", body).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["uid"], "705ab4f5");
    assert_failed(
        &answer["response"],
        "not converted: timed out after 0.5 s, because these objects or others in flight are large; try again, with fewer objects at once",
    );
    server.assert_metric(r#"lockkeeper_webhook_conversions_total{result="error"} 1"#);
}

#[tokio::test]
async fn conversion_over_limits_is_rejected() {
    let server = Server::new();
    let (status, text) = server
        .post("/convert", vec![b' '; BODY_LIMIT_BYTES + 1])
        .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        text,
        format!("the body is larger than the limit of {BODY_LIMIT_BYTES} bytes\n")
    );
    let full = Server::with_app(
        offline().with_converters(reservation::converters()),
        LoadLimits {
            requests_max: 0,
            ..LoadLimits::default()
        },
    );
    let body = review(&api_version("v1"), &json!([]))
        .to_string()
        .into_bytes();
    let (status, text) = full.post("/convert", body).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(text.contains("try again in 1 s"), "{text}");
    full.assert_metric("lockkeeper_webhook_requests_shed_total 1");
    full.assert_metric(r#"lockkeeper_webhook_conversions_total{result="error"} 1"#);
}

//! The limits that hold for conversions as for other reviews.

use axum::http::StatusCode;
use lockkeeper_webhook::limits::Bounds;
use serde_json::json;

use crate::{BODY_LIMIT_BYTES, Server, failed, of, offline, older, reservation, review};

/// Large bodies are those above this.
const LIGHT_BODY_MAX_BYTES: usize = 16 * 1024;

fn bounded(heavy_max: usize) -> Server {
    let bounds = Bounds {
        light_body_max_bytes: LIGHT_BODY_MAX_BYTES,
        heavy_max,
        ..Bounds::default()
    };
    Server::with(offline().converting(reservation::converters()), bounds)
}

/// A review that is large.
fn many() -> serde_json::Value {
    let all: Vec<_> = (0..200).map(|it| older(&format!("r{it}"))).collect();
    let review = review(&of("v1beta1"), &json!(all));
    assert!(review.to_string().len() > LIGHT_BODY_MAX_BYTES);
    review
}

#[tokio::test]
async fn large_ones_are_converted_on_a_thread_of_their_own() {
    let server = bounded(1);
    let answer = server.review(&many()).await;
    assert_eq!(answer["convertedObjects"].as_array().unwrap().len(), 200);
    server.counts(r#"lockkeeper_webhook_conversions_total{result="converted"} 1"#);
}

#[tokio::test(start_paused = true)]
async fn one_that_never_gets_its_turn_is_answered_in_time() {
    let server = bounded(0);
    let body = many().to_string().into_bytes();
    let (status, body) = server.post("/convert?timeout=1s", body).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["uid"], "705ab4f5");
    failed(
        &answer["response"],
        "not converted within 0.5 s, because these objects or others in work are large; try again, with fewer objects at once",
    );
    server.counts(r#"lockkeeper_webhook_conversions_total{result="error"} 1"#);
}

#[tokio::test]
async fn too_much_is_refused() {
    let server = Server::new();
    let (status, told) = server
        .post("/convert", vec![b' '; BODY_LIMIT_BYTES + 1])
        .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        told,
        format!("the body is larger than the limit of {BODY_LIMIT_BYTES} bytes\n")
    );
    let full = Server::with(
        offline().converting(reservation::converters()),
        Bounds {
            requests_max: 0,
            ..Bounds::default()
        },
    );
    let body = review(&of("v1"), &json!([])).to_string().into_bytes();
    let (status, told) = full.post("/convert", body).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(told.contains("try again in 1 s"), "{told}");
    full.counts("lockkeeper_webhook_requests_shed_total 1");
    full.counts(r#"lockkeeper_webhook_conversions_total{result="error"} 1"#);
}

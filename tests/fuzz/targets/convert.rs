//! Every conversion request gets a response: an HTTP error, or a review with the uid and all of the objects or none. An object
//! that is converted and converted back is unchanged, even if its annotations were written by another client.

#[path = "../../samples/reservation.rs"]
mod reservation;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

const BODY_LIMIT_BYTES: usize = 1 << 20;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
});

static ROUTER: LazyLock<axum::Router> = LazyLock::new(|| {
    let app = AppState::offline(Settings::default(), Index::default(), BODY_LIMIT_BYTES);
    router(Arc::new(app.with_converters(reservation::converters())))
});

pub fn run(body: &[u8]) {
    let Some(response) = convert(body.to_vec()) else {
        return;
    };
    let objects = response["convertedObjects"].as_array().expect("objects");
    if response["result"]["status"] != "Success" {
        assert!(objects.is_empty() && response["result"]["message"].is_string());
        return;
    }
    // The webhook may decode input that serde_json does not; no API server sends it.
    let Ok(sent) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let Some(sent) = sent["request"]["objects"].as_array() else {
        return;
    };
    assert_eq!(sent.len(), objects.len());
    for (before, there) in sent.iter().zip(objects) {
        check_round_trip(before, there);
    }
}

/// Checks that an object is unchanged after a round trip, except for its annotations.
fn check_round_trip(before: &Value, there: &Value) {
    let review = json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "request": {"uid": "u", "desiredAPIVersion": before["apiVersion"], "objects": [there]},
    });
    let response = convert(review.to_string().into_bytes()).expect("a review");
    let back = &response["convertedObjects"][0];
    assert!(back.is_object(), "{}", response["result"]);
    assert_eq!(without_annotations(before), without_annotations(back), "converted to {there}");
}

/// Removes the annotations, which a conversion may change.
fn without_annotations(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("annotations");
    }
    object
}

/// The response, unless it is an HTTP error.
fn convert(body: Vec<u8>) -> Option<Value> {
    let request = Request::post("/convert")
        .header("Content-Type", "application/json")
        .body(Body::from(body))
        .expect("a request");
    let (status, body) = RUNTIME.block_on(async {
        let response = ROUTER.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a whole answer");
        (status, body.to_bytes())
    });
    if status != StatusCode::OK {
        assert!(status.is_client_error(), "{status}");
        return None;
    }
    let mut answer: Value = serde_json::from_slice(&body).expect("an answer is JSON");
    assert!(answer["response"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()));
    Some(answer["response"].take())
}

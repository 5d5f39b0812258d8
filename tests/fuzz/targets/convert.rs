//! Whatever is posted to be converted is answered: with an HTTP error, or with a review that carries the uid, and all of the
//! objects or none. What was converted comes back the same, whoever wrote its annotations.
#![no_main]

#[path = "../../samples/reservation.rs"]
mod reservation;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use libfuzzer_sys::fuzz_target;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app::App;
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
    let app = App::offline(Settings::default(), Index::default(), BODY_LIMIT_BYTES);
    router(Arc::new(app.converting(reservation::converters())))
});

fuzz_target!(|body: &[u8]| {
    let Some(response) = convert(body.to_vec()) else {
        return;
    };
    let objects = response["convertedObjects"].as_array().expect("objects");
    if response["result"]["status"] != "Success" {
        assert!(objects.is_empty() && response["result"]["message"].is_string());
        return;
    }
    // What the webhook can read without this, it need not be sent by any API server.
    let Ok(sent) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let Some(sent) = sent["request"]["objects"].as_array() else {
        return;
    };
    assert_eq!(sent.len(), objects.len());
    for (before, there) in sent.iter().zip(objects) {
        comes_back(before, there);
    }
});

/// An object says the same when it is converted back, beside its annotations.
fn comes_back(before: &Value, there: &Value) {
    let review = json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "request": {"uid": "u", "desiredAPIVersion": before["apiVersion"], "objects": [there]},
    });
    let response = convert(review.to_string().into_bytes()).expect("a review");
    let back = &response["convertedObjects"][0];
    assert!(back.is_object(), "{}", response["result"]);
    assert_eq!(said(before), said(back), "by way of {there}");
}

/// An object without what a conversion may change.
fn said(object: &Value) -> Value {
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

//! Whatever is posted is answered: with an HTTP error, or with a review that carries the uid; and a
//! patch is never given to an object that is refused.
#![no_main]

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use libfuzzer_sys::fuzz_target;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app::App;
use lockkeeper_webhook::http::router;
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
});

static ROUTER: LazyLock<axum::Router> = LazyLock::new(|| {
    let app = App::offline(Settings::default(), Index::default(), 1 << 20);
    router(Arc::new(app))
});

/// What of a review is looked at; a `Value` would refuse what the webhook need not decode.
#[derive(Deserialize)]
struct Sent {
    request: SentRequest,
}

#[derive(Deserialize)]
struct SentRequest {
    uid: String,
}

fuzz_target!(|body: &[u8]| {
    for path in ["/validate", "/mutate"] {
        let (status, answer) = RUNTIME.block_on(post(path, body));
        if status != StatusCode::OK {
            assert!(status.is_client_error(), "{status}");
            continue;
        }
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        let sent: Sent = serde_json::from_slice(body).expect("only a review is answered");
        let response = &answer["response"];
        assert_eq!(response["uid"], sent.request.uid);
        let allowed = response["allowed"].as_bool().expect("allowed or not");
        assert!(allowed || response["status"]["message"].is_string());
        assert!(allowed || response["patch"].is_null());
    }
});

async fn post(path: &str, body: &[u8]) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path)
        .header("Content-Type", "application/json")
        .body(Body::from(body.to_vec()))
        .expect("a request");
    let response = ROUTER.clone().oneshot(request).await.expect("an answer");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a whole answer");
    (status, body.to_bytes().to_vec())
}

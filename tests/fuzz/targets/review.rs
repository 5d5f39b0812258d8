//! Every request gets a response: an HTTP error, or a review with the uid. A rejected object never has
//! a patch, and an object with its patch applied needs no further defaults.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use json_patch::Patch;
use lockkeeper_policies::cluster_view::PriorityClassFacts;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router;
use lockkeeper_webhook::live_lookup::ObjectLookup;
use lockkeeper_webhook::stores::StoreReadiness;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock, RwLock};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

const BODY_LIMIT_BYTES: usize = 1 << 20;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
});

static ROUTER: LazyLock<axum::Router> = LazyLock::new(|| {
    let index = Arc::new(RwLock::new(cluster()));
    let (settings, source) = (Settings::default(), Box::new(ApiServer));
    let ready = StoreReadiness::always();
    let app = AppState::connected(settings, index, ready, source, BODY_LIMIT_BYTES);
    router(Arc::new(app))
});

/// The classes that the seeds refer to.
fn cluster() -> Index {
    let mut index = Index::default();
    for kind in [IndexedKind::PriorityClass, IndexedKind::Workload, IndexedKind::Pod] {
        index.mark_complete(kind);
    }
    for (name, value) in [("low", 100), ("standard", 500), ("high", 1000)] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "globalDefault": name == "standard",
        });
        facts::ingest(&mut index, &class).expect("a class");
    }
    index
}

/// An API server that has every class whose name begins with an f, and fails for those with a b.
struct ApiServer;

impl ObjectLookup for ApiServer {
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        let facts = PriorityClassFacts { value: 700, ..PriorityClassFacts::default() };
        let answer = match name.as_bytes().first() {
            Some(b'f') => Ok(Some(facts)),
            Some(b'b') => Err(kube::Error::TlsRequired),
            _ => Ok(None),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// The fields of a review that are checked, in the order of the webhook's own type: a review may also be a
/// list of its values. `Value` would reject input that the webhook does not decode.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    #[serde(default, rename = "apiVersion")]
    _api_version: Option<IgnoredAny>,
    request: SentRequest,
}

#[derive(Deserialize)]
struct SentRequest {
    uid: String,
}

pub fn run(body: &[u8]) {
    for path in ["/validate", "/mutate"] {
        let (status, answer) = RUNTIME.block_on(post(path, body.to_vec()));
        if status != StatusCode::OK {
            assert!(status.is_client_error(), "{status}");
            continue;
        }
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        let response = &answer["response"];
        if let Ok(sent) = serde_json::from_slice::<Sent>(body) {
            assert_eq!(response["uid"], sent.request.uid);
        }
        let allowed = response["allowed"].as_bool().expect("allowed or not");
        assert!(allowed || response["status"]["message"].is_string());
        assert!(allowed || response["patch"].is_null());
        assert!(path == "/mutate" || response["patch"].is_null());
        if let Some(patch) = response["patch"].as_str() {
            check_patch_is_complete(body, patch);
        }
    }
}

/// Checks that an object with the patch applied gets no second patch. A patch that does not apply is
/// ignored: the object has a list where a map is required, and the API server rejects it.
fn check_patch_is_complete(body: &[u8], patch: &str) {
    let patch = BASE64_STANDARD.decode(patch).expect("a patch is base64");
    let patch: Patch = serde_json::from_slice(&patch).expect("a patch is JSON");
    assert!(!patch.is_empty());
    let Ok(mut review) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let Some(object) = review.pointer_mut("/request/object") else {
        return;
    };
    if json_patch::patch(object, &patch).is_err() {
        return;
    }
    let (_, again) = RUNTIME.block_on(post("/mutate", review.to_string().into_bytes()));
    let again: Value = serde_json::from_slice(&again).expect("an answer is JSON");
    assert!(again["response"]["patch"].is_null(), "{patch:?}, and then {again}");
}

async fn post(path: &str, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path)
        .header("Content-Type", "application/json")
        .body(Body::from(body))
        .expect("a request");
    let response = ROUTER.clone().oneshot(request).await.expect("an answer");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a whole answer");
    (status, body.to_bytes().to_vec())
}

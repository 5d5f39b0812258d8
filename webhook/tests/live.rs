//! Objects that the stores miss are looked up once, and a source that does not respond delays no review.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use axum::body::Body;
use axum::http::Request;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use lockkeeper_policies::cluster_view::{ObjectName, PriorityClassFacts};
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router;
use lockkeeper_webhook::live_lookup::ObjectLookup;
use lockkeeper_webhook::stores::StoreReadiness;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::Instant;
use tower::ServiceExt;

/// The timeout in the query of the API server, in seconds.
const TIMEOUT_SECONDS: u64 = 2;

/// An API server that has the classes `low`, `fresh` and `high`. It fails for `broken`, and never
/// responds for `hanging`.
#[derive(Clone, Default)]
struct FakeLookup {
    requested: Arc<Mutex<Vec<String>>>,
}

impl ObjectLookup for FakeLookup {
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        self.requested.lock().unwrap().push(name.to_owned());
        async move {
            let value = match name {
                "low" => -10,
                "fresh" => 0,
                "high" => 10,
                "broken" => return Err(kube::Error::TlsRequired),
                "hanging" => std::future::pending().await,
                _ => return Ok(None),
            };
            Ok(Some(class(value)))
        }
        .boxed()
    }
}

fn class(value: i32) -> PriorityClassFacts {
    PriorityClassFacts {
        value,
        global_default: false,
        preemption_policy: None,
    }
}

/// Returns synced stores with one class.
fn stores() -> Index {
    let mut index = Index::default();
    index.mark_complete(IndexedKind::PriorityClass);
    let name = ObjectName {
        namespace: String::new(),
        name: "stored".to_owned(),
    };
    index.apply(name, Facts::PriorityClass(class(0)));
    index
}

fn workload(classes: [Option<&str>; 2]) -> Value {
    let [scheduling, preemption] = classes;
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": "example", "namespace": "team"},
        "spec": {
            "podSets": [{"template": {}}],
            "priorityClassName": scheduling, "preemptionPriorityClassName": preemption,
        },
    })
}

fn create(classes: [Option<&str>; 2]) -> Value {
    json!({"operation": "CREATE", "object": workload(classes)})
}

/// Sends reviews one after the other to a new server and returns the last response. The paused
/// clock advances to the next timer when all tasks wait.
///
/// Checks that every response arrives before the timeout, and that these names are looked up.
#[track_caller]
fn check(requests: &[Value], questions: &[&str]) -> Value {
    let source = FakeLookup::default();
    let server = router(Arc::new(AppState::connected(
        Settings::default(),
        Arc::new(RwLock::new(stores())),
        StoreReadiness::always(),
        Box::new(source.clone()),
        64 * 1024,
    )));
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let mut last = Value::Null;
    for request in requests {
        let (answer, took) = runtime.block_on(async {
            let started = Instant::now();
            (post(server.clone(), request).await, started.elapsed())
        });
        assert!(took < Duration::from_secs(TIMEOUT_SECONDS), "{took:?}");
        last = answer;
    }
    assert_eq!(*source.requested.lock().unwrap(), questions);
    last
}

async fn post(server: axum::Router, request: &Value) -> Value {
    post_to(server, "/validate", request).await
}

async fn post_to(server: axum::Router, path: &str, request: &Value) -> Value {
    let mut request = request.clone();
    request["uid"] = "u".into();
    request["name"] = "example".into();
    request["kind"] = json!({"group": "lockkeeper.dev", "version": "v1alpha1", "kind": "Workload"});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "request": request});
    let request = Request::post(format!("{path}?timeout={TIMEOUT_SECONDS}s"))
        .header("Content-Type", "application/json")
        .body(Body::from(review.to_string()));
    let response = server.oneshot(request.unwrap()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice::<Value>(&body).unwrap()["response"].clone()
}

#[test]
fn class_missing_in_stores_is_found_with_one_lookup() {
    let answer = check(&[create([Some("fresh"), None])], &["fresh"]);
    assert_eq!(answer, json!({"uid": "u", "allowed": true}));
    // Both fields have the same name, so there is one lookup.
    let answer = check(&[create([Some("fresh"), Some("fresh")])], &["fresh"]);
    assert_eq!(answer, json!({"uid": "u", "allowed": true}));
}

/// Only a list of all classes determines the global default.
#[tokio::test]
async fn unlisted_default_class_warns_and_is_not_set() {
    let note = "not defaulted: the PriorityClass that is the global default is unknown";
    for (index, classes, warned) in [
        (Index::default(), [None, None], true),
        (Index::default(), [Some("high"), None], false),
        (stores(), [None, None], false),
    ] {
        let server = router(Arc::new(AppState::connected(
            Settings::default(),
            Arc::new(RwLock::new(index)),
            StoreReadiness::always(),
            Box::new(FakeLookup::default()),
            64 * 1024,
        )));
        let answer = post_to(server, "/mutate", &create(classes)).await;
        assert_eq!(answer["allowed"], true);
        let expected = if warned { json!([note]) } else { Value::Null };
        assert_eq!(answer["warnings"], expected, "{classes:?}");
    }
}

#[test]
fn class_in_stores_needs_no_lookup() {
    let answer = check(&[create([Some("stored"), None])], &[]);
    assert_eq!(answer, json!({"uid": "u", "allowed": true}));
}

#[test]
fn unknown_class_is_denied_with_one_lookup() {
    let unknown = create([Some("lost"), None]);
    let answer = check(&[unknown.clone(), unknown], &["lost"]);
    assert_eq!(answer["allowed"], false);
    let causes = answer["status"]["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1, "{answer}");
    assert_eq!(causes[0]["field"], "spec.priorityClassName");
    let message = causes[0]["message"].as_str().unwrap();
    assert!(message.contains("[WL004]"), "{message}");
}

#[test]
fn lookup_result_is_used_by_every_rule() {
    let answer = check(&[create([Some("high"), Some("low")])], &["high", "low"]);
    assert_eq!(answer["auditAnnotations"]["denied-by"], "WL001");
    let answer = check(&[create([Some("stored"), Some("low")])], &["low"]);
    assert_eq!(answer["auditAnnotations"]["denied-by"], "WL001");
    let answer = check(&[create([Some("low"), Some("high")])], &["high", "low"]);
    assert_eq!(answer, json!({"uid": "u", "allowed": true}));
}

#[test]
fn failed_lookup_allows_with_warning() {
    for name in ["hanging", "broken"] {
        // The failure is not cached: the next review looks up again.
        let request = create([Some(name), None]);
        let answer = check(&[request.clone(), request], &[name, name]);
        assert_eq!(answer["allowed"], true, "{answer}");
        let warnings = answer["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{answer}");
        let expected = format!("not checked: PriorityClass {name:?}");
        assert!(warnings[0].as_str().unwrap().starts_with(&expected));
    }
}

#[test]
fn failed_lookup_does_not_hide_other_findings() {
    let answer = check(
        &[create([Some("hanging"), Some("lost")])],
        &["hanging", "lost"],
    );
    assert_eq!(answer["auditAnnotations"]["denied-by"], "WL004");
    let field = &answer["status"]["details"]["causes"][0]["field"];
    assert_eq!(field, "spec.preemptionPriorityClassName");
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("not checked: PriorityClass \"hanging\""));
}

#[test]
fn update_with_deleted_class_is_allowed() {
    let old = workload([Some("lost"), None]);
    let mut new = old.clone();
    new["spec"]["active"] = false.into();
    let update = json!({"operation": "UPDATE", "object": new, "oldObject": old});
    let answer = check(&[update], &["lost"]);
    assert_eq!(answer, json!({"uid": "u", "allowed": true}));
}

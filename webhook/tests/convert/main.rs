//! Conversion reviews through the router, without a socket.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

#[path = "../../../tests/samples/reservation.rs"]
mod reservation;

#[path = "../support/log.rs"]
mod log;

mod limits;
mod logs;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use lockkeeper_conversion::PRESERVED_ANNOTATION_PREFIX;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router_with;
use lockkeeper_webhook::load_shedding::{LoadLimits, LoadShedder};
use reservation::{GROUP, KIND};
use serde_json::{Value, json};
use tower::ServiceExt;

/// Small, so that the test of the limit is quick.
const BODY_LIMIT_BYTES: usize = 256 * 1024;

/// A server with its metrics.
struct Server {
    router: Router,
    app: Arc<AppState>,
}

impl Server {
    fn with_app(app: AppState, bounds: LoadLimits) -> Self {
        log::Log::enable();
        let app = Arc::new(app);
        let load = Arc::new(LoadShedder::new(bounds));
        let router = router_with(Arc::clone(&app), load, Arc::default());
        Self { router, app }
    }

    /// Returns a server that converts reservations.
    fn new() -> Self {
        let app = offline().with_converters(reservation::converters());
        Self::with_app(app, LoadLimits::default())
    }

    async fn post(&self, path: &str, body: Vec<u8>) -> (StatusCode, String) {
        let request = Request::post(path).header("Content-Type", "application/json");
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Posts a review and returns the response.
    async fn review(&self, review: &Value) -> Value {
        let body = review.to_string().into_bytes();
        let (status, body) = self.post("/convert", body).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["apiVersion"], "apiextensions.k8s.io/v1");
        assert_eq!(answer["kind"], "ConversionReview");
        assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
        answer["response"].clone()
    }

    /// Checks that the metrics have this line.
    #[track_caller]
    fn assert_metric(&self, line: &str) {
        let text = self.app.metrics().prometheus();
        assert!(
            text.lines().any(|it| it == line),
            "{line} is not in\n{text}"
        );
    }
}

fn offline() -> AppState {
    AppState::offline(Settings::default(), Index::default(), BODY_LIMIT_BYTES)
}

fn review(desired: &str, objects: &Value) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "request": {"uid": "705ab4f5", "desiredAPIVersion": desired, "objects": objects},
    })
}

fn api_version(version: &str) -> String {
    format!("{GROUP}/{version}")
}

fn older(name: &str) -> Value {
    json!({
        "apiVersion": api_version("v1alpha1"), "kind": KIND, "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"owner": "speech/ada", "minutes": 2, "mode": "Auto", "amount": "1", "note": "n"},
    })
}

fn newer(name: &str) -> Value {
    json!({
        "apiVersion": api_version("v1beta1"), "kind": KIND, "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"team": "speech", "user": "ada", "durationSeconds": 90, "guarantee": "Burst", "cpu": "1"},
    })
}

#[track_caller]
fn assert_failed(answer: &Value, expected: &str) {
    assert_eq!(answer["convertedObjects"], json!([]), "all or nothing");
    let result = json!({"status": "Failure", "message": expected});
    assert_eq!(answer["result"], result);
}

#[tokio::test]
async fn converted_objects_keep_order() {
    let server = Server::new();
    let newest = json!({
        "apiVersion": api_version("v1"), "kind": KIND, "metadata": {"name": "c"},
        "spec": {"user": "bo", "duration": "60s", "guarantee": "Guaranteed", "cpu": "2"},
    });
    let objects = json!([older("a"), newer("b"), newest, older("d")]);
    let answer = server
        .review(&review(&api_version("v1beta1"), &objects))
        .await;
    assert_eq!(answer["result"], json!({"status": "Success"}));
    let all = answer["convertedObjects"].as_array().unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|it| it["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    for item in all {
        assert_eq!(
            (&item["apiVersion"], &item["kind"]),
            (&api_version("v1beta1").into(), &KIND.into())
        );
    }
    assert_eq!(all[0]["spec"]["durationSeconds"], 120);
    assert_eq!(all[1], newer("b"), "it had the version already");
    assert_eq!(all[2]["spec"]["durationSeconds"], 60);
    // And back.
    let back = server
        .review(&review(&api_version("v1alpha1"), &json!([all[0], all[3]])))
        .await;
    assert_eq!(back["convertedObjects"], json!([older("a"), older("d")]));
    server.assert_metric(r#"lockkeeper_webhook_conversions_total{result="converted"} 2"#);
    server.assert_metric(r#"lockkeeper_webhook_request_duration_seconds_count{path="convert"} 2"#);
    server.assert_metric("lockkeeper_webhook_requests_in_flight 0");
}

/// The nearest value of each number has another last digit than a parser computes without exact rounding.
#[tokio::test]
async fn numbers_keep_their_last_digit() {
    let server = Server::new();
    let zeros = format!("3{}30", "4".repeat(107));
    for number in [zeros.as_str(), "3.4444444444444453e108", "1e-322"] {
        let newest = api_version("v1");
        let object = format!(
            r#"{{"apiVersion":"{newest}","kind":"{KIND}","metadata":{{"name":"n"}},"spec":{{"user":"bo","duration":"60s","guarantee":"Guaranteed","cpu":"2","unknown":{number}}}}}"#
        );
        // As text: a test that reads the object with the same parser as the webhook would not notice a change.
        let body = format!(
            r#"{{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{{"uid":"u","desiredAPIVersion":"{}","objects":[{object}]}}}}"#,
            api_version("v1beta1")
        );
        let (_, there) = server.post("/convert", body.into_bytes()).await;
        let there: Value = serde_json::from_str(&there).unwrap();
        let there = &there["response"]["convertedObjects"];
        let (_, back) = server
            .post("/convert", review(&newest, there).to_string().into_bytes())
            .await;
        let (_, after) = back.split_once(r#""unknown":"#).expect(&back);
        let printed: String = after
            .chars()
            .take_while(|it| !matches!(it, ',' | '}'))
            .collect();
        let (sent, kept): (f64, f64) = (number.parse().unwrap(), printed.parse().unwrap());
        assert_eq!(sent.to_bits(), kept.to_bits(), "{number} became {printed}");
    }
}

#[tokio::test]
async fn empty_object_list_succeeds() {
    let server = Server::new();
    for objects in [json!([]), Value::Null] {
        let answer = server.review(&review(&api_version("v1"), &objects)).await;
        let expected =
            json!({"uid": "705ab4f5", "convertedObjects": [], "result": {"status": "Success"}});
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn conversion_failure_names_object_and_field() {
    let server = Server::new();
    let mut wrong = newer("b");
    wrong["spec"]["windows"] = json!({"night": {"start": 5}});
    let answer = server
        .review(&review(&api_version("v1"), &json!([older("a"), wrong])))
        .await;
    assert_failed(
        &answer,
        "request.objects[1]: Reservation \"team/b\" cannot be converted from samples.example.com/v1beta1 to \
         samples.example.com/v1: spec.windows.night.start: invalid type: integer `5`, expected a string",
    );
    server.assert_metric(r#"lockkeeper_webhook_conversions_total{result="rejected"} 1"#);
    server.assert_metric(r#"lockkeeper_webhook_conversions_total{result="converted"} 0"#);
}

#[tokio::test]
async fn invalid_conversion_request_fails_with_message() {
    let server = Server::new();
    let many = |message: &str| format!("request.objects[0]: {message}");
    let cannot = |to: &str, why: &str| {
        let from = api_version("v1alpha1");
        many(&format!(
            "Reservation \"team/a\" cannot be converted from {from} to {to}: {why}"
        ))
    };
    for (desired, objects, expected) in [
        ("", json!([older("a")]), "request.desiredAPIVersion is missing; name a group and version, such as example.com/v1".to_owned()),
        (&api_version("v9"), json!([older("a")]), cannot(&api_version("v9"), "unknown version \"v9\", known are v1alpha1, v1beta1, v1; upgrade this server")),
        ("other.example.com/v1", json!([older("a")]), cannot("other.example.com/v1", "a conversion cannot change the group; request a version of the same group")),
        ("v1", json!([older("a")]), cannot("v1", "\"v1\" is not a group and version, such as example.com/v1")),
        (&api_version("v1"), json!([null]), many("object \"\" cannot be converted from no apiVersion to samples.example.com/v1: <nil>: must be an object")),
    ] {
        let answer = server.review(&review(desired, &objects)).await;
        assert_failed(&answer, &expected);
    }
    let mut older_review = review(&api_version("v1"), &json!([]));
    older_review["apiVersion"] = "apiextensions.k8s.io/v1beta1".into();
    let expected = "unsupported apiVersion \"apiextensions.k8s.io/v1beta1\"; list v1 in \
                    spec.conversion.webhook.conversionReviewVersions";
    assert_failed(&server.review(&older_review).await, expected);
}

#[tokio::test]
async fn conversion_without_registered_kinds_fails() {
    let server = Server::with_app(offline(), LoadLimits::default());
    let answer = server
        .review(&review(&api_version("v1"), &json!([older("a")])))
        .await;
    assert_failed(
        &answer,
        "request.objects[0]: Reservation \"team/a\" cannot be converted from samples.example.com/v1alpha1 to \
         samples.example.com/v1: this server has no conversion for the kind; register the kind here, or point spec.conversion of the CustomResourceDefinition at the server that has it",
    );
}

#[tokio::test]
async fn undecodable_object_is_reported_by_index() {
    let server = Server::new();
    let with = |object: &str| {
        let review = review(&api_version("v1"), &json!([older("a"), "HERE"])).to_string();
        review.replace("\"HERE\"", object).into_bytes()
    };
    let twice = r#"{"metadata": {"name": "a", "name": "b"}}"#;
    let deep = format!("{}1{}", "[".repeat(1_000), "]".repeat(1_000));
    for (object, expected) in [
        (
            twice,
            "request.objects[1] has the duplicate key \"name\"; an API server sends each key once",
        ),
        (
            &deep,
            "request.objects[1] cannot be decoded: recursion limit exceeded at line 1 column 128",
        ),
    ] {
        let (status, body) = server.post("/convert", with(object)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_failed(&answer["response"], expected);
    }
}

#[tokio::test]
async fn failure_message_is_truncated() {
    let server = Server::new();
    let mut wrong = older("a");
    wrong["spec"]["mode"] = "x".repeat(10_000).into();
    let answer = server
        .review(&review(&api_version("v1"), &json!([wrong])))
        .await;
    let message = answer["result"]["message"].as_str().unwrap();
    assert!(message.starts_with("request.objects[0]: Reservation \"team/a\""));
    assert!(message.ends_with('…') && message.chars().count() == 2_048);
}

#[tokio::test]
async fn foreign_annotation_is_ignored() {
    let server = Server::new();
    let mut object = older("a");
    object["metadata"]["annotations"] =
        json!({format!("{PRESERVED_ANNOTATION_PREFIX}a"): "garbage", "other": "stays"});
    let answer = server
        .review(&review(&api_version("v1beta1"), &json!([object])))
        .await;
    let there = &answer["convertedObjects"][0];
    assert_eq!(there["metadata"]["annotations"]["other"], "stays");
    let back = server
        .review(&review(&api_version("v1alpha1"), &json!([there])))
        .await;
    assert_eq!(back["convertedObjects"][0]["spec"], older("a")["spec"]);
}

#[tokio::test]
async fn body_without_review_is_http_error() {
    let server = Server::new();
    for (body, expected) in [
        (
            "",
            "the body is not a ConversionReview: EOF while parsing a value at line 1 column 0\n",
        ),
        (
            "{}",
            "the ConversionReview has no request; this server supports apiextensions.k8s.io/v1\n",
        ),
        (
            r#"{"request": {"objects": []}}"#,
            "request.uid is missing; without it no response can be matched to the request\n",
        ),
    ] {
        let (status, text) = server.post("/convert", body.as_bytes().to_vec()).await;
        assert_eq!((status, text.as_str()), (StatusCode::BAD_REQUEST, expected));
    }
    let (status, text) = server
        .post("/convert", b"{\"request\": {\"uid\": \"\xff\"}}".to_vec())
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    server.assert_metric(r#"lockkeeper_webhook_conversions_total{result="error"} 4"#);
    let review = review(&api_version("v1"), &json!([])).to_string();
    let request = Request::post("/convert").body(Body::from(review)).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let request = Request::get("/convert").body(Body::empty()).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
}

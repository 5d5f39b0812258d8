//! Admission reviews through the router, without a socket: responses to valid and invalid ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

#[path = "../support/log.rs"]
mod log;

mod declared_jobs;
mod defaulting;
mod foreign_kinds;
mod logs;
mod requests;
mod undecodable;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use lockkeeper_api::config::Config;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;

/// Small, so that the test of the limit is quick.
const BODY_LIMIT_BYTES: usize = 512 * 1024;

fn server() -> Router {
    server_with(&json!({}))
}

fn server_with(config: &Value) -> Router {
    let mut index = Index::default();
    for (name, value, default) in [
        ("low", 100, false),
        ("standard", 500, true),
        ("high", 1000, false),
    ] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "globalDefault": default,
        });
        facts::ingest(&mut index, &class).unwrap();
    }
    server_of(config, index)
}

/// A server that knows these objects.
fn server_of(config: &Value, index: Index) -> Router {
    log::Log::enable();
    let config: Config = serde_json::from_value(config.clone()).unwrap();
    router(Arc::new(AppState::offline(
        registry::settings(&config).unwrap(),
        index,
        BODY_LIMIT_BYTES,
    )))
}

async fn post(
    server: &Router,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> (StatusCode, String) {
    let request = Request::post(path).header("Content-Type", content_type);
    let response = server
        .clone()
        .oneshot(request.body(Body::from(body)).unwrap())
        .await
        .unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Posts a review and returns the response.
async fn review(server: &Router, path: &str, review: &Value) -> Value {
    let (status, body) = post(
        server,
        path,
        "application/json",
        review.to_string().into_bytes(),
    )
    .await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(
        answer["response"]["uid"], review["request"]["uid"],
        "the uid is carried over"
    );
    answer["response"].clone()
}

fn request(group: &str, version: &str, kind: &str, operation: &str, objects: &Value) -> Value {
    let mut request = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "version": version, "kind": kind},
        "name": "example", "operation": operation,
    });
    for (key, value) in objects.as_object().unwrap() {
        request[key] = value.clone();
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

fn queue(spec: &Value) -> Value {
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue",
        "metadata": {"name": "example"}, "spec": spec,
    })
}

fn create(object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap();
    request(
        "lockkeeper.dev",
        "v1alpha1",
        kind,
        "CREATE",
        &json!({"object": object}),
    )
}

fn workload(spec: &Value) -> Value {
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": "example", "namespace": "team"}, "spec": spec,
    })
}

fn quota(lending: &str) -> Value {
    json!({"cohortName": "c", "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4", "lendingLimit": lending}]}
    ]}]})
}

#[tokio::test]
async fn denial_has_field_reason_fix_and_rule() {
    let answer = review(&server(), "/validate", &create(&queue(&quota("5")))).await;
    assert_eq!(answer["allowed"], false);
    let field = "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit";
    let message = r#"Invalid value: "5": must be at most the nominalQuota, which is 4 [CQ007]"#;
    let status = json!({
        "status": "Failure", "code": 422, "reason": "Invalid",
        "message": format!(r#"ClusterQueue.lockkeeper.dev "example" is invalid: {field}: {message}"#),
        "details": {
            "group": "lockkeeper.dev", "kind": "ClusterQueue", "name": "example",
            "causes": [{"reason": "FieldValueInvalid", "field": field, "message": message}],
        },
    });
    assert_eq!(answer["status"], status);
    assert_eq!(answer["auditAnnotations"], json!({"denied-by": "CQ007"}));
}

#[tokio::test]
async fn denial_lists_all_findings() {
    let mut spec = quota("5");
    spec["preemption"] = json!({"borrowWithinCohort": {"policy": "LowerPriority"}});
    let answer = review(&server(), "/validate", &create(&queue(&spec))).await;
    assert_eq!(
        answer["status"]["details"]["causes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let message = answer["status"]["message"].as_str().unwrap();
    assert_eq!(message.lines().count(), 3, "{message}");
    assert!(message.contains("\n* spec.preemption.borrowWithinCohort.policy: Invalid value"));
    assert!(message.contains("[CQ001]") && message.contains("[CQ007]"));
}

#[tokio::test]
async fn rule_action_is_configurable() {
    let review_of = create(&queue(&quota("5")));
    let warned = server_with(&json!({"rules": {"actions": {"CQ007": "warn"}}}));
    let answer = review(&warned, "/validate", &review_of).await;
    assert_eq!(answer["allowed"], true);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("CQ007 spec.resourceGroups[0]"),
        "{warning}"
    );
    assert!(warning.chars().count() <= 120, "{warning}");

    let audited = server_with(&json!({"rules": {"actions": {"CQ007": "audit"}}}));
    let answer = review(&audited, "/validate", &review_of).await;
    assert_eq!(answer["allowed"], true);
    assert!(answer["warnings"].is_null());
    assert!(
        answer["auditAnnotations"]["CQ007"]
            .as_str()
            .unwrap()
            .contains("lendingLimit")
    );

    let off = server_with(&json!({"rules": {"actions": {"CQ007": "off"}}}));
    let answer = review(&off, "/validate", &review_of).await;
    assert_eq!(
        answer,
        json!({"uid": review_of["request"]["uid"], "allowed": true})
    );
}

#[tokio::test]
async fn rule_action_is_configurable_per_namespace() {
    let server =
        server_with(&json!({"rules": {"namespaces": {"team": {"actions": {"WL004": "warn"}}}}}));
    let object = workload(&json!({"podSets": [{"template": {}}], "priorityClassName": "hihg"}));
    let answer = review(&server, "/validate", &create(&object)).await;
    assert_eq!(answer["allowed"], true);
    let mut other = object;
    other["metadata"]["namespace"] = "other".into();
    let answer = review(&server, "/validate", &create(&other)).await;
    assert_eq!(
        answer["status"]["details"]["causes"][0]["reason"],
        "FieldValueNotFound"
    );
}

#[tokio::test]
async fn update_with_preexisting_finding_is_allowed() {
    let server = server();
    let old = queue(&quota("5"));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    let update = |new: &Value| {
        let objects = json!({"object": new, "oldObject": old});
        request(
            "lockkeeper.dev",
            "v1alpha1",
            "ClusterQueue",
            "UPDATE",
            &objects,
        )
    };
    assert_eq!(
        review(&server, "/validate", &update(&new)).await["allowed"],
        true
    );
    let worse = queue(&quota("6"));
    assert_eq!(
        review(&server, "/validate", &update(&worse)).await["allowed"],
        false
    );
}

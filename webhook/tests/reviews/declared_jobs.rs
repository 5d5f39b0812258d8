//! New jobs of a kind that a `JobKind` declares.

use super::defaulting::patched;
use super::{request, review, server_of};
use axum::Router;
use lockkeeper_policies::cluster_view::ObjectName;
use lockkeeper_policies::declared_suspension::DeclaredSuspension;
use lockkeeper_policies::index::{Facts, Index};
use serde_json::{Value, json};
use std::sync::Arc;

/// A server that knows the kind `Run`.
fn server() -> Router {
    let declaration = json!({
        "metadata": {"name": "runs.example.com"},
        "spec": {
            "version": "v1", "kind": "Run", "suspend": {"path": "spec.policy.suspend"},
            "podSets": [{"name": "main", "template": "spec.template"}],
        },
    });
    let declaration = serde_json::from_value(declaration).unwrap();
    let suspension = DeclaredSuspension::new(&declaration).unwrap();
    let mut index = Index::default();
    index.apply(ObjectName::default(), Facts::JobKind(Arc::new(suspension)));
    server_of(&json!({}), index)
}

fn run(labels: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Run",
        "metadata": {"name": "example", "namespace": "team", "labels": labels}, "spec": spec,
    })
}

fn queued(spec: &Value) -> Value {
    run(&json!({"lockkeeper.dev/queue-name": "q"}), spec)
}

async fn mutate(version: &str, operation: &str, objects: &Value) -> Value {
    let request = request("example.com", version, "Run", operation, objects);
    review(&server(), "/mutate", &request).await
}

#[tokio::test]
async fn new_job_with_a_queue_is_suspended() {
    for spec in [
        json!({}),
        json!({"policy": null, "a": 1}),
        json!({"policy": {"suspend": false, "b": 2}}),
    ] {
        let object = queued(&spec);
        let answer = mutate("v1", "CREATE", &json!({"object": object})).await;
        assert_eq!(answer["allowed"], true);
        let after = patched(&object, &answer);
        assert_eq!(after["spec"]["policy"]["suspend"], true, "{spec}");
        let again = mutate("v1", "CREATE", &json!({"object": after})).await;
        assert!(again["patch"].is_null(), "{again}");
    }
}

#[tokio::test]
async fn other_requests_are_allowed_unchanged() {
    let started = json!({"policy": {"suspend": false}});
    let object = queued(&started);
    let objects = json!({"object": object, "oldObject": object});
    for (operation, objects) in [
        ("CREATE", json!({"object": run(&json!({}), &started)})),
        ("UPDATE", objects),
        ("DELETE", json!({"oldObject": object})),
    ] {
        let answer = mutate("v1", operation, &objects).await;
        assert_eq!(answer["allowed"], true, "{operation}");
        assert!(
            answer["patch"].is_null() && answer["warnings"].is_null(),
            "{answer}"
        );
    }
    let request = request(
        "example.com",
        "v1",
        "Run",
        "CREATE",
        &json!({"object": object}),
    );
    let answer = review(&server(), "/validate", &request).await;
    assert!(
        answer["allowed"] == true && answer["warnings"].is_null(),
        "{answer}"
    );
}

#[tokio::test]
async fn another_version_is_not_suspended_and_says_so() {
    let objects = json!({"object": queued(&json!({}))});
    let answer = mutate("v2", "CREATE", &objects).await;
    assert_eq!(answer["allowed"], true);
    assert!(answer["patch"].is_null());
    let expected = "not suspended: the JobKind of Run declares version v1, and the webhook is registered for v2";
    assert!(
        answer["warnings"].to_string().contains(expected),
        "{answer}"
    );
}

#[tokio::test]
async fn kind_without_declaration_is_reported() {
    let objects = json!({"object": queued(&json!({}))});
    let request = request("example.com", "v1", "Other", "CREATE", &objects);
    let answer = review(&server(), "/mutate", &request).await;
    let warnings = answer["warnings"].to_string();
    assert!(
        warnings.contains("no rule for example.com/v1 Other"),
        "{answer}"
    );
}

#[tokio::test]
async fn malformed_request_is_a_bad_request() {
    let answer = mutate("v1", "CREATE", &json!({})).await;
    assert_eq!(answer["status"]["code"], 400, "{answer}");
    assert!(
        answer["status"]["message"]
            .to_string()
            .contains("request.object is null")
    );
}

//! User rules and exceptions, through the router.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use lockkeeper_api::config::Config;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::user_rules::{Source, UserRules};
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;

/// Two rules: a name begins with `team-`, and no marked object is deleted.
const PAGES: [&str; 2] = [
    "---\nid: TEAM001\nname: without-team\nkinds:\n- {group: lockkeeper.dev, version: v1alpha1, kind: ClusterQueue}\n- {group: lockkeeper.dev, version: v1alpha1, kind: LocalQueue}\n- {group: apps, version: v1, kind: Deployment}\nvalidations:\n- {expression: object.metadata.name.startsWith('team-'), message: must begin with team-, fieldPath: .metadata.name}\n---\n",
    "---\nid: TEAM002\nname: deleted-though-marked\nkinds:\n- {group: lockkeeper.dev, version: v1alpha1, kind: ClusterQueue}\noperations: [DELETE]\nvalidations:\n- {expression: \"!has(oldObject.metadata.labels) || !('keep' in oldObject.metadata.labels)\", message: it is marked to be kept, fieldPath: .metadata.labels, reason: FieldValueForbidden}\n---\n",
];

fn app(config: &Value) -> Arc<AppState> {
    let config: Config = serde_json::from_value(config.clone()).unwrap();
    let sources = PAGES.map(|text| Source {
        name: "page.md".to_owned(),
        text: text.to_owned(),
    });
    let rules =
        Arc::new(UserRules::parse(&sources, &lockkeeper_policies::registry::all()).unwrap());
    let settings = registry::settings_with(&config, rules).unwrap();
    Arc::new(AppState::offline(settings, Index::default(), 64 * 1024))
}

/// Returns a review of an object of this kind.
fn request(api_version: &str, kind: &str, operation: &str, objects: &Value) -> Value {
    let (group, version) = api_version.split_once('/').unwrap();
    let mut request = json!({
        "uid": "1", "name": "q", "operation": operation,
        "kind": {"group": group, "version": version, "kind": kind},
    });
    for (key, object) in objects.as_object().unwrap() {
        let mut object = object.clone();
        if object.is_object() {
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
        }
        request[key] = object;
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

fn queue(operation: &str, objects: &Value) -> Value {
    request(
        "lockkeeper.dev/v1alpha1",
        "ClusterQueue",
        operation,
        objects,
    )
}

async fn post_review(app: &Arc<AppState>, path: &str, review: &str) -> Value {
    let request = Request::post(path).header("Content-Type", "application/json");
    let request = request.body(Body::from(review.to_owned())).unwrap();
    let response = router(Arc::clone(app)).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["response"]["uid"], "1");
    answer["response"].clone()
}

async fn validate(app: &Arc<AppState>, review: &Value) -> Value {
    post_review(app, "/validate", &review.to_string()).await
}

fn rules(answer: &Value) -> &str {
    let rules = &answer["auditAnnotations"]["denied-by"];
    rules.as_str().unwrap_or_default()
}

#[tokio::test]
async fn user_rule_denial_matches_builtin_format() {
    let app = app(&json!({}));
    let spec = json!({"cohortName": "c", "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4", "lendingLimit": "5"}]}
    ]}]});
    let named = |name: &str| json!({"object": {"metadata": {"name": name}, "spec": spec}});
    let answer = validate(&app, &queue("CREATE", &named("q"))).await;
    assert_eq!(rules(&answer), "CQ007,TEAM001");
    let causes = answer["status"]["details"]["causes"].as_array().unwrap();
    let message = "Invalid value: \"q\": must begin with team- [TEAM001]";
    let expected =
        json!({"reason": "FieldValueInvalid", "field": "metadata.name", "message": message});
    assert_eq!(causes.last(), Some(&expected));
    let answer = validate(&app, &queue("CREATE", &named("team-q"))).await;
    assert_eq!(rules(&answer), "CQ007");
    let text = app.metrics().prometheus();
    for (labels, count) in [
        ("rule=\"TEAM001\",action=\"enforce\"", 1),
        ("rule=\"TEAM001\",action=\"warn\"", 0),
        ("rule=\"TEAM002\",action=\"enforce\"", 0),
    ] {
        let line = format!("\nlockkeeper_webhook_user_rule_hits_total{{{labels}}} {count}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[tokio::test]
async fn user_rule_runs_for_its_operations_and_kinds() {
    let app = app(&json!({}));
    let object = json!({"metadata": {"name": "q", "labels": {"keep": ""}}, "spec": {}});
    let other = json!({"metadata": {"name": "team-q"}, "spec": {}});
    let door = json!({"metadata": {"name": "q"}, "spec": {"clusterQueue": "c"}});
    let own = "lockkeeper.dev/v1alpha1";
    for (api_version, kind, operation, objects, expected) in [
        (
            own,
            "ClusterQueue",
            "DELETE",
            json!({"oldObject": object}),
            "TEAM002",
        ),
        (
            own,
            "ClusterQueue",
            "DELETE",
            json!({"oldObject": other}),
            "",
        ),
        // An update is not rejected for a pre-existing finding.
        (
            own,
            "ClusterQueue",
            "UPDATE",
            json!({"oldObject": object, "object": object}),
            "",
        ),
        (
            own,
            "ClusterQueue",
            "UPDATE",
            json!({"oldObject": other, "object": object}),
            "TEAM001",
        ),
        // A kind with built-in rules as well, and one with user rules only.
        (
            own,
            "LocalQueue",
            "CREATE",
            json!({"object": door}),
            "TEAM001",
        ),
        (
            "apps/v1",
            "Deployment",
            "CREATE",
            json!({"object": object}),
            "TEAM001",
        ),
        (
            "apps/v1",
            "Deployment",
            "CREATE",
            json!({"object": other}),
            "",
        ),
        (own, "Cohort", "CREATE", json!({"object": object}), ""),
    ] {
        let review = request(api_version, kind, operation, &objects);
        let answer = validate(&app, &review).await;
        assert_eq!(rules(&answer), expected, "{kind} {operation}: {answer}");
        assert_eq!(answer["allowed"], expected.is_empty(), "{kind} {operation}");
        let answer = post_review(&app, "/mutate", &review.to_string()).await;
        assert_eq!(answer["allowed"], true);
    }
}

#[tokio::test]
async fn kind_without_rules_gets_warning() {
    let object = json!({"object": {"metadata": {"name": "q"}}});
    let app = app(&json!({}));
    let answer = validate(&app, &request("apps/v1", "StatefulSet", "CREATE", &object)).await;
    assert!(
        answer["warnings"][0]
            .as_str()
            .unwrap()
            .contains("no rule for apps/v1 StatefulSet")
    );
}

#[tokio::test]
async fn invalid_request_is_bad_request() {
    let app = app(&json!({}));
    for (operation, objects, part) in [
        ("CREATE", json!({"object": null}), "request.object is null"),
        ("UPDATE", json!({"object": {}}), "request.oldObject is null"),
        ("DELETE", json!({}), "request.oldObject is null"),
    ] {
        let answer = validate(&app, &request("apps/v1", "Deployment", operation, &objects)).await;
        assert_eq!(answer["status"]["code"], 400);
        let message = answer["status"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    let review = request(
        "apps/v1",
        "Deployment",
        "CREATE",
        &json!({"object": {"spec": "HERE"}}),
    );
    for (object, part) in [
        ("{\"a\": 1, \"a\": 2}", "the duplicate key \"a\""),
        ("1e999", "request.object cannot be decoded"),
    ] {
        let text = review.to_string().replace("\"HERE\"", object);
        let answer = post_review(&app, "/validate", &text).await;
        assert_eq!(answer["status"]["code"], 400);
        let message = answer["status"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn excepted_finding_is_audited_with_reason() {
    let exception = |name: Option<&str>, names: &str, expires: &str| {
        json!({"name": name, "rules": ["CQ007", "TEAM001"], "selector": {"names": [names]}, "reason": "moving out",
            "expires": expires})
    };
    let app = app(&json!({"rules": {"exceptions": [
        exception(None, "old-*", "1970-01-01"), exception(Some("move"), "q*", "9999-12-31"),
    ]}}));
    let spec = json!({"cohortName": "c", "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4", "lendingLimit": "5"}]}
    ]}]});
    let named = |name: &str| json!({"object": {"metadata": {"name": name}, "spec": spec}});
    let answer = validate(&app, &queue("CREATE", &named("q1"))).await;
    assert_eq!(answer["allowed"], true, "{answer}");
    assert!(answer["warnings"].is_null(), "{answer}");
    let annotations = answer["auditAnnotations"].as_object().unwrap();
    let keys: Vec<&String> = annotations.keys().collect();
    assert_eq!(keys, ["CQ007.exempted", "TEAM001.exempted"]);
    assert_eq!(
        annotations["TEAM001.exempted"],
        "exception move until 9999-12-31 (moving out): metadata.name: Invalid value: \"q1\": must begin with team- [TEAM001]"
    );
    // An expired exception exempts no finding; the expiry needs no reload.
    let answer = validate(&app, &queue("CREATE", &named("old-1"))).await;
    assert_eq!(rules(&answer), "CQ007,TEAM001");
    let text = app.metrics().prometheus();
    for line in [
        "exceptions_used_total{exception=\"move\"} 1",
        "exceptions_used_total{exception=\"rules.exceptions[0]\"} 0",
        "rule_hits_total{rule=\"CQ007\",action=\"exempted\"} 1",
        "rule_hits_total{rule=\"CQ007\",action=\"enforce\"} 1",
        "user_rule_hits_total{rule=\"TEAM001\",action=\"exempted\"} 1",
    ] {
        let line = format!("\nlockkeeper_webhook_{line}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[tokio::test]
async fn reload_keeps_counters_and_drops_removed_rules() {
    let first = app(&json!({}));
    let object = json!({"object": {"metadata": {"name": "q"}, "spec": {}}});
    validate(&first, &queue("CREATE", &object)).await;
    let line = "\nlockkeeper_webhook_user_rule_hits_total{rule=\"TEAM001\",action=\"enforce\"} 1\n";
    first.set_settings(app(&json!({})).settings().as_ref().clone());
    assert!(first.metrics().prometheus().contains(line));
    first.set_settings(registry::settings(&Config::default()).unwrap());
    assert!(!first.metrics().prometheus().contains("TEAM001"));
    let answer = validate(&first, &queue("CREATE", &object)).await;
    assert_eq!(answer["allowed"], true);
}

//! Admission reviews through the router, without a socket: what is answered to good and bad ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt;
use lockkeeper_api::config::Config;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_webhook::app::App;
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
    let config: Config = serde_json::from_value(config.clone()).unwrap();
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
        facts::observe(&mut index, &class).unwrap();
    }
    router(Arc::new(App::offline(
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

/// Posts a review and gives back its answer.
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
    json!({"cohortName": "c", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4", "lendingLimit": lending}]}
    ]}]})
}

#[tokio::test]
async fn a_refusal_says_field_reason_fix_and_rule() {
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
async fn several_findings_are_all_told() {
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
async fn what_a_rule_does_is_a_setting() {
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
async fn an_action_can_hold_in_one_namespace() {
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

/// Applies the patch of an answer.
fn patched(object: &Value, answer: &Value) -> Value {
    let mut out = object.clone();
    if let Some(patch) = answer["patch"].as_str() {
        assert_eq!(answer["patchType"], "JSONPatch");
        let patch: json_patch::Patch =
            serde_json::from_slice(&BASE64_STANDARD.decode(patch).unwrap()).unwrap();
        json_patch::patch(&mut out, &patch).unwrap();
    }
    out
}

/// Mutates, checks that mutating again changes nothing, and gives back the object.
async fn mutated(object: &Value) -> Value {
    let server = server();
    let once = patched(object, &review(&server, "/mutate", &create(object)).await);
    let again = review(&server, "/mutate", &create(&once)).await;
    assert!(
        again["patch"].is_null(),
        "mutating twice gives a second patch"
    );
    once
}

#[tokio::test]
async fn a_workload_is_filled_in() {
    let object = workload(&json!({
        "podSets": [{"template": {"spec": {"containers": []}}}, {"name": "b", "count": 2, "template": {}}],
        "podGroups": [{"name": "g"}],
    }));
    let expected = json!({
        "podSets": [
            {"name": "main", "count": 1, "template": {"spec": {"containers": []}}},
            {"name": "b", "count": 2, "template": {}},
        ],
        "podGroups": [{"name": "g", "replicas": 1, "disruptionMode": "Pod"}],
        "priorityClassName": "standard", "preemptionPriorityClassName": "standard",
        "active": true,
    });
    assert_eq!(mutated(&object).await["spec"], expected);
}

#[tokio::test]
async fn the_preemption_class_follows_the_scheduling_class() {
    let object = workload(&json!({"podSets": [], "priorityClassName": "high", "active": false}));
    let spec = mutated(&object).await["spec"].clone();
    assert_eq!(spec["preemptionPriorityClassName"], "high");
    assert_eq!(spec["active"], false);
}

#[tokio::test]
async fn a_replaced_workload_keeps_its_classes_and_gets_no_new_ones() {
    for class in [Some("low"), None] {
        let old = workload(&json!({"podSets": [], "active": true, "priorityClassName": class}));
        let new = workload(&json!({"podSets": [], "active": true}));
        let objects = json!({"object": new, "oldObject": old});
        let update = request("lockkeeper.dev", "v1alpha1", "Workload", "UPDATE", &objects);
        let after = patched(&new, &review(&server(), "/mutate", &update).await);
        assert_eq!(after["spec"]["priorityClassName"].as_str(), class);
    }
}

#[tokio::test]
async fn a_queue_is_filled_in() {
    let never = json!({
        "withinClusterQueue": "Never", "reclaimWithinCohort": "Never",
        "borrowWithinCohort": {"policy": "Never"},
    });
    let lower = json!({
        "withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority",
        "borrowWithinCohort": {"policy": "Never"},
    });
    let any = json!({
        "withinClusterQueue": "Never", "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "Never", "maxPriorityThreshold": 5},
    });
    let given =
        json!({"reclaimWithinCohort": "Any", "borrowWithinCohort": {"maxPriorityThreshold": 5}});
    for (spec, expected) in [
        (json!({}), never),
        (json!({"elastic": {}}), lower),
        (json!({"preemption": given}), any),
    ] {
        let after = mutated(&queue(&spec)).await;
        assert_eq!(after["spec"]["preemption"], expected);
        assert_eq!(after["spec"]["queueingStrategy"], "BestEffortFIFO");
        assert_eq!(
            after["metadata"]["finalizers"],
            json!(["lockkeeper.dev/resource-in-use"])
        );
    }
}

#[tokio::test]
async fn a_job_that_names_a_queue_is_suspended() {
    let server = server();
    for (group, version, kind) in [
        ("batch", "v1", "Job"),
        ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    ] {
        let review_of = |labels: &Value, suspend: &Value, operation: &str| {
            let job = json!({
                "apiVersion": format!("{group}/{version}"), "kind": kind,
                "metadata": {"name": "example", "namespace": "team", "labels": labels},
                "spec": {
                    "suspend": suspend, "replicatedJobs": [{"name": "a", "template": {}}],
                    "template": {"spec": {"containers": []}},
                },
            });
            let objects = json!({"object": job, "oldObject": job});
            (job, request(group, version, kind, operation, &objects))
        };
        let queued = json!({"lockkeeper.dev/queue-name": "main"});
        for suspend in [json!(null), json!(false)] {
            let (job, asked) = review_of(&queued, &suspend, "CREATE");
            let mut expected = job.clone();
            expected["spec"]["suspend"] = true.into();
            let answer = review(&server, "/mutate", &asked).await;
            assert_eq!(patched(&job, &answer), expected);
        }
        for (labels, suspend, operation) in [
            (&queued, json!(true), "CREATE"),
            (&json!({"app": "a"}), json!(false), "CREATE"),
            (&queued, json!(false), "UPDATE"),
        ] {
            let (_, asked) = review_of(labels, &suspend, operation);
            let answer = review(&server, "/mutate", &asked).await;
            let unchanged = json!({"uid": asked["request"]["uid"], "allowed": true});
            assert_eq!(answer, unchanged);
        }
        // No rule is about them yet.
        let (_, asked) = review_of(&queued, &json!(false), "CREATE");
        let answer = review(&server, "/validate", &asked).await;
        assert_eq!(answer["allowed"], true);
    }
}

#[tokio::test]
async fn a_removed_finalizer_stays_away() {
    let mut old = mutated(&queue(&json!({}))).await;
    let new = {
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!([]);
        new
    };
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let objects = json!({"object": new, "oldObject": old});
    let update = request(
        "lockkeeper.dev",
        "v1alpha1",
        "ClusterQueue",
        "UPDATE",
        &objects,
    );
    let answer = review(&server(), "/mutate", &update).await;
    assert!(answer["patch"].is_null());
}

#[tokio::test]
async fn an_update_is_not_refused_for_what_was_there() {
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

#[tokio::test]
async fn an_object_that_does_not_decode_is_named_by_field() {
    let server = server();
    for (spec, field) in [
        (
            quota("1e400"),
            "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        ),
        (
            quota("abc"),
            "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        ),
        (json!({"queueingStrategy": "Fifo"}), "spec.queueingStrategy"),
        (
            json!({"preemption": {"borrowWithinCohort": {"maxPriorityThreshold": 12_345_678_901_i64}}}),
            "spec.preemption.borrowWithinCohort.maxPriorityThreshold",
        ),
        (json!("text"), "spec"),
    ] {
        let review_of = create(&queue(&spec));
        let answer = review(&server, "/validate", &review_of).await;
        let cause = &answer["status"]["details"]["causes"][0];
        assert_eq!(answer["status"]["code"], 422, "{answer}");
        assert_eq!(cause["field"], field, "{answer}");
        assert!(
            cause["message"].as_str().unwrap().ends_with("[SC001]"),
            "{answer}"
        );
        // The schema says it better: the object goes on to it as it is.
        let answer = review(&server, "/mutate", &review_of).await;
        assert_eq!(
            (&answer["allowed"], &answer["patch"]),
            (&json!(true), &Value::Null)
        );
    }
    let answer = review(&server, "/validate", &create(&queue(&quota("-1Ki")))).await;
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(
        message.contains(r#"Invalid value: "-1Ki": must be 0 or more [CQ008]"#),
        "{message}"
    );
}

#[tokio::test]
async fn numbers_past_64_bits_and_deep_nesting_are_refused_with_a_message() {
    let server = server();
    let wide = queue(&json!({"preemption": {"borrowWithinCohort": {"maxPriorityThreshold": 0}}}));
    let text = create(&wide)
        .to_string()
        .replace(":0}", ":123456789012345678901234567890}");
    let (status, body) = post(&server, "/validate", "application/json", text.into_bytes()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        body.contains("maxPriorityThreshold") && body.contains("SC001"),
        "{body}"
    );

    let nested = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = create(&queue(&json!({"fairSharing": 0}))).to_string();
    let text = text.replace(
        r#""fairSharing":0"#,
        &format!(r#""namespaceSelector":{nested}"#),
    );
    let (status, body) = post(&server, "/validate", "application/json", text.into_bytes()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("SC001"), "{body}");
}

/// Inputs that fuzzing works from. A tree of values cannot be made of the first: it nests too deep, and
/// a number in it fits no type. The second is a list of what a review holds.
#[tokio::test]
async fn what_need_not_be_decoded_keeps_nobody_from_an_answer() {
    for (body, fits_a_value) in [
        (
            &include_bytes!("../../tests/fuzz/seeds/review/not-decoded.json")[..],
            false,
        ),
        (
            include_bytes!("../../tests/fuzz/seeds/review/list.json"),
            true,
        ),
    ] {
        assert_eq!(serde_json::from_slice::<Value>(body).is_ok(), fits_a_value);
        for path in ["/validate", "/mutate"] {
            let (status, answer) = post(&server(), path, "application/json", body.to_vec()).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["response"]["uid"], "u");
            assert_eq!(answer["response"]["allowed"], true);
        }
    }
}

#[tokio::test]
async fn a_stored_object_that_does_not_decode_can_still_be_freed_and_deleted() {
    let server = server();
    let old = queue(&quota("1e400"));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    let objects = json!({"object": new, "oldObject": old});
    let update = request(
        "lockkeeper.dev",
        "v1alpha1",
        "ClusterQueue",
        "UPDATE",
        &objects,
    );
    let answer = review(&server, "/validate", &update).await;
    assert_eq!(answer["allowed"], true);
    assert!(
        answer["warnings"][0]
            .as_str()
            .unwrap()
            .starts_with("not checked")
    );
    let delete = request(
        "lockkeeper.dev",
        "v1alpha1",
        "ClusterQueue",
        "DELETE",
        &json!({"oldObject": old}),
    );
    assert_eq!(review(&server, "/validate", &delete).await["allowed"], true);
}

#[tokio::test]
async fn nothing_is_filled_in_over_a_stored_object_that_does_not_decode() {
    let old = queue(&quota("1e400"));
    let new = queue(&quota("1"));
    let objects = json!({"object": new, "oldObject": old});
    let update = request(
        "lockkeeper.dev",
        "v1alpha1",
        "ClusterQueue",
        "UPDATE",
        &objects,
    );
    let answer = review(&server(), "/mutate", &update).await;
    assert_eq!(answer["allowed"], true);
    assert!(answer["patch"].is_null());
    let answer = review(&server(), "/validate", &update).await;
    assert_eq!(answer["allowed"], true);
}

#[tokio::test]
async fn every_answer_carries_the_uid() {
    let object = queue(&json!({}));
    let both = json!({"object": object, "oldObject": object});
    let own = |operation, objects: &Value| {
        request(
            "lockkeeper.dev",
            "v1alpha1",
            "ClusterQueue",
            operation,
            objects,
        )
    };
    let mut wrong_version = create(&object);
    wrong_version["apiVersion"] = "admission.k8s.io/v1beta1".into();
    let mut status = own("UPDATE", &both);
    status["request"]["subResource"] = "status".into();
    for (review_of, allowed, code) in [
        (wrong_version, false, 400),
        (own("CREATE", &json!({})), false, 400),
        (own("CREATE", &json!({"object": null})), false, 400),
        (own("UPDATE", &json!({"object": object})), false, 400),
        (own("DELETE", &json!({"object": null})), false, 400),
        (own("DELETE", &json!({"oldObject": object})), true, 0),
        (own("CONNECT", &json!({})), true, 0),
        (own("", &json!({})), true, 0),
        (status, true, 0),
        (
            request("lockkeeper.dev", "v9", "ClusterQueue", "CREATE", &both),
            false,
            400,
        ),
        (
            request("apps", "v1", "Deployment", "CREATE", &both),
            true,
            0,
        ),
    ] {
        for path in ["/validate", "/mutate"] {
            let answer = review(&server(), path, &review_of).await;
            assert_eq!(answer["allowed"], allowed, "{path} {review_of}");
            assert_eq!(
                answer["status"]["code"].as_u64().unwrap_or(0),
                code,
                "{path} {review_of}"
            );
            if !allowed {
                assert!(answer["status"]["message"].as_str().unwrap().len() > 10);
            }
        }
    }
}

/// Puts a pair of a key and a value wherever `mark` stands, before it.
fn with_pair(review_of: &Value, mark: &str, pair: &str) -> Vec<u8> {
    let text = review_of.to_string();
    assert!(text.contains(mark), "{mark} is not in {text}");
    text.replace(mark, &format!("{pair},{mark}")).into_bytes()
}

#[tokio::test]
async fn a_key_that_stands_twice_is_never_guessed_at() {
    let server = server();
    let json = "application/json";
    let review_of = create(&queue(&quota("1")));
    for (mark, pair) in [
        (r#""apiVersion":"admission"#, r#""apiVersion":"v1""#),
        (r#""request":"#, r#""request":{"uid":"other"}"#),
        (r#""uid":"#, r#""uid":"other""#),
        (r#""operation":"#, r#""operation":"DELETE""#),
        (r#""object":"#, r#""object":{}"#),
        (r#""group":"#, r#""group":"example.com""#),
    ] {
        for path in ["/validate", "/mutate"] {
            let body = with_pair(&review_of, mark, pair);
            let (status, text) = post(&server, path, json, body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
            assert!(text.contains("duplicate field"), "{text}");
        }
    }

    let object = queue(&quota("1"));
    let both = json!({"object": object, "oldObject": object});
    for (operation, field) in [
        ("CREATE", "object"),
        ("DELETE", "oldObject"),
        ("UPDATE", "object"),
    ] {
        let own = request(
            "lockkeeper.dev",
            "v1alpha1",
            "ClusterQueue",
            operation,
            &both,
        );
        for (mark, pair, key) in [
            (r#""spec":"#, r#""spec":{}"#, "spec"),
            (r#""metadata":"#, r#""metadata":{"name":"b"}"#, "metadata"),
            (r#""name":"example"}"#, r#""name":"b""#, "name"),
            (r#""cohortName":"#, r#""cohortName":"b""#, "cohortName"),
        ] {
            // In both objects, so that the stored one could be an excuse.
            let body = with_pair(&own, mark, pair);
            for path in ["/validate", "/mutate"] {
                let (status, body) = post(&server, path, json, body.clone()).await;
                assert_eq!(status, StatusCode::OK);
                let answer: Value = serde_json::from_str(&body).unwrap();
                let status = &answer["response"]["status"];
                assert_eq!(answer["response"]["allowed"], false, "{body}");
                assert_eq!(status["code"], 400, "{body}");
                let message = format!("request.{field} holds the key \"{key}\" twice");
                let told = status["message"].as_str().unwrap();
                assert!(told.starts_with(&message), "{told}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_said_of_a_local_queue_where_no_queue_is_known() {
    let local = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "LocalQueue",
        "metadata": {"name": "example", "namespace": "team"}, "spec": {"clusterQueue": "q"},
    });
    let both = json!({"object": local, "oldObject": local});
    for operation in ["CREATE", "UPDATE", "DELETE"] {
        for path in ["/validate", "/mutate"] {
            let known = request("lockkeeper.dev", "v1alpha1", "LocalQueue", operation, &both);
            let answer = review(&server(), path, &known).await;
            let uid = &known["request"]["uid"];
            assert_eq!(answer, json!({"uid": uid, "allowed": true}));
            for (version, kind) in [("v1alpha1", "RemoteQueue"), ("v9", "LocalQueue")] {
                let unknown = request("lockkeeper.dev", version, kind, operation, &both);
                let answer = review(&server(), path, &unknown).await;
                let message = answer["status"]["message"].as_str().unwrap();
                assert!(message.contains("not known to this version"), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_review_gets_an_http_error_and_the_next_request_is_served() {
    let server = server();
    let good = create(&queue(&json!({}))).to_string().into_bytes();
    let truncated = good.get(..good.len() / 2).unwrap().to_vec();
    let json = "application/json";
    for (content_type, body, code, part) in [
        (json, Vec::new(), 400, "EOF"),
        (json, truncated, 400, "EOF"),
        (json, b"null".to_vec(), 400, "not an AdmissionReview"),
        (json, b"\xff\xfe".to_vec(), 400, "not an AdmissionReview"),
        (
            json,
            br#"{"request": {"kind": {}}}"#.to_vec(),
            400,
            "request.uid",
        ),
        (json, vec![b' '; BODY_LIMIT_BYTES + 1], 413, "524288 bytes"),
        ("text/plain", good.clone(), 415, "send application/json"),
        ("", good.clone(), 415, "send application/json"),
    ] {
        let (status, text) = post(&server, "/validate", content_type, body).await;
        assert_eq!(status.as_u16(), code, "{text}");
        assert!(text.contains(part), "{text}");
        let (status, _) = post(
            &server,
            "/validate",
            "application/json; charset=utf-8",
            good.clone(),
        )
        .await;
        assert_eq!(status, StatusCode::OK, "the next request is served");
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit() {
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 4096]));
    let request = Request::post("/validate").header("Content-Type", "application/json");
    let request = request.body(Body::from_stream(endless)).unwrap();
    let response = server().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    for (method, path, code) in [
        ("GET", "/validate", 405),
        ("POST", "/", 404),
        ("GET", "/livez", 200),
        ("GET", "/readyz", 200),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(Body::empty())
            .unwrap();
        assert_eq!(
            server().oneshot(request).await.unwrap().status().as_u16(),
            code,
            "{path}"
        );
    }
}

/// A ClusterQueue of Kueue's with this specification.
fn of_kueue(spec: &Value) -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {"name": "example"}, "spec": spec,
    })
}

/// What is answered to an object of Kueue's that is made.
async fn made_for_kueue(config: &Value, object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap();
    let objects = json!({ "object": object });
    let made = request("kueue.x-k8s.io", "v1beta2", kind, "CREATE", &objects);
    review(&server_with(config), "/validate", &made).await
}

#[tokio::test]
async fn what_kueue_enforces_itself_is_off_for_its_queues_and_ours_is_on_top() {
    let mut spec = quota("5");
    spec["preemption"] = json!({"withinClusterQueue": "Never"});
    let answer = made_for_kueue(&json!({}), &of_kueue(&spec)).await;
    assert_eq!(
        (&answer["allowed"], &answer["warnings"]),
        (&json!(true), &Value::Null)
    );

    let pointless = of_kueue(&json!({"preemption": {"reclaimWithinCohort": "Any"}}));
    let answer = made_for_kueue(&json!({}), &pointless).await;
    assert_eq!(answer["allowed"], true);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("CQ022 spec.preemption.reclaimWithinCohort"),
        "{warning}"
    );

    let config = json!({"rules": {"actions": {"CQ007": "enforce", "CQ022": "enforce"}}});
    for (object, field) in [
        (
            of_kueue(&spec),
            "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        ),
        (pointless, "spec.preemption.reclaimWithinCohort"),
    ] {
        let answer = made_for_kueue(&config, &object).await;
        let status = &answer["status"];
        assert_eq!(status["code"], 422, "{answer}");
        assert_eq!(status["details"]["group"], "kueue.x-k8s.io");
        assert_eq!(status["details"]["causes"][0]["field"], field);
    }
}

#[tokio::test]
async fn every_kind_of_others_is_known() {
    for kind in [
        "ClusterQueue",
        "Cohort",
        "ResourceFlavor",
        "LocalQueue",
        "Workload",
    ] {
        let mut object = of_kueue(&json!({}));
        object["kind"] = json!(kind);
        let answer = made_for_kueue(&json!({}), &object).await;
        assert_eq!(
            (&answer["allowed"], &answer["warnings"]),
            (&json!(true), &Value::Null)
        );
    }
    let quota = json!({
        "metadata": {"name": "a", "namespace": "team", "labels": {"quota.scheduling.koordinator.sh/parent": "a"}},
    });
    let objects = json!({ "object": quota });
    let group = "scheduling.sigs.k8s.io";
    let made = request(group, "v1alpha1", "ElasticQuota", "CREATE", &objects);
    let answer = review(&server(), "/validate", &made).await;
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("EQ021 "), "{warning}");
}

/// It may be of a newer form than is known here.
#[tokio::test]
async fn an_object_of_others_that_does_not_decode_passes() {
    let newer = of_kueue(&json!({"cohortName": {"name": "c"}}));
    let answer = made_for_kueue(&json!({}), &newer).await;
    assert_eq!(answer["allowed"], true);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("not checked: spec.cohortName"),
        "{warning}"
    );
}

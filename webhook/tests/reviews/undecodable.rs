//! Objects that do not decode.

use super::{create, post, queue, quota, request, review, server};
use axum::http::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn undecodable_object_error_names_field() {
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
        // The schema has a better message, so the object is allowed unchanged.
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
async fn oversized_numbers_and_deep_nesting_are_rejected() {
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

/// Seeds of the fuzz tests. The first does not decode into a `Value`: it is nested too deep, and a
/// number in it fits no type. The second is a list of the fields of a review.
#[tokio::test]
async fn unneeded_undecodable_objects_are_ignored() {
    for (body, fits_a_value) in [
        (
            &include_bytes!("../../../tests/fuzz/seeds/review/not-decoded.json")[..],
            false,
        ),
        (
            include_bytes!("../../../tests/fuzz/seeds/review/list.json"),
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
async fn undecodable_stored_object_can_be_deleted() {
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
async fn undecodable_stored_object_disables_defaulting() {
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

//! The fields of a request besides its objects.

use super::{BODY_LIMIT_BYTES, create, post, queue, quota, request, review, server};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

#[tokio::test]
async fn every_response_carries_the_uid() {
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

/// Inserts a key and a value before every occurrence of `mark`.
fn with_pair(review_of: &Value, mark: &str, pair: &str) -> Vec<u8> {
    let text = review_of.to_string();
    assert!(text.contains(mark), "{mark} is not in {text}");
    text.replace(mark, &format!("{pair},{mark}")).into_bytes()
}

/// A review of each operation with both objects, and the field of the object that it is about.
fn reviews_with_object() -> impl Iterator<Item = (Value, &'static str)> {
    let object = queue(&quota("1"));
    let both = json!({"object": object, "oldObject": object});
    let operations = [
        ("CREATE", "object"),
        ("DELETE", "oldObject"),
        ("UPDATE", "object"),
    ];
    operations.into_iter().map(move |(operation, field)| {
        let kind = "ClusterQueue";
        let review = request("lockkeeper.dev", "v1alpha1", kind, operation, &both);
        (review, field)
    })
}

#[tokio::test]
async fn duplicate_key_is_rejected() {
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

    for (own, field) in reviews_with_object() {
        for (mark, pair, key) in [
            (r#""spec":"#, r#""spec":{}"#, "spec"),
            (r#""metadata":"#, r#""metadata":{"name":"b"}"#, "metadata"),
            (r#""name":"example"}"#, r#""name":"b""#, "name"),
            (r#""cohortName":"#, r#""cohortName":"b""#, "cohortName"),
        ] {
            // In both objects: ratcheting must not apply.
            let body = with_pair(&own, mark, pair);
            for path in ["/validate", "/mutate"] {
                let (status, body) = post(&server, path, json, body.clone()).await;
                assert_eq!(status, StatusCode::OK);
                let answer: Value = serde_json::from_str(&body).unwrap();
                let status = &answer["response"]["status"];
                assert_eq!(answer["response"]["allowed"], false, "{body}");
                assert_eq!(status["code"], 400, "{body}");
                let message = format!("request.{field} has the duplicate key \"{key}\"");
                let text = status["message"].as_str().unwrap();
                assert!(text.starts_with(&message), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn object_that_is_not_json_is_rejected() {
    let server = server();
    for (review_of, field) in reviews_with_object() {
        // The bracket is closed, so only the decoder of the object detects it.
        let body = with_pair(&review_of, r#""spec":"#, r#""extra":{"a"}"#);
        for path in ["/validate", "/mutate"] {
            let (status, body) = post(&server, path, "application/json", body.clone()).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            let answer: Value = serde_json::from_str(&body).unwrap();
            let status = &answer["response"]["status"];
            assert_eq!(answer["response"]["allowed"], false, "{body}");
            assert_eq!(status["code"], 400, "{body}");
            let text = status["message"].as_str().unwrap();
            let message = format!("request.{field} is not valid JSON: ");
            assert!(text.starts_with(&message), "{text}");
        }
    }
}

#[tokio::test]
async fn local_queue_without_known_queues_has_no_findings() {
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
                assert!(
                    message.contains("not supported by this version"),
                    "{message}"
                );
            }
        }
    }
}

#[tokio::test]
async fn non_review_body_is_http_error_and_connection_stays() {
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
        ("text/plain", good.clone(), 415, "not application/json"),
        ("", good.clone(), 415, "not application/json"),
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
async fn unbounded_body_is_rejected_at_limit() {
    let unbounded = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 4096]));
    let request = Request::post("/validate").header("Content-Type", "application/json");
    let request = request.body(Body::from_stream(unbounded)).unwrap();
    let response = server().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn other_paths_and_methods_are_rejected() {
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

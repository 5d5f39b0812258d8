//! Reviews need a token of an API server (KEP-6060), if an audience is set.
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
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use kube::Client;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_testkit::{Rng, new_signing_key};
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::caller_tokens::{CallerTokens, KeyDiscovery, KeySet};
use lockkeeper_webhook::http::router;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use tower::{ServiceExt, service_fn};

const AUDIENCE: &str = "https://lockkeeper.lockkeeper-system.svc:443";
const ISSUER: &str = "https://cluster.example.com";

/// A key of the cluster.
struct SigningKey {
    id: &'static str,
    key: EncodingKey,
}

impl SigningKey {
    fn new(id: &'static str) -> Self {
        let key = EncodingKey::from_ec_der(&new_signing_key());
        Self { id, key }
    }

    fn token(&self, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.id.to_owned());
        encode(&header, claims, &self.key).unwrap()
    }

    /// The document that the API server serves.
    fn published(&self) -> String {
        let mut key = Jwk::from_encoding_key(&self.key, Algorithm::ES256).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        serde_json::to_string(&JwkSet { keys: vec![key] }).unwrap()
    }

    fn key_set(&self) -> KeySet {
        KeySet::from_json(ISSUER.to_owned(), &self.published()).unwrap()
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// The claims that Kubernetes 1.37 issues for the token of an API server.
fn claims(path: &str) -> Value {
    let bound = match path {
        "/mutate" => "mutatingwebhookconfiguration",
        _ => "validatingwebhookconfiguration",
    };
    json!({
        "iss": ISSUER,
        "aud": [format!("{AUDIENCE}{path}")],
        "exp": now() + 600, "iat": now(), "nbf": now(),
        "sub": "system:serviceaccount:kube-system:webhook-tokens",
        "kubernetes.io": {
            "namespace": "kube-system",
            "serviceaccount": {"name": "webhook-tokens", "uid": "0"},
            bound: {"name": "lockkeeper", "uid": "1"},
            "attestations": {"admissionReviewAPIGroups": ["*"]},
        },
    })
}

fn app(tokens: Arc<CallerTokens>) -> Arc<AppState> {
    let app = AppState::offline(Settings::default(), Index::default(), 65_536);
    Arc::new(app.with_caller_tokens(tokens))
}

fn app_with_key(key: &SigningKey) -> Arc<AppState> {
    let tokens = CallerTokens::new(AUDIENCE);
    tokens.set_keys(key.key_set());
    app(Arc::new(tokens))
}

/// Sends a review about a group with the value of `Authorization`; the status code and the body of the response.
async fn send(
    app: &Arc<AppState>,
    path: &str,
    group: &str,
    authorization: Option<&str>,
) -> (StatusCode, String) {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "DELETE", "name": "low",
            "kind": {"group": group, "version": "v1", "kind": "PriorityClass"},
            "resource": {"group": group, "version": "v1", "resource": "priorityclasses"},
            "object": null, "oldObject": null,
        },
    });
    let mut request = Request::post(path).header("content-type", "application/json");
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    let request = request.body(Body::from(review.to_string())).unwrap();
    let response = router(Arc::clone(app)).oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Sends a review of `scheduling.k8s.io` with a token.
async fn send_token(app: &Arc<AppState>, path: &str, token: &str) -> (StatusCode, String) {
    let authorization = format!("Bearer {token}");
    send(app, path, "scheduling.k8s.io", Some(&authorization)).await
}

#[tokio::test]
async fn token_of_an_api_server_is_accepted() {
    let key = SigningKey::new("one");
    let app = app_with_key(&key);
    for path in ["/validate", "/mutate"] {
        let token = key.token(&claims(path));
        // The second time it is known.
        for _ in 0..2 {
            let (status, body) = send_token(&app, path, &token).await;
            assert_eq!(status, StatusCode::OK, "{path}: {body}");
        }
    }
    let rejected = "lockkeeper_webhook_rejected_tokens_total 0";
    assert!(app.metrics().prometheus().contains(rejected));
}

#[tokio::test]
async fn attested_group_must_be_that_of_the_review() {
    let key = SigningKey::new("one");
    let app = app_with_key(&key);
    let mut claims = claims("/validate");
    claims["kubernetes.io"]["attestations"]["admissionReviewAPIGroups"] = json!(["apps"]);
    let authorization = format!("Bearer {}", key.token(&claims));
    for (group, expected) in [
        ("apps", StatusCode::OK),
        ("batch", StatusCode::FORBIDDEN),
        ("", StatusCode::FORBIDDEN),
    ] {
        let (status, body) = send(&app, "/validate", group, Some(&authorization)).await;
        assert_eq!(status, expected, "{group:?}: {body}");
    }
}

#[tokio::test]
async fn other_tokens_are_rejected() {
    let key = SigningKey::new("one");
    let app = app_with_key(&key);
    let with = |pointer: &str, value: Value| {
        let mut claims = claims("/validate");
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = claims.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => parent.remove(name),
            value => parent.insert(name.to_owned(), value),
        };
        key.token(&claims)
    };
    let impostor = SigningKey::new("one");
    let unknown = SigningKey::new("two");
    let valid = key.token(&claims("/validate"));
    let (unsigned, _) = valid.rsplit_once('.').unwrap();
    let bound = "/kubernetes.io/validatingwebhookconfiguration";
    let groups = "/kubernetes.io/attestations/admissionReviewAPIGroups";
    for (token, status, text) in [
        (String::new(), 401, "no bearer token"),
        ("text".to_owned(), 401, "no JSON Web Token"),
        ("a.b.c".to_owned(), 401, "no JSON Web Token"),
        ("x".repeat(20_000), 401, "no JSON Web Token"),
        (format!("{unsigned}."), 401, "signature"),
        (impostor.token(&claims("/validate")), 401, "signature"),
        (unknown.token(&claims("/validate")), 401, "current key"),
        (with("/exp", json!(now() - 120)), 401, "not valid now"),
        (with("/exp", Value::Null), 401, "not valid now"),
        (with("/nbf", json!(now() + 120)), 401, "not valid now"),
        (
            with("/iss", json!("https://other")),
            401,
            "another issuer than https://cluster.example.com",
        ),
        (with("/iss", Value::Null), 401, "another issuer"),
        (with("/aud", json!([AUDIENCE])), 401, "svc:443/validate"),
        (with("/aud", Value::Null), 401, "svc:443/validate"),
        (key.token(&claims("/mutate")), 401, "svc:443/validate"),
        // What any tenant can request for its own account.
        (
            with(bound, Value::Null),
            403,
            "not bound to a ValidatingWebhookConfiguration",
        ),
        (with("/kubernetes.io", Value::Null), 403, "not bound"),
        (with(groups, Value::Null), 403, "admissionReviewAPIGroups"),
        (with(groups, json!([])), 403, "admissionReviewAPIGroups"),
        (with(groups, json!([""])), 403, "admissionReviewAPIGroups"),
        (
            with(groups, json!(["*", "apps"])),
            403,
            "admissionReviewAPIGroups",
        ),
    ] {
        let (got, body) = send_token(&app, "/validate", &token).await;
        assert_eq!(got.as_u16(), status, "{body}");
        assert!(body.contains(text), "{text:?} is not in {body:?}");
        assert!(token.is_empty() || !body.contains(&token), "{body}");
    }
    let (status, _) = send(&app, "/validate", "apps", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let basic = send(&app, "/validate", "apps", Some("Basic YTpi")).await;
    assert_eq!(basic.0, StatusCode::UNAUTHORIZED);
    let rejected = "lockkeeper_webhook_rejected_tokens_total 23";
    assert!(app.metrics().prometheus().contains(rejected));
}

/// Every byte of a token is signed, or is the signature.
#[tokio::test]
async fn changed_tokens_are_rejected() {
    let key = SigningKey::new("one");
    let app = app_with_key(&key);
    let token = key.token(&claims("/validate"));
    let mut rng = Rng::new(7);
    for _ in 0..500 {
        let mut bytes = token.clone().into_bytes();
        let at = rng.below(bytes.len());
        // Visible characters, which a header can have.
        bytes[at] = b'!' + u8::try_from(rng.below(94)).unwrap();
        let changed = String::from_utf8(bytes).unwrap();
        if changed == token {
            continue;
        }
        let (status, body) = send_token(&app, "/validate", &changed).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{changed}: {body}");
    }
}

/// The header names the algorithm; a symmetric one would let everyone sign with the public key.
#[tokio::test]
async fn algorithm_of_the_key_is_the_only_one() {
    let key = SigningKey::new("one");
    let app = app_with_key(&key);
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("one".to_owned());
    let public = EncodingKey::from_secret(key.published().as_bytes()).unwrap();
    let token = encode(&header, &claims("/validate"), &public).unwrap();
    let (status, body) = send_token(&app, "/validate", &token).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{body}");
    assert!(body.contains("current key"), "{body}");
    let symmetric = r#"{"keys": [{"kty": "oct", "kid": "one", "alg": "HS256", "k": "AAAA"}]}"#;
    let error = KeySet::from_json(ISSUER.to_owned(), symmetric).unwrap_err();
    assert!(
        error.to_string().contains("no key that can be used"),
        "{error}"
    );
    let error = KeySet::from_json(ISSUER.to_owned(), "[]").unwrap_err();
    assert!(error.to_string().contains("JSON Web Key Set"), "{error}");
}

#[tokio::test]
async fn tokens_of_a_removed_key_end_with_it() {
    let old = SigningKey::new("old");
    let tokens = Arc::new(CallerTokens::new(AUDIENCE));
    tokens.set_keys(old.key_set());
    let app = app(Arc::clone(&tokens));
    let token = old.token(&claims("/validate"));
    assert_eq!(
        send_token(&app, "/validate", &token).await.0,
        StatusCode::OK
    );
    tokens.set_keys(SigningKey::new("new").key_set());
    let (status, _) = send_token(&app, "/validate", &token).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn conversions_and_probes_need_no_token() {
    let app = app_with_key(&SigningKey::new("one"));
    // The body is no ConversionReview, and was read.
    let (status, body) = send(&app, "/convert", "", None).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body.contains("unsupported apiVersion"), "{body}");
    for path in ["/livez", "/readyz"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router(Arc::clone(&app)).oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
    }
}

/// The documents of an API server, which can change.
#[derive(Clone, Default)]
struct FakeApiServer {
    /// Without keys, reading them is forbidden.
    keys: Arc<Mutex<Option<String>>>,
    /// Whether it never answers.
    hangs: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
}

impl FakeApiServer {
    fn client(&self) -> Client {
        let server = self.clone();
        let answer = service_fn(move |request: Request<kube::client::Body>| {
            let server = server.clone();
            async move {
                let path = request.uri().path().to_owned();
                server.requests.fetch_add(1, Ordering::SeqCst);
                if server.hangs.load(Ordering::SeqCst) {
                    pending::<()>().await;
                }
                let keys = server.keys.lock().await.clone();
                let answer = match (path.as_str(), keys) {
                    ("/.well-known/openid-configuration", _) => {
                        (200, json!({"issuer": ISSUER}).to_string())
                    }
                    ("/openid/v1/jwks", Some(keys)) => (200, keys),
                    _ => (403, json!({"kind": "Status", "code": 403, "message": "no", "reason": "Forbidden", "status": "Failure"}).to_string()),
                };
                let response = axum::http::Response::builder().status(answer.0);
                Ok::<_, Infallible>(response.body(Body::from(answer.1)).unwrap())
            }
        });
        Client::new(answer, "default")
    }
}

async fn readiness(app: &Arc<AppState>) -> (StatusCode, String) {
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    let response = router(Arc::clone(app)).oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Lets virtual time pass, a second at a time, until a condition holds.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..3_600 {
        if holds().await {
            return;
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    panic!("not within an hour: {what}");
}

#[tokio::test(start_paused = true)]
async fn keys_are_read_again_for_a_token_of_a_new_key() {
    let (old, new) = (SigningKey::new("old"), SigningKey::new("new"));
    let server = FakeApiServer::default();
    let requests = || server.requests.load(Ordering::SeqCst);
    let tokens = Arc::new(CallerTokens::new(AUDIENCE));
    let app = app(Arc::clone(&tokens));
    let token = old.token(&claims("/validate"));
    let (status, _) = send_token(&app, "/validate", &token).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    tokio::spawn(KeyDiscovery::new(server.client(), tokens, None).run());
    let role = "system:service-account-issuer-discovery";
    eventually("unready for the missing role", async || {
        let (status, body) = readiness(&app).await;
        status == StatusCode::SERVICE_UNAVAILABLE && body.contains(role)
    })
    .await;

    *server.keys.lock().await = Some(old.published());
    eventually("ready", async || readiness(&app).await.0 == StatusCode::OK).await;
    let (status, body) = send_token(&app, "/validate", &token).await;
    assert_eq!(status, StatusCode::OK, "{body}");

    // After a rotation of the cluster's key, many tokens of an unknown key cause one read, of two documents.
    *server.keys.lock().await = Some(new.published());
    let token = new.token(&claims("/validate"));
    let before = requests();
    for _ in 0..100 {
        let (status, _) = send_token(&app, "/validate", &token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    eventually("read again", async || requests() >= before + 2).await;
    eventually("accepted", async || {
        send_token(&app, "/validate", &token).await.0 == StatusCode::OK
    })
    .await;
    assert_eq!(requests(), before + 2);

    // An API server that rejects the read or does not answer takes no key away.
    *server.keys.lock().await = None;
    for hangs in [false, true] {
        server.hangs.store(hangs, Ordering::SeqCst);
        let before = requests();
        eventually("three failed reads", async || requests() >= before + 6).await;
        let (status, body) = send_token(&app, "/validate", &token).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn configured_issuer_replaces_that_of_the_api_server() {
    let key = SigningKey::new("one");
    let server = FakeApiServer::default();
    *server.keys.lock().await = Some(key.published());
    let tokens = Arc::new(CallerTokens::new(AUDIENCE));
    let app = app(Arc::clone(&tokens));
    let issuer = "https://other.example.com";
    let discovery = KeyDiscovery::new(server.client(), tokens, Some(issuer.to_owned()));
    tokio::spawn(discovery.run());
    eventually("ready", async || readiness(&app).await.0 == StatusCode::OK).await;
    let mut claims = claims("/validate");
    let (status, body) = send_token(&app, "/validate", &key.token(&claims)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(body.contains(issuer), "{body}");
    claims["iss"] = json!(issuer);
    let (status, _) = send_token(&app, "/validate", &key.token(&claims)).await;
    assert_eq!(status, StatusCode::OK);
}

//! Metrics through the router: the series that a request changes, and their documentation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod documentation;
mod scrape;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use lockkeeper_api::config::Config;
use lockkeeper_policies::cluster_view::PriorityClassFacts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::{router, router_with};
use lockkeeper_webhook::live_lookup::ObjectLookup;
use lockkeeper_webhook::load_shedding::{LoadLimits, LoadShedder};
use lockkeeper_webhook::metrics::CertificateProbe;
use lockkeeper_webhook::stores::StoreReadiness;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use tokio::io::AsyncReadExt;
use tower::ServiceExt;

const BODY_LIMIT_BYTES: usize = 64 * 1024;

fn app(config: &Value) -> Arc<AppState> {
    let config: Config = serde_json::from_value(config.clone()).unwrap();
    let settings = registry::settings(&config).unwrap();
    let app = AppState::offline(settings, Index::default(), BODY_LIMIT_BYTES);
    Arc::new(app.with_certificate(CertificateProbe {
        not_after_seconds: Box::new(|| 1_800_000_000),
        reloads: Box::new(|| 3),
        failures: Box::new(|| 1),
        rejected_clients: Box::new(|| 2),
    }))
}

/// A review of a ClusterQueue that lends more than it has.
fn review() -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "CREATE", "name": "q",
        "kind": {"group": "lockkeeper.dev", "version": "v1alpha1", "kind": "ClusterQueue"},
        "object": {
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "q"},
            "spec": {"cohortName": "c", "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                {"name": "f", "resources": [
                    {"name": "cpu", "nominalQuota": "4", "lendingLimit": "5"}]}
            ]}]},
        },
    }})
}

async fn post(router: Router, path: &str, body: String) {
    let request = Request::post(path).header("Content-Type", "application/json");
    let response = router
        .oneshot(request.body(Body::from(body)).unwrap())
        .await;
    response.unwrap().into_body().collect().await.unwrap();
}

/// Returns every series that is not zero, except durations and constants.
fn changed_metrics(app: &AppState) -> BTreeMap<String, String> {
    let still = [
        "build_info",
        "store_synced",
        "certificate_",
        "clients_rejected",
    ];
    let text = app.metrics().prometheus();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| line.strip_prefix("lockkeeper_webhook_").expect(line))
        .filter(|line| {
            !line.starts_with("request_duration_seconds_sum") && !line.contains("_bucket{")
        })
        .filter(|line| !still.iter().any(|prefix| line.starts_with(prefix)))
        .map(|line| line.rsplit_once(' ').unwrap())
        .filter(|(_, value)| *value != "0" && *value != "0.0")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn check(moved: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    let expected = expected.iter();
    let expected = expected.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    assert_eq!(*moved, expected.collect());
}

/// Posts one body and checks the series that it changes, except those of every request.
async fn check_review(config: Value, path: &str, body: String, expected: &[(&str, &str)]) {
    let app = app(&config);
    let length = body.len().to_string();
    post(router(Arc::clone(&app)), &format!("/{path}"), body).await;
    let durations = format!("request_duration_seconds_count{{path=\"{path}\"}}");
    let mut all = vec![
        ("body_bytes_count", "1"),
        ("body_bytes_sum", length.as_str()),
        (durations.as_str(), "1"),
    ];
    all.extend(expected);
    let mut moved = changed_metrics(&app);
    if let Some(sum) = moved.get_mut("body_bytes_sum") {
        *sum = sum.trim_end_matches(".0").to_owned();
    }
    check(&moved, &all);
}

const QUEUE: &str = r#"requests_total{kind="ClusterQueue",operation="create",path="validate""#;

#[tokio::test]
async fn a_denied_review_counts_with_its_rule() {
    let series = format!(r#"{QUEUE},verdict="denied"}}"#);
    let hit = r#"rule_hits_total{rule="CQ007",action="enforce"}"#;
    let expected = [(series.as_str(), "1"), (hit, "1")];
    check_review(json!({}), "validate", review().to_string(), &expected).await;
}

#[tokio::test]
async fn a_warned_review_counts_with_its_rule() {
    let config = json!({"rules": {"actions": {"CQ007": "warn"}}});
    let series = format!(r#"{QUEUE},verdict="warned"}}"#);
    let hit = r#"rule_hits_total{rule="CQ007",action="warn"}"#;
    let expected = [(series.as_str(), "1"), (hit, "1")];
    check_review(config, "validate", review().to_string(), &expected).await;
}

#[tokio::test]
async fn an_audited_review_is_allowed() {
    let config = json!({"rules": {"actions": {"CQ007": "audit"}}});
    let series = format!(r#"{QUEUE},verdict="allowed"}}"#);
    let hit = r#"rule_hits_total{rule="CQ007",action="audit"}"#;
    let expected = [(series.as_str(), "1"), (hit, "1")];
    check_review(config, "validate", review().to_string(), &expected).await;
}

#[tokio::test]
async fn allowed_review_counts_no_rule_hit() {
    let mut review = review();
    review["request"]["object"]["spec"]["resourceGroups"] = json!([]);
    let series = format!(r#"{QUEUE},verdict="allowed"}}"#);
    let expected = [(series.as_str(), "1")];
    check_review(json!({}), "validate", review.to_string(), &expected).await;
}

#[tokio::test]
async fn repeated_findings_of_a_rule_count_once() {
    let mut review = review();
    let group = review["request"]["object"]["spec"]["resourceGroups"][0].clone();
    let flavor = |name: &str| {
        let mut flavor = group["flavors"][0].clone();
        flavor["name"] = json!(name);
        flavor
    };
    review["request"]["object"]["spec"]["resourceGroups"][0]["flavors"] =
        json!([flavor("f"), flavor("g")]);
    let series = format!(r#"{QUEUE},verdict="denied"}}"#);
    let hit = r#"rule_hits_total{rule="CQ007",action="enforce"}"#;
    let expected = [(series.as_str(), "1"), (hit, "1")];
    check_review(json!({}), "validate", review.to_string(), &expected).await;
}

#[tokio::test]
async fn undecodable_body_counts_as_error_without_kind() {
    for path in ["validate", "mutate"] {
        let series = format!(
            r#"requests_total{{kind="other",operation="other",path="{path}",verdict="error"}}"#
        );
        let expected = [(series.as_str(), "1")];
        check_review(json!({}), path, "{".to_owned(), &expected).await;
    }
}

/// No part of a request becomes a label value: an unknown kind is `other`.
#[tokio::test]
async fn unknown_kind_creates_no_series() {
    let mut review = review();
    review["request"]["kind"]["kind"] = json!("MadeUp");
    review["request"]["operation"] = json!("PAINT");
    let series =
        r#"requests_total{kind="other",operation="other",path="validate",verdict="allowed"}"#;
    check_review(json!({}), "validate", review.to_string(), &[(series, "1")]).await;
}

#[tokio::test]
async fn shed_request_is_counted() {
    let app = app(&json!({}));
    let bounds = LoadLimits {
        requests_max: 0,
        ..LoadLimits::default()
    };
    let load = Arc::new(LoadShedder::new(bounds));
    let router = router_with(Arc::clone(&app), load, Arc::default());
    post(router, "/validate", review().to_string()).await;
    let series =
        r#"requests_total{kind="other",operation="other",path="validate",verdict="error"}"#;
    let expected = [
        ("requests_shed_total", "1"),
        (r#"request_duration_seconds_count{path="validate"}"#, "1"),
        (series, "1"),
    ];
    check(&changed_metrics(&app), &expected);
}

/// The request of a client that disconnects does not stay in flight.
#[tokio::test]
async fn disconnected_client_counts_as_error() {
    let app = app(&json!({}));
    let request = Request::post("/mutate").header("Content-Type", "application/json");
    let (never, body) = tokio::io::duplex(1);
    let body = futures_util::stream::unfold(body, |mut body| async move {
        let mut byte = [0];
        body.read_exact(&mut byte).await.ok()?;
        Some((Ok::<_, std::io::Error>(byte.to_vec()), body))
    });
    let request = request.body(Body::from_stream(body)).unwrap();
    let mut answer = router(Arc::clone(&app)).oneshot(request);
    let pending = futures_util::poll!(&mut answer);
    assert!(pending.is_pending());
    assert_eq!(changed_metrics(&app)["requests_in_flight"], "1");
    drop((answer, never));
    let series = r#"requests_total{kind="other",operation="other",path="mutate",verdict="error"}"#;
    let expected = [
        (r#"request_duration_seconds_count{path="mutate"}"#, "1"),
        (series, "1"),
    ];
    check(&changed_metrics(&app), &expected);
}

/// An API server that has the class `there`, and fails for `broken`.
struct FakeLookup;

impl ObjectLookup for FakeLookup {
    fn priority_class<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        let facts = PriorityClassFacts {
            value: 1,
            global_default: false,
            preemption_policy: None,
        };
        let answer = match name {
            "there" => Ok(Some(facts)),
            "broken" => Err(kube::Error::TlsRequired),
            _ => Ok(None),
        };
        std::future::ready(answer).boxed()
    }
}

/// A review that is retried after a lookup counts once.
#[tokio::test]
async fn live_lookups_are_counted_by_result() {
    let mut index = Index::default();
    index.mark_complete(IndexedKind::PriorityClass);
    let app = Arc::new(AppState::connected(
        Settings::default(),
        Arc::new(RwLock::new(index)),
        StoreReadiness::always(),
        Box::new(FakeLookup),
        BODY_LIMIT_BYTES,
    ));
    for class in ["there", "broken", "lost", "lost"] {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "request": {
            "uid": "1", "operation": "CREATE",
            "kind": {"group": "lockkeeper.dev", "version": "v1alpha1", "kind": "Workload"},
            "object": {
                "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
                "metadata": {"name": "w", "namespace": "team"},
                "spec": {"podSets": [{"template": {}}], "priorityClassName": class,
                    "preemptionPriorityClassName": class},
            },
        }});
        post(router(Arc::clone(&app)), "/validate", review.to_string()).await;
    }
    let mut moved = changed_metrics(&app);
    moved.retain(|name, _| !name.starts_with("body_bytes"));
    let workload = r#"requests_total{kind="Workload",operation="create",path="validate",verdict="#;
    let denied = format!("{workload}\"denied\"}}");
    let warned = format!("{workload}\"warned\"}}");
    let allowed = format!("{workload}\"allowed\"}}");
    let expected = [
        (r#"live_lookups_total{result="found"}"#, "1"),
        (r#"live_lookups_total{result="failed"}"#, "1"),
        (r#"live_lookups_total{result="not_found"}"#, "1"),
        (r#"live_lookups_total{result="cached"}"#, "1"),
        (r#"request_duration_seconds_count{path="validate"}"#, "4"),
        (r#"rule_hits_total{rule="WL004",action="enforce"}"#, "2"),
        (&allowed, "1"),
        (&warned, "1"),
        (&denied, "2"),
    ];
    check(&moved, &expected);
}

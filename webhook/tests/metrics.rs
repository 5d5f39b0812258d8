//! Metrics through the router: the series that a request changes, and their documentation.
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
use axum::http::Request;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use lockkeeper_api::config::Config;
use lockkeeper_kube_support::probe_server::ProbeServerLimits;
use lockkeeper_policies::cluster_view::PriorityClassFacts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user_rules;
use lockkeeper_testkit::assert_file_is_current;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::{router, router_with};
use lockkeeper_webhook::live_lookup::ObjectLookup;
use lockkeeper_webhook::load_shedding::{LoadLimits, LoadShedder};
use lockkeeper_webhook::metrics::CertificateProbe;
use lockkeeper_webhook::metrics_server;
use lockkeeper_webhook::stores::StoreReadiness;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use std::{env, fs};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
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
            "spec": {"cohortName": "c", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
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

/// One exchange with the port for scrapers.
async fn scrape(path: &str, accept: &str) -> String {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let server = tokio::spawn(metrics_server::serve(
        tcp,
        app(&json!({})),
        ProbeServerLimits::default(),
    ));
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: h\r\nAccept: {accept}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The server closes: each connection has one request.
    client.read_to_string(&mut answer).await.unwrap();
    server.abort();
    answer
}

#[tokio::test]
async fn metrics_server_serves_both_formats_only() {
    let plain = scrape("/metrics", "*/*").await;
    assert!(
        plain.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{plain}"
    );
    assert!(
        plain.contains("# TYPE lockkeeper_webhook_requests_total counter\n"),
        "{plain}"
    );
    assert!(plain.contains("\nlockkeeper_webhook_certificate_not_after_seconds 1800000000\n"));
    assert!(
        plain.contains("\nlockkeeper_webhook_certificate_reloads_total{result=\"applied\"} 3\n")
    );
    assert!(plain.contains("\nlockkeeper_webhook_store_synced{store=\"pods\"} 1\n"));
    let open = scrape("/metrics", "application/openmetrics-text; version=1.0.0").await;
    assert!(
        open.contains("content-type: application/openmetrics-text"),
        "{open}"
    );
    assert!(open.ends_with("# EOF\n"), "{open}");
    assert!(scrape("/healthz", "*/*").await.ends_with("\r\n\r\nok\n"));
    for path in ["/", "/validate", "/readyz"] {
        assert!(
            scrape(path, "*/*").await.starts_with("HTTP/1.1 404 "),
            "{path}"
        );
    }
}

/// A timeout that the test exceeds.
const SHORT: Duration = Duration::from_millis(200);

/// Starts a metrics port with these limits.
async fn start_metrics_server(limits: ProbeServerLimits) -> SocketAddr {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    tokio::spawn(metrics_server::serve(tcp, app(&json!({})), limits));
    address
}

#[tokio::test]
async fn slow_scraper_is_disconnected() {
    let head_late = ProbeServerLimits {
        header_timeout: SHORT,
        connection_timeout: Duration::MAX,
        ..ProbeServerLimits::default()
    };
    let all_late = ProbeServerLimits {
        header_timeout: Duration::from_hours(1),
        connection_timeout: SHORT,
        ..ProbeServerLimits::default()
    };
    for limits in [head_late, all_late] {
        let mut client = TcpStream::connect(start_metrics_server(limits).await)
            .await
            .unwrap();
        client.write_all(b"GET /metrics HT").await.unwrap();
        let mut answer = Vec::new();
        // The wait ends, whichever way the connection is dropped.
        let _ = client.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn scraper_over_limit_waits_for_free_connection() {
    let address = start_metrics_server(ProbeServerLimits {
        connections_max: 1,
        ..ProbeServerLimits::default()
    })
    .await;
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    let whole = b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n";
    second.write_all(whole).await.unwrap();
    // Many more iterations than a response needs.
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    let early = second.try_read(&mut [0]).unwrap_err();
    assert_eq!(
        early.kind(),
        ErrorKind::WouldBlock,
        "it waits for its place"
    );
    drop(first);
    let mut answer = String::new();
    second.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
}

/// Returns the documentation of the metrics as two tables.
fn described(text: &str) -> String {
    let mut metrics: Vec<(String, String, String)> = Vec::new();
    let mut labels: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut help = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            rest.split_once(' ').unwrap().1.clone_into(&mut help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            metrics.push((name.to_owned(), kind.to_owned(), help.clone()));
        } else if let Some((_, rest)) = line.split_once('{') {
            let of = labels.entry(metrics.last().unwrap().0.clone()).or_default();
            for pair in rest.split_once('}').unwrap().0.split(',') {
                let (label, value) = pair.split_once('=').unwrap();
                let values = of.entry(label.to_owned()).or_default();
                values.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    metrics.sort();
    let mut out = String::from("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n");
    let mut values: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for (name, kind, help) in &metrics {
        let of = labels.get(name).into_iter().flatten();
        let of: Vec<_> = of.filter(|(label, _)| *label != "le").collect();
        for (label, known) in &of {
            let known = placeholder(label, known);
            values
                .entry(label)
                .or_default()
                .entry(known)
                .or_default()
                .push(name);
        }
        let of: Vec<String> = of.iter().map(|(label, _)| format!("`{label}`")).collect();
        writeln!(out, "| `{name}` | {kind} | {} | {help} |", of.join(", ")).unwrap();
    }
    out.push_str("\n| label | values |\n| --- | --- |\n");
    for (label, known) in values {
        let differs = known.len() > 1;
        for (known, names) in known {
            let of = if differs {
                format!(" of `{}`", names.join("`, `"))
            } else {
                String::new()
            };
            writeln!(out, "| `{label}`{of} | {known} |").unwrap();
        }
    }
    out
}

/// Returns settings with one user rule.
fn settings_with_user_rule(config: &Value) -> Settings {
    let config: Config = serde_json::from_value(config.clone()).unwrap();
    let text = "---\nid: TEAM001\nname: a\nkinds: [{version: v1, kind: Pod}]\nvalidations: [{expression: 'true'}]\n---\n";
    let source = user_rules::Source {
        name: "a.md".to_owned(),
        text: text.to_owned(),
    };
    let rules = Arc::new(
        user_rules::UserRules::parse(&[source], &lockkeeper_policies::registry::all()).unwrap(),
    );
    registry::settings_with(&config, rules).unwrap()
}

fn placeholder(label: &str, known: &BTreeSet<String>) -> String {
    match label {
        "version" => "the version of lockkeeper".to_owned(),
        "rule" => "the ids of all rules".to_owned(),
        "exception" => "the names of the exceptions".to_owned(),
        _ => {
            let known: Vec<String> = known.iter().map(|value| format!("`{value}`")).collect();
            known.join(", ")
        }
    }
}

/// `UPDATE_DOCS=1` updates the tables.
#[test]
fn documented_metrics_match_exposed_metrics() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let old = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- begin generated -->\n\n", "\n<!-- end generated -->");
    let (head, rest) = old.split_once(begin).expect(begin);
    let (_, tail) = rest.split_once(end).expect(end);
    // These series exist only for configured rules and exceptions.
    let config = json!({"rules": {"exceptions": [
        {"rules": ["CQ007"], "selector": {"names": ["a"]}, "reason": "r", "expires": "9999-12-31"},
    ]}});
    let named = app(&config);
    named.set_settings(settings_with_user_rule(&config));
    let tables = described(&named.metrics().prometheus());
    let new = format!("{head}{begin}{tables}{end}{tail}");
    let command = "cargo test -p lockkeeper-webhook --test metrics";
    assert_file_is_current(&path, &new, command);
}

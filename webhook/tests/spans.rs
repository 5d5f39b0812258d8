//! The spans of a review: their names, parents and attributes.
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
use futures_util::future::BoxFuture;
use lockkeeper_policies::cluster_view::PriorityClassFacts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router_with;
use lockkeeper_webhook::live_lookup::ObjectLookup;
use lockkeeper_webhook::load_shedding::{LoadLimits, LoadShedder};
use lockkeeper_webhook::stores::StoreReadiness;
use opentelemetry::trace::{SpanId, SpanKind, Status, TracerProvider};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, RwLock};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// The header of a client with a trace (W3C Trace Context).
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const NOT_SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Texts that no span may contain.
const CONTENT: &str = "a-word-of-the-object";
const USER: &str = "user@example.org";

/// Collects the spans that have ended.
#[derive(Clone, Debug, Default)]
struct Collector(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Collector {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.0.lock().unwrap().extend(batch);
        std::future::ready(Ok(()))
    }
}

/// An API server that has only the class `fresh`, and fails for `broken`.
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
        Box::pin(std::future::ready(match name {
            "fresh" => Ok(Some(facts)),
            "broken" => Err(kube::Error::TlsRequired),
            _ => Ok(None),
        }))
    }
}

/// The spans of a review.
struct RecordedSpans {
    status: StatusCode,
    spans: Vec<SpanData>,
}

impl RecordedSpans {
    #[track_caller]
    fn root(&self) -> &SpanData {
        // The root ends last.
        self.spans.last().expect("a span")
    }

    /// Returns the names of the steps, in the order of their ends. All are children of the root.
    #[track_caller]
    fn steps(&self) -> Vec<&str> {
        let root = self.root();
        let steps = &self.spans[..self.spans.len() - 1];
        for step in steps {
            assert_eq!(step.parent_span_id, root.span_context.span_id());
            assert_eq!(step.span_context.trace_id(), root.span_context.trace_id());
        }
        steps.iter().map(|step| &*step.name).collect()
    }

    #[track_caller]
    fn step(&self, name: &str) -> &SpanData {
        let step = self.spans.iter().find(|span| span.name == name);
        step.unwrap_or_else(|| panic!("no step {name}"))
    }
}

/// Returns the value of an attribute; empty if the span does not have it.
fn attribute(span: &SpanData, key: &str) -> String {
    let found = span.attributes.iter().find(|pair| pair.key.as_str() == key);
    found.map_or_else(String::new, |pair| pair.value.to_string())
}

/// A paused clock, which advances to the next timer when all tasks wait.
fn paused_runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Posts a body, with a caller's trace if there is one.
fn post(path: &str, traceparent: &str, body: &str, bounds: LoadLimits) -> RecordedSpans {
    let collector = Collector::default();
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_simple_exporter(collector.clone())
        .build();
    let mut index = Index::default();
    index.mark_complete(IndexedKind::PriorityClass);
    let index = Arc::new(RwLock::new(index));
    let (settings, ready) = (Settings::default(), StoreReadiness::always());
    let app = AppState::connected(settings, index, ready, Box::new(FakeLookup), 64 * 1024);
    let app = Arc::new(app.with_tracer(provider.tracer("test")));
    let server = router_with(app, Arc::new(LoadShedder::new(bounds)), Arc::default());
    let mut request = Request::post(path).header("Content-Type", "application/json");
    if !traceparent.is_empty() {
        request = request.header("traceparent", traceparent);
    }
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let runtime = paused_runtime();
    let response = runtime.block_on(server.oneshot(request)).unwrap();
    let spans = collector.0.lock().unwrap().clone();
    let text = format!("{spans:?}");
    assert!(!text.contains(CONTENT) && !text.contains(USER), "{text}");
    RecordedSpans {
        status: response.status(),
        spans,
    }
}

/// Returns a review that creates a workload of this class; without a class if it is empty.
fn review(class: &str, name: &str) -> Value {
    let class = Some(class).filter(|class| !class.is_empty());
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "a-uid", "operation": "CREATE", "name": name, "namespace": "team",
            "kind": {"group": "lockkeeper.dev", "version": "v1alpha1", "kind": "Workload"},
            "userInfo": {"username": USER},
            "object": {
                "metadata": {"name": name, "annotations": {"note": CONTENT}},
                "spec": {"podSets": [{"template": {}}], "priorityClassName": class},
            },
        },
    })
}

#[track_caller]
fn check(path: &str, class: &str) -> RecordedSpans {
    let body = review(class, "example").to_string();
    let seen = post(path, TRACEPARENT, &body, LoadLimits::default());
    assert_eq!(seen.status, StatusCode::OK);
    seen
}

#[test]
fn span_continues_trace_of_caller() {
    let seen = check("/validate", "");
    let root = seen.root();
    let context = &root.span_context;
    assert_eq!(
        context.trace_id().to_string(),
        "0af7651916cd43dd8448eb211c80319c"
    );
    assert_eq!(root.parent_span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(
        (&*root.name, &root.span_kind),
        ("validate", &SpanKind::Server)
    );
    assert_eq!(attribute(root, "http.route"), "/validate");
    assert_eq!(seen.steps(), ["read", "envelope", "decode", "rules"]);
}

#[test]
fn invalid_traceparent_starts_new_trace() {
    for traceparent in ["", "00-0-0-01", "nonsense"] {
        let body = review("", "example").to_string();
        let seen = post("/validate", traceparent, &body, LoadLimits::default());
        assert_eq!(seen.root().parent_span_id, SpanId::INVALID, "{traceparent}");
    }
}

#[test]
fn unsampled_parent_is_not_sampled() {
    let body = review("", "example").to_string();
    let seen = post("/validate", NOT_SAMPLED, &body, LoadLimits::default());
    assert_eq!(seen.status, StatusCode::OK);
    assert!(seen.spans.is_empty());
}

#[test]
fn span_has_object_and_outcome_attributes() {
    let seen = check("/validate", "lost");
    let root = seen.root();
    for (key, value) in [
        ("admission.uid", "a-uid"),
        ("admission.operation", "CREATE"),
        ("admission.group", "lockkeeper.dev"),
        ("admission.kind", "Workload"),
        ("admission.namespace", "team"),
        ("admission.name", "example"),
        ("admission.verdict", "denied"),
        ("admission.rules", "[\"WL004\"]"),
    ] {
        assert_eq!(attribute(root, key), value, "{key}");
    }
    assert_eq!(root.status, Status::Unset, "a rejection is no failure");
}

#[test]
fn lookup_span_is_followed_by_second_rules_span() {
    let seen = check("/validate", "fresh");
    assert_eq!(
        seen.steps(),
        ["read", "envelope", "decode", "rules", "lookup", "rules"]
    );
    let lookup = seen.step("lookup");
    assert_eq!(lookup.span_kind, SpanKind::Client);
    assert_eq!(attribute(lookup, "lookup.names"), "1");
    assert_eq!(lookup.status, Status::Unset);
    assert_eq!(attribute(seen.root(), "admission.verdict"), "allowed");
    let seen = check("/validate", "broken");
    assert!(matches!(seen.step("lookup").status, Status::Error { .. }));
    assert_eq!(attribute(seen.root(), "admission.verdict"), "warned");
}

#[test]
fn defaulting_has_its_own_span() {
    let seen = check("/mutate", "");
    assert_eq!(seen.root().name, "mutate");
    assert_eq!(seen.steps(), ["read", "envelope", "decode", "defaults"]);
}

#[test]
fn large_body_has_wait_span() {
    let bounds = LoadLimits {
        large_body_min_bytes: 0,
        ..LoadLimits::default()
    };
    let seen = post("/validate", "", &review("", "example").to_string(), bounds);
    assert_eq!(
        seen.steps(),
        ["read", "wait", "envelope", "decode", "rules"]
    );
}

#[test]
fn rejected_request_has_span() {
    for (path, body, bounds, code) in [
        ("/validate", "{}", LoadLimits::default(), "400"),
        (
            "/mutate",
            "",
            LoadLimits {
                requests_max: 0,
                ..LoadLimits::default()
            },
            "429",
        ),
    ] {
        let seen = post(path, TRACEPARENT, body, bounds);
        let root = seen.root();
        assert_eq!(attribute(root, "http.response.status_code"), code);
        assert_eq!(attribute(root, "admission.verdict"), "error");
        assert_eq!(root.status, Status::Unset, "it is the client's failure");
    }
}

#[test]
fn late_review_span_has_error_status() {
    let bounds = LoadLimits {
        large_body_min_bytes: 0,
        heavy_max: 0,
        ..LoadLimits::default()
    };
    let body = review("", "example").to_string();
    let seen = post("/validate?timeout=2s", "", &body, bounds);
    let root = seen.root();
    assert!(matches!(root.status, Status::Error { .. }), "{root:?}");
    assert_eq!(attribute(root, "admission.uid"), "a-uid");
    assert_eq!(attribute(root, "admission.verdict"), "error");
}

#[test]
fn long_request_text_is_truncated_in_span() {
    let body = review("", &"n".repeat(10_000)).to_string();
    let seen = post("/validate", "", &body, LoadLimits::default());
    let name = attribute(seen.root(), "admission.name");
    assert_eq!(name, "n".repeat(256));
}

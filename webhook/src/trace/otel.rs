//! Spans for a build with the feature `otel`.

use super::ReviewStep;
use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::app_state::AppState;
use crate::conversion_review;
use crate::metric_labels::{AdmissionOutcome, ConversionOutcome, ReviewPath};
use crate::request_view::LookupResults;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use lockkeeper_policies::cluster_view::Lookup;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span};
use std::borrow::Cow;

/// The longest text of an attribute, in characters, since the fields of a request are not limited. Names of
/// objects have at most 253.
const TEXT_LENGTH_MAX: usize = 256;

/// The span of a review. It ends when this is dropped, also when the client disconnects; a thread that still
/// evaluates the review can add nothing afterwards.
#[must_use = "the span ends when it is dropped"]
pub(crate) struct ReviewSpan(ReviewTrace);

impl ReviewSpan {
    /// Starts the span of a request, as a child of the caller's span if the headers have one (W3C Trace
    /// Context: `traceparent`, `tracestate`).
    pub(crate) fn new(app: &AppState, path: ReviewPath, headers: &HeaderMap) -> Self {
        let sampled = app.tracer.as_ref().and_then(|tracer| {
            let propagator = TraceContextPropagator::new();
            let parent = propagator.extract_with_context(&Context::new(), &Headers(headers));
            let (name, route) = match path {
                ReviewPath::Validate => ("validate", "/validate"),
                ReviewPath::Mutate => ("mutate", "/mutate"),
                ReviewPath::Convert => ("convert", "/convert"),
            };
            let span = tracer
                .span_builder(name)
                .with_kind(SpanKind::Server)
                .with_attributes([KeyValue::new("http.route", route)])
                .start_with_context(tracer, &parent);
            // Steps of a review that is not sampled are not recorded either.
            span.is_recording().then(|| SampledSpan {
                tracer: tracer.clone(),
                context: parent.with_span(span),
            })
        });
        Self(ReviewTrace(sampled))
    }

    pub(crate) fn trace(&self) -> &ReviewTrace {
        &self.0
    }
}

impl Drop for ReviewSpan {
    fn drop(&mut self) {
        if let ReviewTrace(Some(sampled)) = &self.0 {
            sampled.context.span().end();
        }
    }
}

/// Adds steps and attributes to the span of a review.
#[derive(Clone)]
pub(crate) struct ReviewTrace(Option<SampledSpan>);

#[derive(Clone)]
struct SampledSpan {
    tracer: SdkTracer,
    context: Context,
}

impl ReviewTrace {
    /// Starts the span of a step.
    pub(crate) fn begin(&self, step: ReviewStep) -> StepSpan {
        let name = match step {
            ReviewStep::Read => "read",
            ReviewStep::Wait => "wait",
            ReviewStep::Envelope => "envelope",
            ReviewStep::Decode => "decode",
            ReviewStep::Rules => "rules",
            ReviewStep::Defaults => "defaults",
            ReviewStep::Convert => "convert",
            ReviewStep::Lookup => "lookup",
        };
        let span = self.0.as_ref().map(|SampledSpan { tracer, context }| {
            let kind = match step {
                ReviewStep::Lookup => SpanKind::Client,
                _ => SpanKind::Internal,
            };
            let builder = tracer.span_builder(name).with_kind(kind);
            builder.start_with_context(tracer, context)
        });
        StepSpan(span)
    }

    /// Records the response that is sent.
    pub(crate) fn record_review(
        &self,
        request: &AdmissionRequest<'_>,
        response: &AdmissionResponse,
    ) {
        let verdict = match AdmissionOutcome::from_response(response) {
            AdmissionOutcome::Allowed => "allowed",
            AdmissionOutcome::Warned => "warned",
            AdmissionOutcome::Denied => "denied",
            AdmissionOutcome::Error => "error",
        };
        let rules = response.hits().iter();
        let mut rules: Vec<Cow<'static, str>> = rules.map(|(rule, _)| rule.clone()).collect();
        rules.sort_unstable();
        rules.dedup();
        let rules = rules.into_iter().map(StringValue::from).collect();
        self.set_attributes([
            KeyValue::new("admission.uid", truncated_text(&request.uid)),
            KeyValue::new("admission.operation", truncated_text(&request.operation)),
            KeyValue::new("admission.group", truncated_text(&request.kind.group)),
            KeyValue::new("admission.kind", truncated_text(&request.kind.name)),
            KeyValue::new("admission.namespace", truncated_text(&request.namespace)),
            KeyValue::new("admission.name", truncated_text(&request.name)),
            KeyValue::new("admission.verdict", verdict),
            KeyValue::new("admission.rules", Value::Array(Array::String(rules))),
        ]);
    }

    /// Records the result of a conversion review.
    pub(crate) fn record_conversion(
        &self,
        request: &conversion_review::ConversionRequest<'_>,
        result: ConversionOutcome,
    ) {
        let result = match result {
            ConversionOutcome::Converted => "converted",
            ConversionOutcome::Rejected => "rejected",
            ConversionOutcome::Error => "error",
        };
        let objects = i64::try_from(request.count()).unwrap_or(i64::MAX);
        self.set_attributes([
            KeyValue::new("conversion.uid", truncated_text(&request.uid)),
            KeyValue::new(
                "conversion.desired_api_version",
                truncated_text(&request.desired_version),
            ),
            KeyValue::new("conversion.objects", objects),
            KeyValue::new("conversion.result", result),
        ]);
    }

    /// Records that a conversion timed out.
    pub(crate) fn record_conversion_timeout(&self, uid: &str) {
        self.set_attributes([
            KeyValue::new("conversion.uid", truncated_text(uid)),
            KeyValue::new("conversion.result", "error"),
        ]);
        self.set_error("conversion timed out");
    }

    /// Records that a review timed out.
    pub(crate) fn record_timeout(&self, uid: &str) {
        self.set_attributes([
            KeyValue::new("admission.uid", truncated_text(uid)),
            KeyValue::new("admission.verdict", "error"),
        ]);
        self.set_error("review timed out");
    }

    /// Records that the request got an HTTP error.
    pub(crate) fn record_http_error(&self, code: StatusCode) {
        self.set_attributes([
            KeyValue::new("http.response.status_code", i64::from(code.as_u16())),
            KeyValue::new("admission.verdict", "error"),
        ]);
        // A client error is no error of a server span (OpenTelemetry semantic conventions for HTTP).
        if code.is_server_error() {
            self.set_error("response could not be encoded");
        }
    }

    fn set_attributes(&self, attributes: impl IntoIterator<Item = KeyValue>) {
        if let Some(sampled) = &self.0 {
            sampled.context.span().set_attributes(attributes);
        }
    }

    fn set_error(&self, description: &'static str) {
        if let Some(sampled) = &self.0 {
            sampled
                .context
                .span()
                .set_status(Status::error(description));
        }
    }
}

/// The span of a step; it ends when this is dropped.
#[must_use = "the step ends when it is dropped"]
pub(crate) struct StepSpan(Option<Span>);

impl StepSpan {
    /// Ends the span of a lookup with its results.
    pub(crate) fn end_with_lookups(mut self, results: &LookupResults) {
        let Some(span) = &mut self.0 else {
            return;
        };
        let names = i64::try_from(results.len()).unwrap_or(i64::MAX);
        span.set_attribute(KeyValue::new("lookup.names", names));
        if results.values().any(|result| *result == Lookup::Unknown) {
            span.set_status(Status::error("live lookup failed"));
        }
    }

    pub(crate) fn end(self) {
        drop(self);
    }
}

/// The headers of a request for the propagator.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

fn truncated_text(text: &str) -> String {
    text.chars().take(TEXT_LENGTH_MAX).collect()
}

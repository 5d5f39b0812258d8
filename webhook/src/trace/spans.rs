//! The build with spans.

use super::Step;
use crate::answer::Answer;
use crate::app::App;
use crate::conversion;
use crate::envelope::Request;
use crate::metrics::{Conversion, Outcome, Path};
use crate::world::Fetched;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use lockkeeper_policies::world::Lookup;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span};
use std::borrow::Cow;

/// The longest text that a span is given, in characters: what a request says of itself has no bound.
/// No name of an object is longer than 253.
const TEXT_LENGTH_MAX: usize = 256;

/// The span of a review. It ends with this, also when the client has gone away in the middle; what a
/// thread that still judges says afterwards is not heard.
#[must_use = "the span ends when it is dropped"]
pub(crate) struct Root(Trace);

impl Root {
    /// A request has come in. Its span goes on from the caller's, if the headers name one (W3C Trace
    /// Context: `traceparent`, `tracestate`).
    pub(crate) fn new(app: &App, path: Path, headers: &HeaderMap) -> Self {
        let sampled = app.tracer.as_ref().and_then(|tracer| {
            let propagator = TraceContextPropagator::new();
            let parent = propagator.extract_with_context(&Context::new(), &Headers(headers));
            let (name, route) = match path {
                Path::Validate => ("validate", "/validate"),
                Path::Mutate => ("mutate", "/mutate"),
                Path::Convert => ("convert", "/convert"),
            };
            let span = tracer
                .span_builder(name)
                .with_kind(SpanKind::Server)
                .with_attributes([KeyValue::new("http.route", route)])
                .start_with_context(tracer, &parent);
            // Of what is not sampled, no step is either.
            span.is_recording().then(|| Sampled {
                tracer: tracer.clone(),
                context: parent.with_span(span),
            })
        });
        Self(Trace(sampled))
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Trace(Some(sampled)) = &self.0 {
            sampled.context.span().end();
        }
    }
}

/// What is said of a review while it is in work.
#[derive(Clone)]
pub(crate) struct Trace(Option<Sampled>);

#[derive(Clone)]
struct Sampled {
    tracer: SdkTracer,
    context: Context,
}

impl Trace {
    /// A step begins.
    pub(crate) fn begin(&self, step: Step) -> Begun {
        let name = match step {
            Step::Read => "read",
            Step::Wait => "wait",
            Step::Envelope => "envelope",
            Step::Decode => "decode",
            Step::Rules => "rules",
            Step::Defaults => "defaults",
            Step::Convert => "convert",
            Step::Lookup => "lookup",
        };
        let begun = self.0.as_ref().map(|Sampled { tracer, context }| {
            let kind = match step {
                Step::Lookup => SpanKind::Client,
                _ => SpanKind::Internal,
            };
            let builder = tracer.span_builder(name).with_kind(kind);
            builder.start_with_context(tracer, context)
        });
        Begun(begun)
    }

    /// This is the answer that will be sent.
    pub(crate) fn judged(&self, request: &Request<'_>, answer: &Answer) {
        let verdict = match Outcome::of(answer) {
            Outcome::Allowed => "allowed",
            Outcome::Warned => "warned",
            Outcome::Denied => "denied",
            Outcome::Error => "error",
        };
        let rules = answer.hits().iter();
        let mut rules: Vec<Cow<'static, str>> = rules.map(|(rule, _)| rule.clone()).collect();
        rules.sort_unstable();
        rules.dedup();
        let rules = rules.into_iter().map(StringValue::from).collect();
        self.say([
            KeyValue::new("admission.uid", text(&request.uid)),
            KeyValue::new("admission.operation", text(&request.operation)),
            KeyValue::new("admission.group", text(&request.kind.group)),
            KeyValue::new("admission.kind", text(&request.kind.name)),
            KeyValue::new("admission.namespace", text(&request.namespace)),
            KeyValue::new("admission.name", text(&request.name)),
            KeyValue::new("admission.verdict", verdict),
            KeyValue::new("admission.rules", Value::Array(Array::String(rules))),
        ]);
    }

    /// This is what came of a conversion review.
    pub(crate) fn converted(&self, request: &conversion::Request<'_>, result: Conversion) {
        let result = match result {
            Conversion::Converted => "converted",
            Conversion::Refused => "refused",
            Conversion::Error => "error",
        };
        let objects = i64::try_from(request.count()).unwrap_or(i64::MAX);
        self.say([
            KeyValue::new("conversion.uid", text(&request.uid)),
            KeyValue::new("conversion.desired_api_version", text(&request.desired)),
            KeyValue::new("conversion.objects", objects),
            KeyValue::new("conversion.result", result),
        ]);
    }

    /// The time is over, and nothing was converted.
    pub(crate) fn late_conversion(&self, uid: &str) {
        self.say([
            KeyValue::new("conversion.uid", text(uid)),
            KeyValue::new("conversion.result", "error"),
        ]);
        self.fail("the objects were not converted in time");
    }

    /// The time is over, and what was checked does not count.
    pub(crate) fn late(&self, uid: &str) {
        self.say([
            KeyValue::new("admission.uid", text(uid)),
            KeyValue::new("admission.verdict", "error"),
        ]);
        self.fail("the rules were not done in time");
    }

    /// The request was answered with an HTTP error.
    pub(crate) fn refused(&self, code: StatusCode) {
        self.say([
            KeyValue::new("http.response.status_code", i64::from(code.as_u16())),
            KeyValue::new("admission.verdict", "error"),
        ]);
        // What the client did wrong is no failure of the server (semantic conventions of HTTP).
        if code.is_server_error() {
            self.fail("the answer could not be written");
        }
    }

    fn say(&self, attributes: impl IntoIterator<Item = KeyValue>) {
        if let Some(sampled) = &self.0 {
            sampled.context.span().set_attributes(attributes);
        }
    }

    fn fail(&self, why: &'static str) {
        if let Some(sampled) = &self.0 {
            sampled.context.span().set_status(Status::error(why));
        }
    }
}

/// A step that has begun; it ends with this.
#[must_use = "the step ends when it is dropped"]
pub(crate) struct Begun(Option<Span>);

impl Begun {
    /// A lookup ends with these answers.
    pub(crate) fn found(mut self, fetched: &Fetched) {
        let Some(span) = &mut self.0 else {
            return;
        };
        let names = i64::try_from(fetched.len()).unwrap_or(i64::MAX);
        span.set_attribute(KeyValue::new("lookup.names", names));
        if fetched.values().any(|answer| *answer == Lookup::Unknown) {
            span.set_status(Status::error("the API server did not answer"));
        }
    }

    pub(crate) fn end(self) {
        drop(self);
    }
}

/// The headers of a request, as the propagator reads them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

fn text(text: &str) -> String {
    text.chars().take(TEXT_LENGTH_MAX).collect()
}

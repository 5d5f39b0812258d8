//! One request, from its head to its answer.

use super::labels::{AdmissionOutcome, ConversionOutcome, OperationLabel, ReviewPath};
use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::app_state::AppState;
use lockkeeper_policies::rule;
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A request that is being answered. When it is dropped, it is counted: as an error unless it was
/// judged, also when the client has gone away in the middle or a handler has panicked.
#[must_use = "it measures until it is dropped"]
pub(crate) struct RequestObserver {
    app: Arc<AppState>,
    path: ReviewPath,
    started: Instant,
    review: OnceLock<(usize, OperationLabel, AdmissionOutcome)>,
    conversion: OnceLock<ConversionOutcome>,
}

impl RequestObserver {
    /// A request has come in.
    pub(crate) fn new(app: &Arc<AppState>, path: ReviewPath) -> Self {
        app.metrics().in_flight.inc();
        Self {
            app: Arc::clone(app),
            path,
            started: Instant::now(),
            review: OnceLock::new(),
            conversion: OnceLock::new(),
        }
    }

    /// The body has been read.
    pub(crate) fn record_body(&self, bytes: usize) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a body is far smaller than 2^52 bytes"
        )]
        self.app.metrics().body_bytes.observe(bytes as f64);
    }

    /// This is the answer that will be sent.
    pub(crate) fn record_review(&self, request: &AdmissionRequest<'_>, answer: &AdmissionResponse) {
        let metrics = self.app.metrics();
        let asked = &request.kind;
        let known = metrics.kinds.iter().position(|kind| {
            kind.name == asked.name && kind.version == asked.version && kind.group == asked.group
        });
        let operation = match request.operation() {
            Some(rule::Operation::Create) => OperationLabel::Create,
            Some(rule::Operation::Update) => OperationLabel::Update,
            Some(rule::Operation::Delete) => OperationLabel::Delete,
            None => OperationLabel::Other,
        };
        let outcome = AdmissionOutcome::from_response(answer);
        let kind = known.unwrap_or(metrics.kinds.len());
        if self.review.set((kind, operation, outcome)).is_ok() {
            metrics.count_hits(answer.hits());
        }
    }
}

impl RequestObserver {
    /// This is what came of a conversion, and will be sent.
    pub(crate) fn record_conversion(&self, result: ConversionOutcome) {
        // Only the one thread that converts says so, once.
        let _ = self.conversion.set(result);
    }
}

impl AdmissionOutcome {
    pub(crate) fn from_response(answer: &AdmissionResponse) -> Self {
        if answer.is_bad_request() {
            Self::Error
        } else if !answer.allowed() {
            Self::Denied
        } else if answer.has_warnings() {
            Self::Warned
        } else {
            Self::Allowed
        }
    }
}

impl Drop for RequestObserver {
    fn drop(&mut self) {
        let metrics = self.app.metrics();
        let path = self.path.place();
        let counter = if self.path == ReviewPath::Convert {
            let result = self
                .conversion
                .get()
                .copied()
                .unwrap_or(ConversionOutcome::Error);
            metrics.conversions.get([result.place()])
        } else {
            let unjudged = (
                metrics.kinds.len(),
                OperationLabel::Other,
                AdmissionOutcome::Error,
            );
            let (kind, operation, outcome) = self.review.get().copied().unwrap_or(unjudged);
            metrics
                .requests
                .get([kind, operation.place(), path, outcome.place()])
        };
        counter.map(Counter::inc);
        let seconds = self.started.elapsed().as_secs_f64();
        if let Some(durations) = metrics.durations.get([path]) {
            durations.observe(seconds);
        }
        metrics.in_flight.dec();
    }
}

//! Measures one request, from its head to its response.

use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::app_state::AppState;
use crate::metric_labels::{AdmissionOutcome, ConversionOutcome, OperationLabel, ReviewPath};
use lockkeeper_policies::rule;
use prometheus_client::metrics::counter::Counter;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A request in flight. It is counted when this is dropped, as an error unless a result was recorded; so
/// requests of disconnected clients and panicking handlers are counted as well.
#[must_use = "it measures until it is dropped"]
pub(crate) struct RequestObserver {
    app: Arc<AppState>,
    path: ReviewPath,
    started: Instant,
    review: OnceLock<(usize, OperationLabel, AdmissionOutcome)>,
    conversion: OnceLock<ConversionOutcome>,
}

impl RequestObserver {
    /// Starts the measurement of a request.
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

    /// Records the size of the body.
    pub(crate) fn record_body(&self, bytes: usize) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a body is far smaller than 2^52 bytes"
        )]
        self.app.metrics().body_bytes.observe(bytes as f64);
    }

    /// Records the response that is sent.
    pub(crate) fn record_review(
        &self,
        request: &AdmissionRequest<'_>,
        response: &AdmissionResponse,
    ) {
        let metrics = self.app.metrics();
        let requested = &request.kind;
        let position = metrics.kinds.iter().position(|kind| {
            kind.name == requested.name
                && kind.version == requested.version
                && kind.group == requested.group
        });
        let operation = match request.operation() {
            Some(rule::Operation::Create) => OperationLabel::Create,
            Some(rule::Operation::Update) => OperationLabel::Update,
            Some(rule::Operation::Delete) => OperationLabel::Delete,
            None => OperationLabel::Other,
        };
        let outcome = AdmissionOutcome::from_response(response);
        // The last value of the label is `other`.
        let kind = position.unwrap_or(metrics.kinds.len());
        if self.review.set((kind, operation, outcome)).is_ok() {
            metrics.count_hits(response.hits());
        }
    }

    /// Records the result of a conversion that is sent.
    pub(crate) fn record_conversion(&self, result: ConversionOutcome) {
        // Only the converting thread sets this, once.
        let _ = self.conversion.set(result);
    }
}

impl AdmissionOutcome {
    pub(crate) fn from_response(response: &AdmissionResponse) -> Self {
        if response.is_bad_request() {
            Self::Error
        } else if !response.allowed() {
            Self::Denied
        } else if response.has_warnings() {
            Self::Warned
        } else {
            Self::Allowed
        }
    }
}

impl Drop for RequestObserver {
    fn drop(&mut self) {
        let metrics = self.app.metrics();
        let path = self.path.index();
        let counter = if self.path == ReviewPath::Convert {
            let result = self
                .conversion
                .get()
                .copied()
                .unwrap_or(ConversionOutcome::Error);
            metrics.conversions.get([result.index()])
        } else {
            let not_evaluated = (
                metrics.kinds.len(),
                OperationLabel::Other,
                AdmissionOutcome::Error,
            );
            let (kind, operation, outcome) = self.review.get().copied().unwrap_or(not_evaluated);
            metrics
                .requests
                .get([kind, operation.index(), path, outcome.index()])
        };
        counter.map(Counter::inc);
        let seconds = self.started.elapsed().as_secs_f64();
        if let Some(durations) = metrics.durations.get([path]) {
            durations.observe(seconds);
        }
        metrics.in_flight.dec();
    }
}

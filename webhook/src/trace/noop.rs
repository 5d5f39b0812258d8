//! No-op spans, for a build without the feature `otel`.
#![allow(
    clippy::unused_self,
    reason = "the same calls as in the build with spans"
)]

use super::ReviewStep;
use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::app_state::AppState;
use crate::conversion_review;
use crate::metric_labels::{ConversionOutcome, ReviewPath};
use crate::request_view::LookupResults;
use axum::http::{HeaderMap, StatusCode};

pub(crate) struct ReviewSpan(ReviewTrace);

impl ReviewSpan {
    pub(crate) fn new(_: &AppState, _: ReviewPath, _: &HeaderMap) -> Self {
        Self(ReviewTrace)
    }

    pub(crate) fn trace(&self) -> &ReviewTrace {
        &self.0
    }
}

#[derive(Clone)]
pub(crate) struct ReviewTrace;

impl ReviewTrace {
    pub(crate) fn begin(&self, _: ReviewStep) -> StepSpan {
        StepSpan
    }

    pub(crate) fn record_review(&self, _: &AdmissionRequest<'_>, _: &AdmissionResponse) {}

    pub(crate) fn record_conversion(
        &self,
        _: &conversion_review::ConversionRequest<'_>,
        _: ConversionOutcome,
    ) {
    }

    pub(crate) fn record_conversion_timeout(&self, _uid: &str) {}

    pub(crate) fn record_timeout(&self, _uid: &str) {}

    pub(crate) fn record_http_error(&self, _: StatusCode) {}
}

#[must_use]
pub(crate) struct StepSpan;

impl StepSpan {
    pub(crate) fn end_with_lookups(self, _: &LookupResults) {}

    pub(crate) fn end(self) {}
}

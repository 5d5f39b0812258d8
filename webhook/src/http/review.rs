//! One review, from its bytes to its answer.

use super::{HandlerState, HttpError, ReceivedReview, offload};
use crate::admission_response::AdmissionResponse;
use crate::admission_review::{self, AdmissionRequest, AdmissionReview, AdmissionReviewError};
use crate::deadline::{self, timeout_response};
use crate::request_view::LookupResults;
use crate::route::{ReviewContext, ReviewOutcome, Route, has_user_rules, validate_by_users};
use crate::trace::ReviewStep;
use axum::body::Bytes;
use lockkeeper_api::GROUP;
use lockkeeper_policies::settings::Settings;
use std::sync::Arc;
use tokio::time::Instant;

/// Which of the two questions about an object is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Validate,
    Mutate,
}

/// What is to be done.
pub(super) struct ReviewTask {
    received: ReceivedReview,
    settings: Arc<Settings>,
    endpoint: Endpoint,
}

impl ReviewTask {
    /// A review is judged by the settings that are in force when it has arrived.
    pub(super) fn new(received: ReceivedReview, endpoint: Endpoint) -> Self {
        Self {
            settings: received.app.current_settings(),
            received,
            endpoint,
        }
    }

    /// Judges; asks the API server for what the stores missed, and judges again.
    pub(super) async fn run(self, server: &HandlerState) -> Result<Bytes, HttpError> {
        let work = Arc::new(self);
        if Instant::now() >= work.received.deadline {
            return work.timeout_response();
        }
        let Some(judged) =
            Self::evaluate_before(&work, server, LookupResults::new(), work.received.deadline)
                .await?
        else {
            return work.timeout_response();
        };
        let judged = match &work.received.app.live_lookup {
            Some(live) if !judged.missed_lookups.is_empty() => {
                let lookup = work.received.trace.begin(ReviewStep::Lookup);
                let fetched = live
                    .fetch(judged.missed_lookups, work.received.deadline)
                    .await;
                lookup.end_with_lookups(&fetched);
                // The API server may have taken all the time there was.
                let reserve = &server.load.limits().reserve;
                let deadline =
                    deadline::for_retry(work.received.started, work.received.deadline, reserve);
                match Self::evaluate_before(&work, server, fetched, deadline).await? {
                    Some(judged) => judged,
                    // What the stores missed may exist: the first answer does not count.
                    None => return work.timeout_response(),
                }
            }
            _ => judged,
        };
        let bytes = judged.response.encode().map_err(HttpError::Encoding)?;
        Ok(bytes.into())
    }

    /// Judges once; `None` when that was not done in time.
    async fn evaluate_before(
        work: &Arc<Self>,
        server: &HandlerState,
        fetched: LookupResults,
        deadline: Instant,
    ) -> Result<Option<ReviewOutcome>, HttpError> {
        let (trace, bytes) = (&work.received.trace, work.received.body.bytes().len());
        let judging = Arc::clone(work);
        let judge = move || judging.evaluate(&fetched);
        let judged = offload::run_inline_or_blocking(server, trace, bytes, deadline, judge).await;
        Ok(judged.transpose()?)
    }

    fn evaluate(&self, fetched: &LookupResults) -> Result<ReviewOutcome, AdmissionReviewError> {
        let envelope = self.received.trace.begin(ReviewStep::Envelope);
        let (review, request) = admission_review::decode(self.received.body.bytes())?;
        envelope.end();
        let basis = ReviewContext {
            trace: &self.received.trace,
            settings: &self.settings,
            index: &self.received.app.index,
            lookup_results: fetched,
        };
        let judged = review_at_endpoint(&basis, self.endpoint, &review, &request);
        let is_last = judged.missed_lookups.is_empty()
            || self.received.app.live_lookup.is_none()
            || !fetched.is_empty();
        if is_last {
            self.received
                .observer
                .record_review(&request, &judged.response);
            self.received
                .trace
                .record_review(&request, &judged.response);
            self.log(&request, &judged.response);
        }
        Ok(judged)
    }

    /// The time is over, and what was checked does not count.
    fn timeout_response(&self) -> Result<Bytes, HttpError> {
        let uid = timeout_response::find_uid(self.received.body.bytes())
            .ok_or(AdmissionReviewError::NoUid)?;
        let waited = self.received.started.elapsed();
        self.received.trace.record_timeout(&uid);
        tracing::warn!(%uid, endpoint = ?self.endpoint, "the rules were not done in time");
        Ok(timeout_response::encode(&uid, waited).into())
    }

    /// Names what was judged, never what it holds.
    fn log(&self, request: &AdmissionRequest<'_>, answer: &AdmissionResponse) {
        let duration_ms = self.received.started.elapsed().as_secs_f64() * 1e3;
        macro_rules! event {
            ($level:ident, $text:literal) => {
                tracing::$level!(
                    uid = %request.uid,
                    kind = %request.kind.name,
                    namespace = %request.namespace,
                    name = %request.name,
                    operation = %request.operation,
                    endpoint = ?self.endpoint,
                    rules = answer.denied_by(),
                    duration_ms,
                    $text
                )
            };
        }
        if answer.allowed() {
            event!(debug, "allowed");
        } else {
            event!(info, "denied");
        }
    }
}

fn review_at_endpoint(
    basis: &ReviewContext<'_>,
    question: Endpoint,
    review: &AdmissionReview<'_>,
    request: &AdmissionRequest<'_>,
) -> ReviewOutcome {
    let version = review.api_version.as_deref().unwrap_or_default();
    if version != admission_review::API_VERSION {
        let spoken = admission_review::API_VERSION;
        let message = format!("apiVersion {version:?} is not spoken here; send {spoken}");
        return AdmissionResponse::bad_request(&request.uid, message).into();
    }
    let has_subresource = request
        .sub_resource
        .as_ref()
        .is_some_and(|name| !name.is_empty());
    let Some(operation) = request.operation().filter(|_| !has_subresource) else {
        // Rules are about whole objects that are made, changed or deleted.
        return AdmissionResponse::allow(&request.uid).into();
    };
    match (Route::find(request), question) {
        (Some(route), Endpoint::Validate) => (route.validate)(basis, request, operation),
        (Some(route), Endpoint::Mutate) => (route.mutate)(basis, request, operation),
        (None, _) if has_user_rules(basis, request) => match question {
            Endpoint::Validate => validate_by_users(basis, request, operation),
            Endpoint::Mutate => AdmissionResponse::allow(&request.uid).into(),
        },
        (None, _) => unknown_kind(request).into(),
    }
}

/// A kind that no rule is about. One of another group passes: somebody registered more than needed.
/// One of our own group is of a version or kind that this build does not know, and must not pass
/// unguarded.
fn unknown_kind(request: &AdmissionRequest<'_>) -> AdmissionResponse {
    let kind = &request.kind;
    let what = format!("{}/{} {}", kind.group, kind.version, kind.name);
    if kind.group == GROUP {
        let message = format!("{what} is not known to this version of lockkeeper; upgrade it");
        return AdmissionResponse::bad_request(&request.uid, message);
    }
    let mut answer = AdmissionResponse::allow(&request.uid);
    answer.warn(format!(
        "lockkeeper has no rule for {what}; do not register it"
    ));
    answer
}

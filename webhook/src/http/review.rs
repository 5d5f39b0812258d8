//! One admission review, from its bytes to its response.

use super::error::HttpError;
use super::handler_state::HandlerState;
use super::offload;
use super::received::ReceivedReview;
use super::review_log::cut;
use crate::admission_response::AdmissionResponse;
use crate::admission_review::{self, AdmissionRequest, AdmissionReview, AdmissionReviewError};
use crate::deadline::{self, timeout_response};
use crate::embedded_objects::ReviewParts;
use crate::request_view::LookupResults;
use crate::review_context::{Retry, ReviewContext, ReviewOutcome};
use crate::route::{Route, declaration, has_user_rules, suspend_new_job, validate_user_rules};
use crate::trace::ReviewStep;
use axum::body::Bytes;
use lockkeeper_api::GROUP;
use lockkeeper_policies::rule::Operation;
use lockkeeper_policies::settings::Settings;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// The endpoint that a review was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Validate,
    Mutate,
}

/// A review and the settings that it is evaluated with.
pub(super) struct ReviewTask {
    received: ReceivedReview,
    settings: Arc<Settings>,
    endpoint: Endpoint,
}

impl ReviewTask {
    /// Creates the task with the current settings.
    pub(super) fn new(received: ReceivedReview, endpoint: Endpoint) -> Self {
        Self {
            // Loaded once, so that a reload does not change them between evaluation and retry.
            settings: received.app.current_settings(),
            received,
            endpoint,
        }
    }

    /// Evaluates the review. If the stores missed an object that a rule needs, looks it up at the API
    /// server and evaluates the rules again.
    pub(super) async fn run(self, server: &HandlerState) -> Result<Bytes, HttpError> {
        let task = Arc::new(self);
        let deadline = task.received.deadline;
        // Reading the body may have used up the time.
        if Instant::now() >= deadline {
            return task.timeout_response();
        }
        let evaluation = Arc::clone(&task);
        let evaluate = move || evaluation.evaluate();
        let outcome = task.run_before(server, deadline, evaluate).await;
        let Some(outcome) = outcome.transpose()? else {
            return task.timeout_response();
        };
        let mut response = match (&task.received.app.live_lookup, outcome.retry) {
            (Some(live), Some(retry)) => {
                let lookup = task.received.trace.begin(ReviewStep::Lookup);
                let results = live.fetch(retry.missed_lookups.clone(), deadline).await;
                lookup.end_with_lookups(&results);
                // The lookups may have used up the time until the deadline, so the retry gets a later one.
                let reserve = &server.load.limits().reserve;
                let deadline = deadline::for_retry(task.received.started, deadline, reserve);
                let evaluation = Arc::clone(&task);
                let evaluate = move || evaluation.evaluate_again(&retry, &results);
                match task.run_before(server, deadline, evaluate).await {
                    Some(response) => response,
                    // The missed object may exist, so the first response must not be sent.
                    None => return task.timeout_response(),
                }
            }
            _ => outcome.response,
        };
        if response.allowed()
            && let Some(object) = outcome.created_object
            && let Some(preview) = task.preview(object).await
        {
            response.warn(preview);
        }
        let bytes = response.encode().map_err(HttpError::Encoding)?;
        Ok(bytes.into())
    }

    /// Runs `evaluate`; `None` if it did not finish before the deadline.
    async fn run_before<T: Send + 'static>(
        &self,
        server: &HandlerState,
        deadline: Instant,
        evaluate: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (trace, bytes) = (&self.received.trace, self.received.body.bytes().len());
        offload::run_inline_or_blocking(server, trace, bytes, deadline, evaluate).await
    }

    /// Decodes the review and evaluates it with the objects in the stores.
    fn evaluate(&self) -> Result<ReviewOutcome, HttpError> {
        let envelope = self.received.trace.begin(ReviewStep::Envelope);
        let parts = ReviewParts::split(self.received.body.bytes());
        let (review, request) = admission_review::decode(&parts)?;
        envelope.end();
        if let Some(caller) = &self.received.caller {
            caller.check_group(request.resource_group().as_deref())?;
        }
        let no_results = LookupResults::new();
        let context = self.context(&no_results);
        let mut outcome = evaluate_at_endpoint(&context, self.endpoint, &review, &request);
        outcome.created_object = self.created_object(&request);
        // The response before a retry is not sent, so it is not counted either.
        if outcome.retry.is_none() || self.received.app.live_lookup.is_none() {
            self.record(&request, &outcome.response);
        }
        Ok(outcome)
    }

    /// The object that is created, if there are previews.
    fn created_object(&self, request: &AdmissionRequest<'_>) -> Option<String> {
        let is_created = self.received.app.preview.is_some()
            && self.endpoint == Endpoint::Validate
            && request.operation() == Some(Operation::Create)
            && request.sub_resource.as_deref().is_none_or(str::is_empty);
        request.object.filter(|_| is_created).map(str::to_owned)
    }

    /// What the controller will do with an object that is created; `None` if that is not known before the deadline.
    async fn preview(&self, object: String) -> Option<String> {
        let preview = self.received.app.preview.as_ref()?.preview(object);
        timeout_at(self.received.deadline, preview).await.ok()?
    }

    /// Evaluates the rules again, on the objects that [`Self::evaluate`] decoded.
    fn evaluate_again(&self, retry: &Retry, results: &LookupResults) -> AdmissionResponse {
        let response = retry.evaluate(&self.context(results));
        self.record(retry.request(), &response);
        response
    }

    fn context<'a>(&'a self, lookup_results: &'a LookupResults) -> ReviewContext<'a> {
        ReviewContext {
            trace: &self.received.trace,
            settings: &self.settings,
            index: &self.received.app.index,
            lookup_results,
            pod_templates: &self.received.app.pod_templates,
        }
    }

    /// Counts, traces and logs the response that is sent.
    fn record(&self, request: &AdmissionRequest<'_>, response: &AdmissionResponse) {
        self.received.observer.record_review(request, response);
        self.received.trace.record_review(request, response);
        self.log(request, response);
    }

    /// Rejects with 504. The result of an evaluation that is still running is dropped.
    fn timeout_response(&self) -> Result<Bytes, HttpError> {
        let uid = timeout_response::find_uid(self.received.body.bytes())
            .ok_or(AdmissionReviewError::NoUid)?;
        let waited = self.received.started.elapsed();
        self.received.trace.record_timeout(&uid);
        if let Some(timed_out) = self.received.log.timed_out.record() {
            let (uid, endpoint) = (&*cut(&uid), self.endpoint);
            tracing::warn!(uid, ?endpoint, timed_out, "review timed out");
        }
        Ok(timeout_response::encode(&uid, waited).into())
    }

    /// Logs the identity of the object, never its content: it may be a secret. A denial is logged with the count so
    /// far, unless too many are logged already.
    fn log(&self, request: &AdmissionRequest<'_>, response: &AdmissionResponse) {
        let duration_ms = self.received.started.elapsed().as_secs_f64() * 1e3;
        macro_rules! event {
            ($level:ident, $($count:ident,)? $text:literal) => {
                tracing::$level!(
                    uid = &*cut(&request.uid),
                    kind = &*cut(&request.kind.name),
                    namespace = &*cut(&request.namespace),
                    name = &*cut(&request.name),
                    operation = &*cut(&request.operation),
                    endpoint = ?self.endpoint,
                    rules = response.denied_by(),
                    $($count,)?
                    duration_ms,
                    $text
                )
            };
        }
        if response.allowed() {
            event!(debug, "allowed");
        } else if let Some(denied) = self.received.log.denied.record() {
            event!(info, denied, "denied");
        }
    }
}

fn evaluate_at_endpoint(
    context: &ReviewContext<'_>,
    endpoint: Endpoint,
    review: &AdmissionReview<'_>,
    request: &AdmissionRequest<'_>,
) -> ReviewOutcome {
    let version = review.api_version.as_deref().unwrap_or_default();
    if version != admission_review::API_VERSION {
        let supported = admission_review::API_VERSION;
        let message = format!("unsupported apiVersion {version:?}; send {supported}");
        return AdmissionResponse::bad_request(&request.uid, &message).into();
    }
    let has_subresource = request
        .sub_resource
        .as_ref()
        .is_some_and(|name| !name.is_empty());
    let Some(operation) = request.operation().filter(|_| !has_subresource) else {
        // Rules apply to whole objects that are created, updated or deleted.
        return AdmissionResponse::allow(&request.uid).into();
    };
    match (Route::find(request), endpoint) {
        (Some(route), Endpoint::Validate) => (route.validate)(context, request, operation),
        (Some(route), Endpoint::Mutate) => (route.mutate)(context, request, operation),
        (None, Endpoint::Mutate) => default_other_kind(context, request, operation).into(),
        (None, Endpoint::Validate) if has_user_rules(context, request) => {
            validate_user_rules(context, request, operation)
        }
        // It is sent for its preview.
        (None, Endpoint::Validate) if declaration(context, request).is_some() => {
            AdmissionResponse::allow(&request.uid).into()
        }
        (None, Endpoint::Validate) => unknown_kind(request).into(),
    }
}

/// Sets the defaults of a kind without built-in rules.
fn default_other_kind(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> AdmissionResponse {
    match declaration(context, request) {
        Some(declared) => suspend_new_job(context, request, operation, &declared),
        None if has_user_rules(context, request) => AdmissionResponse::allow(&request.uid),
        None => unknown_kind(request),
    }
}

/// Returns the response for a kind without rules: an object of lockkeeper's group is rejected, any other is
/// allowed with a warning.
fn unknown_kind(request: &AdmissionRequest<'_>) -> AdmissionResponse {
    let kind = &request.kind;
    let full_name = format!("{}/{} {}", kind.group, kind.version, kind.name);
    // A version or kind that this build does not support: no rule would validate the object.
    if kind.group == GROUP {
        let message =
            format!("{full_name} is not supported by this version of lockkeeper; upgrade it");
        return AdmissionResponse::bad_request(&request.uid, &message);
    }
    // The webhook configuration matches more kinds than it should.
    let mut response = AdmissionResponse::allow(&request.uid);
    response.warn(format!(
        "lockkeeper has no rule for {full_name}; do not register it"
    ));
    response
}

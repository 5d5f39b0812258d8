//! One conversion review, from its bytes to its response.

use super::error::HttpError;
use super::handler_state::HandlerState;
use super::offload;
use super::received::ReceivedReview;
use super::review_log::cut;
use crate::conversion_review::{
    self, ConversionFailure, ConversionRequest, ConversionReviewError, ConvertedObjects,
};
use crate::deadline::timeout_response;
use crate::metric_labels::ConversionOutcome;
use crate::trace::ReviewStep;
use axum::body::Bytes;
use std::sync::Arc;
use tokio::time::Instant;

/// Converts all objects, or returns a failure.
pub(super) async fn run(
    received: ReceivedReview,
    server: &HandlerState,
) -> Result<Bytes, HttpError> {
    let received = Arc::new(received);
    // Reading the body may have used up the time.
    if Instant::now() >= received.deadline {
        return timeout_response(&received);
    }
    let work = Arc::clone(&received);
    let (trace, bytes) = (&received.trace, received.body.bytes().len());
    let done =
        offload::run_inline_or_blocking(server, trace, bytes, received.deadline, move || {
            convert(&work)
        });
    match done.await {
        Some(done) => done,
        None => timeout_response(&received),
    }
}

fn convert(received: &ReceivedReview) -> Result<Bytes, HttpError> {
    let trace = &received.trace;
    let envelope = trace.begin(ReviewStep::Envelope);
    let request = conversion_review::decode(received.body.bytes())?;
    envelope.end();
    let converting = trace.begin(ReviewStep::Convert);
    let outcome = request.convert(&received.app.converters);
    converting.end();
    let result = match &outcome {
        Ok(_) => ConversionOutcome::Converted,
        Err(_) => ConversionOutcome::Rejected,
    };
    received.observer.record_conversion(result);
    trace.record_conversion(&request, result);
    log(received, &request, outcome.as_ref());
    let response = conversion_review::encode(&request.uid, outcome.as_ref());
    Ok(response.map_err(HttpError::Encoding)?.into())
}

/// Returns a failure with the uid of the request.
fn timeout_response(received: &ReceivedReview) -> Result<Bytes, HttpError> {
    let uid =
        timeout_response::find_uid(received.body.bytes()).ok_or(ConversionReviewError::NoUid)?;
    received.trace.record_conversion_timeout(&uid);
    if let Some(timed_out) = received.log.timed_out.record() {
        let uid = &*cut(&uid);
        tracing::warn!(uid, endpoint = "Convert", timed_out, "conversion timed out");
    }
    let response = conversion_review::encode_timeout(&uid, received.started.elapsed());
    Ok(response.map_err(HttpError::Encoding)?.into())
}

/// Logs the identity of the objects, never their content. A failure is logged with the count so far, at most once per
/// interval.
fn log(
    received: &ReceivedReview,
    request: &ConversionRequest<'_>,
    outcome: Result<&ConvertedObjects, &ConversionFailure>,
) {
    let duration_ms = received.started.elapsed().as_secs_f64() * 1e3;
    let (uid, desired) = (&*cut(&request.uid), &*cut(&request.desired_version));
    let objects = request.count();
    match outcome {
        Ok(converted) => {
            tracing::debug!(uid, desired, objects, duration_ms, "converted");
            for (index, reason) in &converted.ignored_annotations {
                if let Some(ignored) = received.log.ignored_annotation.record() {
                    let reason = &*cut(reason);
                    tracing::warn!(
                        uid,
                        index,
                        reason,
                        ignored,
                        "ignored an annotation that was not written by a conversion"
                    );
                }
            }
        }
        Err(failure) => {
            if let Some(failed) = received.log.not_converted.record() {
                let object = failure.object_identity().map(ToString::to_string);
                let object = object.as_deref().map(cut);
                let object = object.as_deref();
                tracing::info!(
                    uid,
                    desired,
                    objects,
                    object,
                    failed,
                    duration_ms,
                    "not converted"
                );
            }
        }
    }
}

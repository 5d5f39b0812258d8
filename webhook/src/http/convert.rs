//! One conversion review, from its bytes to its answer.

use super::error::HttpError;
use super::handler_state::HandlerState;
use super::offload;
use super::received::ReceivedReview;
use crate::conversion_review::{
    self, ConversionFailure, ConversionRequest, ConversionReviewError, ConvertedObjects,
};
use crate::deadline::timeout_response;
use crate::metrics::ConversionOutcome;
use crate::trace::ReviewStep;
use axum::body::Bytes;
use std::sync::Arc;
use tokio::time::Instant;

/// Converts all objects, or says why not.
pub(super) async fn run(
    received: ReceivedReview,
    server: &HandlerState,
) -> Result<Bytes, HttpError> {
    let received = Arc::new(received);
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
    let answer = conversion_review::encode(&request.uid, outcome.as_ref());
    Ok(answer.map_err(HttpError::Encoding)?.into())
}

/// The time is over.
fn timeout_response(received: &ReceivedReview) -> Result<Bytes, HttpError> {
    let uid =
        timeout_response::find_uid(received.body.bytes()).ok_or(ConversionReviewError::NoUid)?;
    received.trace.record_conversion_timeout(&uid);
    tracing::warn!(%uid, endpoint = "Convert", "the objects were not converted in time");
    let answer = conversion_review::encode_timeout(&uid, received.started.elapsed());
    Ok(answer.map_err(HttpError::Encoding)?.into())
}

/// Names what was converted, never what it holds.
fn log(
    received: &ReceivedReview,
    request: &ConversionRequest<'_>,
    outcome: Result<&ConvertedObjects, &ConversionFailure>,
) {
    let duration_ms = received.started.elapsed().as_secs_f64() * 1e3;
    let (uid, desired, objects) = (&request.uid, &request.desired_version, request.count());
    match outcome {
        Ok(converted) => {
            tracing::debug!(%uid, %desired, objects, duration_ms, "converted");
            for (index, reason) in &converted.ignored_annotations {
                tracing::warn!(%uid, index, reason, "passed over an annotation that no conversion has written");
            }
        }
        Err(failure) => {
            let object = failure.object_identity().map(ToString::to_string);
            tracing::info!(%uid, %desired, objects, object, duration_ms, "not converted");
        }
    }
}

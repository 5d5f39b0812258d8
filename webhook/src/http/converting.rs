//! One conversion review, from its bytes to its answer.

use super::{Received, Refused, Server, turn};
use crate::conversion::{self, Failure, Objects, Request, ReviewError};
use crate::deadline::missed;
use crate::metrics::Conversion;
use crate::trace::Step;
use axum::body::Bytes;
use std::sync::Arc;
use tokio::time::Instant;

/// Converts all objects, or says why not.
pub(super) async fn run(received: Received, server: &Server) -> Result<Bytes, Refused> {
    let received = Arc::new(received);
    if Instant::now() >= received.deadline {
        return give_up(&received);
    }
    let work = Arc::clone(&received);
    let (trace, bytes) = (&received.trace, received.body.bytes().len());
    let done = turn::done(server, trace, bytes, received.deadline, move || {
        convert(&work)
    });
    match done.await {
        Some(done) => done,
        None => give_up(&received),
    }
}

fn convert(received: &Received) -> Result<Bytes, Refused> {
    let trace = &received.trace;
    let envelope = trace.begin(Step::Envelope);
    let request = conversion::decode(received.body.bytes())?;
    envelope.end();
    let converting = trace.begin(Step::Convert);
    let outcome = request.convert(&received.app.converters);
    converting.end();
    let result = match &outcome {
        Ok(_) => Conversion::Converted,
        Err(_) => Conversion::Refused,
    };
    received.observed.converted(result);
    trace.converted(&request, result);
    log(received, &request, outcome.as_ref());
    let answer = conversion::encode(&request.uid, outcome.as_ref());
    Ok(answer.map_err(Refused::Encoding)?.into())
}

/// The time is over.
fn give_up(received: &Received) -> Result<Bytes, Refused> {
    let uid = missed::uid_of(received.body.bytes()).ok_or(ReviewError::NoUid)?;
    received.trace.late_conversion(&uid);
    tracing::warn!(%uid, question = "Convert", "the objects were not converted in time");
    let answer = conversion::encode_late(&uid, received.started.elapsed());
    Ok(answer.map_err(Refused::Encoding)?.into())
}

/// Names what was converted, never what it holds.
fn log(received: &Received, request: &Request<'_>, outcome: Result<&Objects, &Failure>) {
    let duration_ms = received.started.elapsed().as_secs_f64() * 1e3;
    let (uid, desired, objects) = (&request.uid, &request.desired, request.count());
    match outcome {
        Ok(converted) => {
            tracing::debug!(%uid, %desired, objects, duration_ms, "converted");
            for (index, reason) in &converted.ignored {
                tracing::warn!(%uid, index, reason, "passed over an annotation that no conversion has written");
            }
        }
        Err(failure) => {
            let object = failure.object().map(ToString::to_string);
            tracing::info!(%uid, %desired, objects, object, duration_ms, "not converted");
        }
    }
}

//! New jobs of the kinds that `JobKind` objects declare.

use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::duplicate_keys::{self, DecodeError};
use crate::review_context::ReviewContext;
use crate::route::decode::{duplicate_key, missing_object};
use crate::trace::ReviewStep;
use lockkeeper_policies::declared_suspension::DeclaredSuspension;
use lockkeeper_policies::rule::Operation;
use serde_json::Value;
use std::sync::{Arc, PoisonError};

/// The declaration of the kind of a request, if there is one.
pub(crate) fn declaration(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
) -> Option<Arc<DeclaredSuspension>> {
    let index = context.index.read().unwrap_or_else(PoisonError::into_inner);
    index.declared_suspension(&request.kind.group, &request.kind.name)
}

/// Suspends a new job with the queue label.
pub(crate) fn suspend_new_job(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
    declared: &DeclaredSuspension,
) -> AdmissionResponse {
    let mut response = AdmissionResponse::allow(&request.uid);
    if operation != Operation::Create {
        return response;
    }
    let version = &request.kind.version;
    if *version != declared.version {
        response.warn(format!(
            "not suspended: the JobKind of {} declares version {}, and the webhook is registered for {version}",
            declared.kind, declared.version
        ));
        return response;
    }
    let Some(raw) = request.object else {
        return *missing_object(request, operation, "object");
    };
    let decoding = context.trace.begin(ReviewStep::Decode);
    let object: Result<Value, DecodeError> = duplicate_keys::from_str(raw);
    decoding.end();
    let _span = context.trace.begin(ReviewStep::Defaults);
    let defaults = match object {
        Ok(object) => declared.default_suspend(&object),
        Err(DecodeError::DuplicateKey(key)) => return *duplicate_key(request, "object", &key),
        Err(DecodeError::Json(error)) => {
            let message = format!("request.object is not valid JSON: {error}");
            return AdmissionResponse::bad_request(&request.uid, &message);
        }
    };
    match response.set_patch(defaults) {
        Ok(()) => response,
        Err(error) => AdmissionResponse::bad_request(
            &request.uid,
            &format!("cannot encode the patch: {error}"),
        ),
    }
}

//! Sets the defaults of a kind.

use super::decode::{DecodedObjects, decode};
use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::request_view::RequestView;
use crate::review_context::ReviewContext;
use crate::trace::ReviewStep;
use lockkeeper_policies::rule::{Context, Operation};
use lockkeeper_policies::validated_kind::ValidatedKind;
use std::sync::PoisonError;

/// Returns a patch with the defaults. An object that does not decode is allowed unchanged: the schema or
/// the validating webhook rejects it with a better message.
pub(super) fn mutate<T: ValidatedKind>(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> AdmissionResponse {
    let mut response = AdmissionResponse::allow(&request.uid);
    let decoding = context.trace.begin(ReviewStep::Decode);
    let decoded = decode::<T>(request, operation, context.pod_templates);
    decoding.end();
    let (object, old) = match decoded {
        // The stored object does not decode, so its fields are unknown. Nothing is defaulted: otherwise a
        // finalizer that the update removes would be added again.
        Ok(DecodedObjects::Create(_)) if operation == Operation::Update => return response,
        Ok(DecodedObjects::Create(object)) => (object, None),
        Ok(DecodedObjects::Update { old, new }) => (new, Some(old)),
        Err(rejection) if rejection.is_bad_request() => return *rejection,
        Ok(DecodedObjects::Delete(_)) | Err(_) => return response,
    };
    let _span = context.trace.begin(ReviewStep::Defaults);
    let index = context.index.read().unwrap_or_else(PoisonError::into_inner);
    let view = RequestView::new(&index, context.lookup_results);
    let rule_context = Context {
        cluster: &view,
        settings: context.settings,
    };
    let defaults = T::defaults(&object, old.as_ref(), &rule_context);
    if view.default_is_unknown() {
        response.warn(
            "not defaulted: the PriorityClass that is the global default is unknown".to_owned(),
        );
    }
    match response.set_patch(defaults) {
        Ok(()) => response,
        Err(error) => AdmissionResponse::bad_request(
            &request.uid,
            &format!("cannot encode the patch: {error}"),
        ),
    }
}

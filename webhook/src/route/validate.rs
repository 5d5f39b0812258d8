//! Evaluates the rules of a kind.

use super::decode::{DecodedObjects, decode};
use super::user_rules::{UserRuleObjects, decode_user_rule_objects, run_user_rules};
use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::request_view::{LookupKey, RequestView};
use crate::review_context::{Retry, ReviewContext, ReviewOutcome};
use crate::trace::ReviewStep;
use lockkeeper_policies::cluster_view::Lookup;
use lockkeeper_policies::engine::{Verdict, review};
use lockkeeper_policies::rule::{Context, Operation};
use lockkeeper_policies::validated_kind::ValidatedKind;
use std::collections::BTreeSet;
use std::sync::PoisonError;

/// Decodes the objects and evaluates the rules. If a rule missed an object, the outcome keeps the decoded
/// objects, so that only the rules run again after the lookup.
pub(super) fn validate<T: ValidatedKind + Send + Sync>(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> ReviewOutcome {
    let decoding = context.trace.begin(ReviewStep::Decode);
    let decoded = decode::<T>(request, operation, context.pod_templates);
    decoding.end();
    let decoded = match decoded {
        Ok(decoded) => decoded,
        Err(response) => return (*response).into(),
    };
    let (verdict, missed_lookups) = run_rules(context, &decoded);
    let user_rule_objects = match decode_user_rule_objects(context, request, operation) {
        Ok(objects) => objects,
        Err(response) => return (*response).into(),
    };
    let objects = user_rule_objects.as_ref();
    let response = respond(context, request, &decoded, objects, verdict);
    if missed_lookups.is_empty() {
        return response.into();
    }
    let evaluate = move |context: &ReviewContext<'_>, request: &AdmissionRequest<'_>| {
        // Objects that are still missed are not looked up a second time.
        let (verdict, _) = run_rules(context, &decoded);
        let objects = user_rule_objects.as_ref();
        respond(context, request, &decoded, objects, verdict)
    };
    ReviewOutcome {
        response,
        retry: Some(Retry::new(missed_lookups, request, Box::new(evaluate))),
        created_object: None,
    }
}

/// Adds the findings of the user rules to the verdict and builds the response.
fn respond<T: ValidatedKind>(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    decoded: &DecodedObjects<T>,
    user_rule_objects: Option<&UserRuleObjects>,
    mut verdict: Verdict,
) -> AdmissionResponse {
    if let Some(objects) = user_rule_objects {
        run_user_rules(context, request, objects, &mut verdict);
    }
    let mut response =
        AdmissionResponse::from_verdict(&request.uid, decoded.identity(request), &verdict);
    // The rules treat an unknown object as valid, so the client must learn that it was not checked.
    for ((kind, name), result) in context.lookup_results {
        if *result == Lookup::Unknown {
            let kind = kind.name();
            response.warn(format!(
                "not checked: {kind} {name:?} could not be looked up in time"
            ));
        }
    }
    response
}

/// Runs the rules once. Also returns the objects that neither the stores nor the lookups had. The stores are
/// locked while the rules run, which takes microseconds for most objects.
fn run_rules<T: ValidatedKind>(
    context: &ReviewContext<'_>,
    decoded: &DecodedObjects<T>,
) -> (Verdict, BTreeSet<LookupKey>) {
    let _span = context.trace.begin(ReviewStep::Rules);
    let index = context.index.read().unwrap_or_else(PoisonError::into_inner);
    let view = RequestView::new(&index, context.lookup_results);
    let rule_context = Context {
        cluster: &view,
        settings: context.settings,
    };
    let verdict = review(&decoded.subject(), &rule_context);
    (verdict, view.into_missed_lookups())
}

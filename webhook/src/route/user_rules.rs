//! Evaluates user rules on objects that are decoded as JSON, not as types. An object of a kind
//! without user rules is not decoded here.

use super::decode::{duplicate_key, missing_object, request_identity};
use crate::admission_response::AdmissionResponse;
use crate::admission_review::{AdmissionRequest, RequestKind};
use crate::duplicate_keys::{self, DecodeError};
use crate::review_context::{ReviewContext, ReviewOutcome};
use crate::trace::ReviewStep;
use lockkeeper_policies::engine::{ReviewSubject, Verdict};
use lockkeeper_policies::rule::{Change, Operation};
use lockkeeper_policies::user_rules::{self, KindName};
use serde_json::Value;

/// The objects of a request as JSON.
pub(super) struct UserRuleObjects {
    old: Option<Value>,
    new: Option<Value>,
}

/// Decodes the objects of the request as JSON; `None` if no user rule applies to its kind. `Err` is the
/// response to an invalid request.
pub(super) fn decode_user_rule_objects(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> Result<Option<UserRuleObjects>, Box<AdmissionResponse>> {
    if !has_user_rules(context, request) {
        return Ok(None);
    }
    let decoding = context.trace.begin(ReviewStep::Decode);
    let decode = |raw: Option<&str>, field: &str| {
        let raw = raw.ok_or_else(|| missing_object(request, operation, field))?;
        decode_value(raw, request, field)
    };
    let old = match operation {
        Operation::Create => None,
        Operation::Update | Operation::Delete => Some(decode(request.old_object, "oldObject")?),
    };
    let new = match operation {
        Operation::Delete => None,
        Operation::Create | Operation::Update => Some(decode(request.object, "object")?),
    };
    decoding.end();
    Ok(Some(UserRuleObjects { old, new }))
}

/// Adds the findings of the user rules to the verdict.
pub(super) fn run_user_rules(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    objects: &UserRuleObjects,
    verdict: &mut Verdict,
) {
    let subject = match (&objects.old, &objects.new) {
        (None, Some(new)) => ReviewSubject::Create(new),
        (Some(old), Some(new)) => ReviewSubject::Update(Change { old, new }),
        (Some(old), None) => ReviewSubject::Delete(old),
        (None, None) => return,
    };
    let _span = context.trace.begin(ReviewStep::Rules);
    let rules = &context.settings.user_rules;
    let kind = kind_name(&request.kind);
    user_rules::review(rules, kind, &subject, context.settings, verdict);
}

/// Returns true if a user rule applies to the kind of the request.
pub(crate) fn has_user_rules(context: &ReviewContext<'_>, request: &AdmissionRequest<'_>) -> bool {
    let rules = &context.settings.user_rules;
    !rules.is_empty() && rules.for_kind(kind_name(&request.kind)).next().is_some()
}

/// Validates an object of a kind that has only user rules.
pub(crate) fn validate_user_rules(
    context: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> ReviewOutcome {
    let mut verdict = Verdict::default();
    match decode_user_rule_objects(context, request, operation) {
        Ok(objects) => {
            if let Some(objects) = &objects {
                run_user_rules(context, request, objects, &mut verdict);
            }
            AdmissionResponse::from_verdict(&request.uid, request_identity(request), &verdict)
                .into()
        }
        Err(response) => (*response).into(),
    }
}

fn kind_name<'a>(kind: &'a RequestKind<'a>) -> KindName<'a> {
    KindName {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.name,
    }
}

fn decode_value(
    raw: &str,
    request: &AdmissionRequest<'_>,
    field: &str,
) -> Result<Value, Box<AdmissionResponse>> {
    duplicate_keys::from_str(raw).map_err(|error| match error {
        DecodeError::DuplicateKey(key) => duplicate_key(request, field, &key),
        DecodeError::Json(error) => {
            let message = format!("request.{field} cannot be decoded: {error}");
            Box::new(AdmissionResponse::bad_request(&request.uid, &message))
        }
    })
}

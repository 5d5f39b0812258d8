//! The rules that users wrote. They see objects as they are sent, not as types; where none is about a kind,
//! nothing is decoded for them.

use super::{ReviewContext, ReviewOutcome, duplicate_key, missing_object, request_identity};
use crate::admission_response::AdmissionResponse;
use crate::admission_review::{AdmissionRequest, RequestKind};
use crate::duplicate_keys::{self, DecodeError};
use crate::trace::ReviewStep;
use lockkeeper_policies::engine::{ReviewSubject, Verdict};
use lockkeeper_policies::rule::{Change, Operation};
use lockkeeper_policies::user_rules::{self, KindName};
use serde_json::Value;
use serde_json::value::RawValue;

/// Adds what the rules of users find. An answer is an error when the request makes no sense.
pub(super) fn run_user_rules(
    basis: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
    verdict: &mut Verdict,
) -> Result<(), Box<AdmissionResponse>> {
    if !has_user_rules(basis, request) {
        return Ok(());
    }
    let rules = &basis.settings.user_rules;
    let kind = kind_name(&request.kind);
    let decoding = basis.trace.begin(ReviewStep::Decode);
    let decode = |raw: Option<&RawValue>, field: &str| {
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
    let subject = match (&old, &new) {
        (None, Some(new)) => ReviewSubject::Create(new),
        (Some(old), Some(new)) => ReviewSubject::Update(Change { old, new }),
        (Some(old), None) => ReviewSubject::Delete(old),
        (None, None) => return Ok(()),
    };
    let _rules = basis.trace.begin(ReviewStep::Rules);
    user_rules::review(rules, kind, &subject, basis.settings, verdict);
    Ok(())
}

/// Whether any rule of a user is about the kind of a request.
pub(crate) fn has_user_rules(basis: &ReviewContext<'_>, request: &AdmissionRequest<'_>) -> bool {
    let rules = &basis.settings.user_rules;
    !rules.is_empty() && rules.for_kind(kind_name(&request.kind)).next().is_some()
}

/// Judges an object of a kind that has no type here.
pub(crate) fn validate(
    basis: &ReviewContext<'_>,
    request: &AdmissionRequest<'_>,
    operation: Operation,
) -> ReviewOutcome {
    let mut verdict = Verdict::default();
    match run_user_rules(basis, request, operation, &mut verdict) {
        Ok(()) => {
            AdmissionResponse::from_verdict(&request.uid, request_identity(request), &verdict)
                .into()
        }
        Err(answer) => (*answer).into(),
    }
}

/// The kind of a request.
fn kind_name<'a>(kind: &'a RequestKind<'a>) -> KindName<'a> {
    KindName {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.name,
    }
}

fn decode_value(
    raw: &RawValue,
    request: &AdmissionRequest<'_>,
    field: &str,
) -> Result<Value, Box<AdmissionResponse>> {
    duplicate_keys::from_str(raw.get()).map_err(|fault| match fault {
        DecodeError::DuplicateKey(key) => duplicate_key(request, field, &key),
        DecodeError::Json(error) => {
            let message = format!("request.{field} cannot be read: {error}");
            Box::new(AdmissionResponse::bad_request(&request.uid, message))
        }
    })
}

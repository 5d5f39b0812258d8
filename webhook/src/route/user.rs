//! The rules that users wrote. They see objects as they are sent, not as types; where none is about a kind,
//! nothing is decoded for them.

use super::{Basis, Judged, missing, named, twice};
use crate::answer::Answer;
use crate::envelope::{Kind, Request};
use crate::trace::Step;
use crate::unique::{self, Fault};
use lockkeeper_policies::engine::{Subject, Verdict};
use lockkeeper_policies::rule::{Change, Operation};
use lockkeeper_policies::user::{self, KindName};
use serde_json::Value;
use serde_json::value::RawValue;

/// Adds what the rules of users find. An answer is an error when the request makes no sense.
pub(super) fn judge(
    basis: &Basis<'_>,
    request: &Request<'_>,
    operation: Operation,
    verdict: &mut Verdict,
) -> Result<(), Box<Answer>> {
    if !is_for_users(basis, request) {
        return Ok(());
    }
    let rules = &basis.settings.user_rules;
    let kind = name(&request.kind);
    let decoding = basis.trace.begin(Step::Decode);
    let decode = |raw: Option<&RawValue>, field: &str| {
        let raw = raw.ok_or_else(|| missing(request, operation, field))?;
        decoded(raw, request, field)
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
        (None, Some(new)) => Subject::Create(new),
        (Some(old), Some(new)) => Subject::Update(Change { old, new }),
        (Some(old), None) => Subject::Delete(old),
        (None, None) => return Ok(()),
    };
    let _rules = basis.trace.begin(Step::Rules);
    user::review(rules, kind, &subject, basis.settings, verdict);
    Ok(())
}

/// Whether any rule of a user is about the kind of a request.
pub(crate) fn is_for_users(basis: &Basis<'_>, request: &Request<'_>) -> bool {
    let rules = &basis.settings.user_rules;
    !rules.is_empty() && rules.about(name(&request.kind)).next().is_some()
}

/// Judges an object of a kind that has no type here.
pub(crate) fn validate(basis: &Basis<'_>, request: &Request<'_>, operation: Operation) -> Judged {
    let mut verdict = Verdict::default();
    match judge(basis, request, operation, &mut verdict) {
        Ok(()) => Answer::judged(&request.uid, named(request), &verdict).into(),
        Err(answer) => (*answer).into(),
    }
}

/// The kind of a request.
fn name<'a>(kind: &'a Kind<'a>) -> KindName<'a> {
    KindName {
        group: &kind.group,
        version: &kind.version,
        kind: &kind.name,
    }
}

fn decoded(raw: &RawValue, request: &Request<'_>, field: &str) -> Result<Value, Box<Answer>> {
    unique::from_str(raw.get()).map_err(|fault| match fault {
        Fault::Twice(key) => twice(request, field, &key),
        Fault::Json(error) => {
            let message = format!("request.{field} cannot be read: {error}");
            Box::new(Answer::bad_request(&request.uid, message))
        }
    })
}

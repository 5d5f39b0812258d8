//! The finding for a value that does not fit its type. It comes from whoever decodes the object, not
//! from a check.

use crate::finding::{ErrorKind, Finding, quoted};
use crate::rule::{Layer, Operation, RuleInfo};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use serde_path_to_error::Segment;
use std::borrow::Cow;

/// The id under which they go.
pub const ID: &str = "SC001";

/// The most characters of a decoder's message that are repeated: it may quote the input.
const REASON_LENGTH_MAX: usize = 200;

/// What is known of it.
pub(crate) fn info() -> RuleInfo {
    RuleInfo {
        id: ID,
        name: "undecodable-value",
        group: "*".to_owned(),
        kind: "*".to_owned(),
        since: "0.1.0",
        action: Action::Enforce,
        covers: &["mutating-decode-error"],
        layers: &[Layer::Webhook],
        operations: &[Operation::Create, Operation::Update],
        doc: include_str!("undecodable.md"),
    }
}

impl Finding {
    /// A decoder's error about a value below `base`.
    #[must_use]
    pub fn misfit(base: FieldPath, error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        let field = error.path().iter().fold(base, |path, it| match it {
            Segment::Seq { index } => path.index(*index),
            Segment::Map { key } => path.named(key.as_str()),
            Segment::Enum { .. } | Segment::Unknown => path,
        });
        Self::undecodable(field, None, &error.inner().to_string())
    }

    /// A value of an object does not fit its type. `value` is the value seen, as JSON, where it is
    /// known; `reason` is what the decoder said.
    #[must_use]
    pub fn undecodable(field: FieldPath, value: Option<&Value>, reason: &str) -> Self {
        let value = match value {
            Some(Value::String(text)) => Some(quoted(text)),
            Some(Value::Array(_)) => Some("a list".to_owned()),
            Some(Value::Object(_)) => Some("an object".to_owned()),
            other => other.map(Value::to_string),
        };
        Self {
            rule: Cow::Borrowed(ID),
            field,
            kind: ErrorKind::TypeInvalid,
            detail: match &value {
                Some(_) => accepted(reason),
                None => reason.to_owned(),
            }
            .chars()
            .take(REASON_LENGTH_MAX)
            .collect(),
            value,
        }
    }
}

/// What a decoder's message says would be accepted; the value that it repeats is shown already.
fn accepted(reason: &str) -> String {
    let typed = ["invalid type: ", "invalid value: ", "unknown variant `"];
    let repeats = typed.iter().any(|start| reason.starts_with(start));
    match reason.rsplit_once("expected ") {
        Some((_, expected)) if repeats => format!("must be {}", expected.replace('`', "\"")),
        _ => reason.to_owned(),
    }
}

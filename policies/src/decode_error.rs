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

/// Fields whose parts are named by users.
const MAPS: [&str; 5] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "nodeLabels",
];

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
        ratchets: true,
        doc: include_str!("decode_error.md"),
    }
}

impl Finding {
    /// A decoder's error about a value below `base` in an object, where the object is at hand.
    #[must_use]
    pub fn type_mismatch(
        base: FieldPath,
        error: &serde_path_to_error::Error<serde_json::Error>,
        object: Option<&Value>,
    ) -> Self {
        let mut is_map = false;
        let field = error.path().iter().fold(base, |path, it| match it {
            Segment::Seq { index } => path.index(*index),
            Segment::Map { key } if is_map => path.key(key.as_str()),
            Segment::Map { key } => {
                is_map = MAPS.contains(&key.as_str());
                path.named(key.as_str())
            }
            Segment::Enum { variant } => path.named(variant.as_str()),
            Segment::Unknown => path,
        });
        let value = object.and_then(|object| object.pointer(&field.pointer()));
        Self::decode_error(field, value, &reason(error.inner()))
    }

    /// A value of an object does not fit its type. `value` is the value seen, as JSON, where it is
    /// known; `reason` is what the decoder said.
    #[must_use]
    pub fn decode_error(field: FieldPath, value: Option<&Value>, reason: &str) -> Self {
        let seen = match value {
            Some(Value::String(text)) => Some(quoted(text)),
            Some(Value::Array(_)) => Some("a list".to_owned()),
            Some(Value::Object(_)) => Some("an object".to_owned()),
            other => other.map(Value::to_string),
        };
        Self {
            rule: Cow::Borrowed(ID),
            field,
            kind: ErrorKind::TypeInvalid,
            detail: match &seen {
                Some(_) => expectation(value, reason),
                None => reason.to_owned(),
            }
            .chars()
            .take(REASON_LENGTH_MAX)
            .collect(),
            value: seen,
        }
    }
}

/// A decoder's error without line and column: they count within what was decoded, which nobody has seen.
#[must_use]
pub fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// What a decoder's message says would be accepted; the value that it repeats is shown already.
fn expectation(value: Option<&Value>, reason: &str) -> String {
    let typed = ["invalid type: ", "invalid value: ", "unknown variant `"];
    let repeats = typed.iter().any(|start| reason.starts_with(start));
    match reason.rsplit_once("expected ") {
        Some((_, "a string")) if matches!(value, Some(Value::Bool(_) | Value::Number(_))) => {
            "must be a string; put it in quotes".to_owned()
        }
        Some((_, expected)) if repeats => format!("must be {}", expected.replace('`', "\"")),
        _ => reason.to_owned(),
    }
}

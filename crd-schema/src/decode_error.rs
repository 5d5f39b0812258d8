//! The finding for a value that does not fit the type of its field. The decoder of the object reports it, not a
//! rule.

use crate::finding::{ErrorKind, Finding, quoted};
use crate::rule_ids::UNDECODABLE;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use serde_path_to_error::Segment;
use std::borrow::Cow;

/// Fields with keys that users choose: their entries are printed in brackets.
const MAPS: [&str; 5] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "nodeLabels",
];

/// The most characters of a decoder's message in a finding: it may quote the input.
const REASON_LENGTH_MAX: usize = 200;

impl Finding {
    /// A decoder's error about a value below `base`. With the object the finding shows the value.
    #[must_use]
    pub fn type_mismatch(
        base: FieldPath,
        error: &serde_path_to_error::Error<serde_json::Error>,
        object: Option<&Value>,
    ) -> Self {
        // A map is a leaf of the decoded types, so the flag is never reset.
        let mut is_map = false;
        let field = error
            .path()
            .iter()
            .fold(base, |path, segment| match segment {
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

    /// A value does not fit the type of its field. `value` is the value as JSON, if known; `reason` is the
    /// decoder's message.
    #[must_use]
    pub fn decode_error(field: FieldPath, value: Option<&Value>, reason: &str) -> Self {
        let value_text = match value {
            Some(Value::String(text)) => Some(quoted(text)),
            Some(Value::Array(_)) => Some("a list".to_owned()),
            Some(Value::Object(_)) => Some("an object".to_owned()),
            other => other.map(Value::to_string),
        };
        Self {
            rule: Cow::Borrowed(UNDECODABLE),
            field,
            kind: ErrorKind::TypeInvalid,
            detail: match &value_text {
                Some(_) => expectation(value, reason),
                None => reason.to_owned(),
            }
            .chars()
            .take(REASON_LENGTH_MAX)
            .collect(),
            value: value_text,
        }
    }
}

/// A decoder's error without line and column: they count within the decoded fragment, not in the user's file.
#[must_use]
pub fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// The expected type from a decoder's message, without the value, which the finding shows already.
fn expectation(value: Option<&Value>, reason: &str) -> String {
    let typed = ["invalid type: ", "invalid value: ", "unknown variant `"];
    let repeats = typed.iter().any(|start| reason.starts_with(start));
    // The decoders of serde and of the API server.
    let needs_text = reason.ends_with("expected a string") || reason.ends_with(" into string");
    match reason.rsplit_once("expected ") {
        _ if needs_text && matches!(value, Some(Value::Bool(_) | Value::Number(_))) => {
            "must be a string; put it in quotes".to_owned()
        }
        Some((_, expected)) if repeats => format!("must be {}", expected.replace('`', "\"")),
        _ => reason.to_owned(),
    }
}

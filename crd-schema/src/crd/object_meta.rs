//! Decodes `metadata` as Go decodes `ObjectMeta`: types, unknown fields, and the form that is stored.

use super::formats::time::parse_rfc3339;
use super::numbers;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The decoded metadata.
#[derive(Debug, Default)]
pub(super) struct DecodedMeta {
    /// The fields that are set, in their stored form.
    pub(super) fields: Map<String, Value>,
    /// Unknown fields, below `metadata`.
    pub(super) unknown: Vec<String>,
}

/// How a field is decoded.
enum FieldType {
    Text,
    Integer,
    OptionalInteger,
    OptionalBool,
    Time,
    TextMap,
    TextList,
    List(&'static [(&'static str, FieldType)]),
    /// A text that is stored even if it is empty.
    RequiredText,
    AnyObject,
}

const FIELDS: &[(&str, FieldType)] = &[
    ("name", FieldType::Text),
    ("generateName", FieldType::Text),
    ("namespace", FieldType::Text),
    ("selfLink", FieldType::Text),
    ("uid", FieldType::Text),
    ("resourceVersion", FieldType::Text),
    ("generation", FieldType::Integer),
    ("creationTimestamp", FieldType::Time),
    ("deletionTimestamp", FieldType::Time),
    ("deletionGracePeriodSeconds", FieldType::OptionalInteger),
    ("labels", FieldType::TextMap),
    ("annotations", FieldType::TextMap),
    ("ownerReferences", FieldType::List(OWNER_FIELDS)),
    ("finalizers", FieldType::TextList),
    ("managedFields", FieldType::List(MANAGED_FIELDS)),
];

const OWNER_FIELDS: &[(&str, FieldType)] = &[
    ("apiVersion", FieldType::RequiredText),
    ("kind", FieldType::RequiredText),
    ("name", FieldType::RequiredText),
    ("uid", FieldType::RequiredText),
    ("controller", FieldType::OptionalBool),
    ("blockOwnerDeletion", FieldType::OptionalBool),
];

const MANAGED_FIELDS: &[(&str, FieldType)] = &[
    ("manager", FieldType::Text),
    ("operation", FieldType::Text),
    ("apiVersion", FieldType::Text),
    ("time", FieldType::Time),
    ("fieldsType", FieldType::Text),
    ("fieldsV1", FieldType::AnyObject),
    ("subresource", FieldType::Text),
];

/// Decodes `metadata`.
///
/// # Errors
///
/// The reason if a value has the wrong type.
pub(super) fn decode(metadata: &Value) -> Result<DecodedMeta, String> {
    let mut out = DecodedMeta::default();
    match metadata {
        Value::Null => {}
        Value::Object(fields) => {
            out.fields = decode_fields(FIELDS, fields, "", &mut out.unknown)?;
        }
        other => return Err(mismatch(other, "ObjectMeta")),
    }
    Ok(out)
}

fn mismatch(value: &Value, expected: &str) -> String {
    let kind = match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    };
    format!("cannot decode {kind} into {expected}")
}

fn decode_fields(
    known: &[(&str, FieldType)],
    fields: &Map<String, Value>,
    prefix: &str,
    unknown: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    let mut out = Map::new();
    for (name, value) in fields {
        let Some((_, kind)) = known.iter().find(|it| it.0 == name) else {
            unknown.push(format!("{prefix}{name}"));
            continue;
        };
        let path = format!("{prefix}{name}");
        if let Some(value) = decode_field(kind, value, &path, unknown)? {
            out.insert(name.clone(), value);
        }
    }
    for (name, kind) in known {
        if matches!(kind, FieldType::RequiredText) && !out.contains_key(*name) {
            out.insert((*name).to_owned(), Value::String(String::new()));
        }
    }
    Ok(out)
}

/// The stored form of a field; `None` if it is empty.
fn decode_field(
    kind: &FieldType,
    value: &Value,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, String> {
    let wrong = |expected: &str| Err(format!("{path}: {}", mismatch(value, expected)));
    Ok(match (kind, value) {
        (_, Value::Null) => None,
        (FieldType::Text | FieldType::RequiredText, Value::String(text)) => {
            (!text.is_empty()).then(|| value.clone())
        }
        (FieldType::Time, Value::String(text)) => match parse_rfc3339(text) {
            Some(instant) => Some(stored_time(instant.seconds).map_or(Value::Null, Value::String)),
            None => return Err(format!("{path}: {text:?} is not a time")),
        },
        (FieldType::Text | FieldType::RequiredText | FieldType::Time, _) => return wrong("string"),
        (FieldType::Integer | FieldType::OptionalInteger, Value::Number(_)) => {
            let Some(integer) = whole(value) else {
                return wrong("int64");
            };
            let is_stored = integer != 0 || matches!(kind, FieldType::OptionalInteger);
            is_stored.then(|| integer.into())
        }
        (FieldType::Integer | FieldType::OptionalInteger, _) => return wrong("int64"),
        (FieldType::OptionalBool, Value::Bool(_)) | (FieldType::AnyObject, _) => {
            Some(value.clone())
        }
        (FieldType::OptionalBool, _) => return wrong("bool"),
        (FieldType::TextMap, Value::Object(entries)) => {
            let mut out = Map::new();
            for (key, value) in entries {
                out.insert(key.clone(), text_or_empty(value, path)?);
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        (FieldType::TextMap, _) => return wrong("map[string]string"),
        (FieldType::TextList, Value::Array(items)) => {
            let items: Result<Vec<Value>, String> =
                items.iter().map(|it| text_or_empty(it, path)).collect();
            let items = items?;
            (!items.is_empty()).then_some(Value::Array(items))
        }
        (FieldType::TextList, _) => return wrong("[]string"),
        (FieldType::List(known), Value::Array(items)) => {
            let mut out = Vec::with_capacity(items.len());
            for (position, item) in items.iter().enumerate() {
                let prefix = format!("{path}[{position}].");
                let empty = Map::new();
                let fields = match item {
                    Value::Null => &empty,
                    Value::Object(fields) => fields,
                    other => return Err(format!("{path}: {}", mismatch(other, "object"))),
                };
                out.push(Value::Object(decode_fields(
                    known, fields, &prefix, unknown,
                )?));
            }
            (!out.is_empty()).then_some(Value::Array(out))
        }
        (FieldType::List(_), _) => return wrong("list"),
    })
}

fn text_or_empty(value: &Value, path: &str) -> Result<Value, String> {
    match value {
        Value::String(_) => Ok(value.clone()),
        Value::Null => Ok(Value::String(String::new())),
        other => Err(format!("{path}: {}", mismatch(other, "string"))),
    }
}

/// A number without a fraction. Go encodes the float 1.0 as `1` before it is decoded.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value.as_f64()?;
        let is_whole = float.fract() == 0.0 && float.abs() < 9e18;
        is_whole.then(|| numbers::truncate(float))
    })
}

/// A time in the form that is stored: UTC, without a fraction.
pub(crate) fn stored_time(seconds: i64) -> Option<String> {
    Timestamp::from_second(seconds)
        .ok()
        .map(|it| it.to_string())
}

//! The body of a request, with its `apiVersion` and `kind`.

use super::kind::BuiltInKind;
use crate::crd::decode::{DEPTH_MAX, decode_merging};
use crate::crd::names::parse_group_version;
use crate::crd::values::{is_deeper_than, normalized};
use crate::crd::{Body, StrictProblem};
use serde_json::{Map, Value};

/// A body before its fields are decoded.
pub(super) struct Envelope {
    pub(super) fields: Map<String, Value>,
    /// The paths of duplicate fields.
    pub(super) duplicates: Vec<String>,
    pub(super) strict: Vec<StrictProblem>,
}

/// Reads a body as the API server finds out its kind.
///
/// # Errors
///
/// The reason if the body is no object, or one of another kind.
pub(super) fn read(kind: BuiltInKind, body: &Body<'_>) -> Result<Envelope, String> {
    let mut duplicates = Vec::new();
    let mut strict = Vec::new();
    let value = match body {
        Body::Object(object) if is_deeper_than(object, DEPTH_MAX) => {
            return Err("exceeded max depth".to_owned());
        }
        Body::Object(object) => normalized(object),
        Body::Text(text, content_type) => {
            let decoded = decode_merging(text, *content_type)?;
            duplicates = decoded.duplicates;
            if decoded.has_duplicate_keys {
                strict.push(StrictProblem::DuplicateKey);
            }
            decoded.value
        }
    };
    let fields = match value {
        Value::Object(fields) => fields,
        // An object without a kind: the URL of the request names it.
        Value::Null => Map::new(),
        _ => return Err("the text is not an object".to_owned()),
    };
    check_type(kind, &fields)?;
    Ok(Envelope {
        fields,
        duplicates,
        strict,
    })
}

/// Checks `apiVersion` and `kind`. The URL of the request names the parts that are absent.
fn check_type(kind: BuiltInKind, fields: &Map<String, Value>) -> Result<(), String> {
    let name = type_text(fields, "kind")?;
    let api_version = type_text(fields, "apiVersion")?;
    let Some((group, version)) = parse_group_version(api_version) else {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    };
    if !name.is_empty() && name != kind.name() {
        return Err(format!("kind is {name}, not {}", kind.name()));
    }
    let is_default = version.is_empty() && (group.is_empty() || group == kind.group());
    if !is_default && (group, version) != (kind.group(), kind.version()) {
        return Err(format!(
            "apiVersion is {api_version}, not {}",
            kind.api_version()
        ));
    }
    Ok(())
}

/// The text of `kind` or `apiVersion`; empty if it is absent or null. The API server ignores the case of the name, and
/// the last one counts.
fn type_text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let mut out = "";
    let mut named: Vec<_> = fields
        .iter()
        .filter(|(key, _)| key.eq_ignore_ascii_case(name))
        .collect();
    named.sort_by_key(|(key, _)| key.as_str() == name);
    for (_, value) in named {
        match value {
            Value::Null => {}
            Value::String(text) => out = text,
            _ => return Err(format!("{name} must be a string")),
        }
    }
    Ok(out)
}

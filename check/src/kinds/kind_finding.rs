//! Findings about documents without a kind, or of a kind that cannot exist.

use super::catalog::{Catalog, Lookup};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::Finding;
use serde_json::Value;

/// A finding about a document that is no object, or whose kind cannot exist. `None` if the kind may exist.
pub fn kind_finding<'a>(
    object: &Value,
    catalog: &Catalog,
    newest_version: impl FnOnce(&str) -> Option<&'a str>,
) -> Option<Finding> {
    if !object.is_object() {
        let reason = "every document must be an object with apiVersion and kind";
        return Some(Finding::decode_error(
            FieldPath::default(),
            Some(object),
            reason,
        ));
    }
    let Some(kind) = object.get("kind").and_then(Value::as_str) else {
        let reason = "missing; every object has apiVersion and kind";
        return Some(Finding::decode_error(
            FieldPath::new("kind"),
            object.get("kind"),
            reason,
        ));
    };
    let Some(api_version) = object.get("apiVersion").and_then(Value::as_str) else {
        let version = newest_version(kind)?;
        let reason = format!("missing; set it, for example to {version}");
        return Some(Finding::decode_error(
            FieldPath::new("apiVersion"),
            None,
            &reason,
        ));
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (field, value, reason) = match catalog.find(group, version, kind) {
        Lookup::Possible => return None,
        Lookup::UnknownKind(remedy) => ("kind", kind, remedy),
        Lookup::UnknownVersion(near) => {
            let near = if group.is_empty() {
                near
            } else {
                format!("{group}/{near}")
            };
            (
                "apiVersion",
                api_version,
                format!("there is no such version; did you mean {near}?"),
            )
        }
        Lookup::MisspeltGroup(near) => {
            let reason = format!(
                "there is no such group with the kind {kind}; did you mean {near}/{version}?"
            );
            ("apiVersion", api_version, reason)
        }
    };
    let value = Value::from(value);
    Some(Finding::decode_error(
        FieldPath::new(field),
        Some(&value),
        &reason,
    ))
}

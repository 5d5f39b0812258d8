//! Validates the fields that the scale subresource reads.

use super::definition::Scale;
use crate::finding::{ErrorKind, Finding};
use crate::rule_ids::SCHEMA_VIOLATION;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::borrow::Cow;

/// Validates the replicas of the spec.
pub(super) fn validate_spec(scale: Option<&Scale>, object: &Value) -> Vec<Finding> {
    scale
        .and_then(|it| replicas(&it.spec_replicas, object))
        .into_iter()
        .collect()
}

/// Validates the replicas and the selector of the status.
pub(super) fn validate_status(scale: Option<&Scale>, object: &Value) -> Vec<Finding> {
    let Some(scale) = scale else {
        return Vec::new();
    };
    let replicas = replicas(&scale.status_replicas, object);
    let selector = scale.label_selector.as_deref().and_then(|path| {
        let problem = match lookup(path, object) {
            Ok(None | Some(Value::String(_))) => return None,
            Ok(Some(_)) => "accessor error: not a string",
            Err(problem) => problem,
        };
        Some(finding(path, problem))
    });
    replicas.into_iter().chain(selector).collect()
}

fn finding(path: &str, problem: &'static str) -> Finding {
    Finding {
        rule: Cow::Borrowed(SCHEMA_VIOLATION),
        // The API server prints the path as it is written in the definition, with the dot in front.
        field: FieldPath::default().named(path),
        kind: ErrorKind::Invalid,
        value: None,
        detail: Cow::Borrowed(problem),
    }
}

/// The value at a path such as `.spec.replicas`.
fn lookup<'a>(path: &str, object: &'a Value) -> Result<Option<&'a Value>, &'static str> {
    let mut value = object;
    for name in path.strip_prefix('.').unwrap_or(path).split('.') {
        // A null on the path counts as an unset field.
        if value.is_null() {
            return Ok(None);
        }
        let Value::Object(fields) = value else {
            return Err("accessor error: not an object");
        };
        match fields.get(name) {
            Some(below) => value = below,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn replicas(path: &str, object: &Value) -> Option<Finding> {
    let problem = match lookup(path, object) {
        Ok(None) => return None,
        Err(problem) => problem,
        Ok(Some(value)) => match value.as_i64() {
            None => "accessor error: not an integer",
            Some(count) if count < 0 => "should be a non-negative integer",
            Some(count) if count > i64::from(i32::MAX) => {
                "should be less than or equal to 2147483647"
            }
            Some(_) => return None,
        },
    };
    Some(finding(path, problem))
}

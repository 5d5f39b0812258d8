//! Warnings about schemas.

use super::collector::{object, text};
use super::structural::below;
use crate::crd::formats;
use crate::crd::values::array_at;
use serde_json::Value;
use std::collections::BTreeSet;

/// Warnings about the schemas of all versions, each once.
pub(super) fn warnings(spec: &Value) -> Vec<String> {
    let mut out = BTreeSet::new();
    for version in array_at(spec, "versions") {
        let schema = object(version, "schema").and_then(|it| object(it, "openAPIV3Schema"));
        if let Some(schema) = schema {
            visit(schema, &mut out);
        }
    }
    out.into_iter().collect()
}

fn visit(schema: &Value, out: &mut BTreeSet<String>) {
    let format = text(schema, "format");
    let is_known = match text(schema, "type") {
        "" | "string" => formats::is_known(format),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    if !format.is_empty() && !is_known {
        out.insert(format!("unrecognized format {format:?}"));
    }
    if text(schema, "x-kubernetes-list-type") == "set" {
        let kind = object(schema, "items").map_or("", |it| text(it, "type"));
        if matches!(kind, "object" | "array") {
            out.insert(format!("x-kubernetes-list-type: set for items of type {kind:?} is not supported by server-side apply or CEL validation rules"));
        }
    }
    for schema in below(schema) {
        visit(schema, out);
    }
}

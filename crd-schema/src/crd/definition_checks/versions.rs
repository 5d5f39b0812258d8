//! The parts of a version: subresources, printer columns, selectable fields, deprecation.

use super::collector::{Collector, entries, is_set, object, text};
use crate::crd::unicode::is_printable;
use crate::crd::values::array_at;
use crate::finding::ErrorKind;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The most selectable fields of a version.
const SELECTABLE_FIELDS_MAX: usize = 8;

/// The longest deprecation warning, in bytes.
const WARNING_MAX_BYTES: usize = 256;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

const COLUMN_FORMATS: [&str; 9] = [
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "date",
    "date-time",
    "password",
    "binary",
];

pub(super) fn deprecation(version: &Value, path: &FieldPath, out: &mut Collector) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let field = path.clone().field("deprecationWarning");
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        out.invalid(field, "can only be set for deprecated versions");
        return;
    }
    if warning.len() > WARNING_MAX_BYTES {
        out.invalid(field.clone(), "must be <= 256 characters long");
    }
    if warning.is_empty() {
        out.invalid(field.clone(), "must not be an empty string");
    }
    if !is_printable(warning) {
        out.invalid(field, "must only contain printable UTF-8 characters");
    }
}

pub(super) fn subresources(subresources: &Value, path: &FieldPath, out: &mut Collector) {
    let Some(scale) = object(subresources, "scale") else {
        return;
    };
    let replicas = [
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
    ];
    for (key, prefix) in replicas {
        let field = path.clone().named(format!("scale.{key}"));
        let value = text(scale, key);
        if value.is_empty() {
            out.required(field, "");
        } else if simple_path(value, &field, out) && !value.starts_with(prefix) {
            out.invalid(
                field,
                format!(
                    "should be a json path under {}",
                    prefix.trim_end_matches('.')
                ),
            );
        }
    }
    let selector = text(scale, "labelSelectorPath");
    let field = path.clone().field("scale.labelSelectorPath");
    if !selector.is_empty()
        && simple_path(selector, &field, out)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        out.invalid(field, "should be a json path under either .spec or .status");
    }
}

/// Whether a JSON path begins with a dot; reports it otherwise.
fn simple_path(path: &str, field: &FieldPath, out: &mut Collector) -> bool {
    let is_simple = path.starts_with('.');
    if !is_simple {
        out.invalid(field.clone(), "must be a simple json path starting with .");
    }
    is_simple
}

pub(super) fn columns(columns: &[Value], path: &FieldPath, out: &mut Collector) {
    for (position, column) in columns.iter().enumerate() {
        let item = path.clone().index(position);
        if text(column, "name").is_empty() {
            out.required(item.clone().field("name"), "");
        }
        let kind = text(column, "type");
        let types = || format!("must be one of {}", COLUMN_TYPES.join(","));
        if kind.is_empty() {
            out.required(item.clone().field("type"), types());
        } else if !COLUMN_TYPES.contains(&kind) {
            out.invalid(item.clone().field("type"), types());
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            out.invalid(item.clone().field("format"), detail);
        }
        let field = item.field("JSONPath");
        let json_path = text(column, "jsonPath");
        if json_path.is_empty() {
            out.required(field, "");
        } else {
            simple_path(json_path, &field, out);
        }
    }
}

pub(super) fn selectable_fields(
    fields: &[Value],
    schema: &Value,
    path: &FieldPath,
    out: &mut Collector,
) {
    let mut unique: Vec<Vec<String>> = Vec::new();
    for (position, selectable) in fields.iter().enumerate() {
        let field = path.clone().index(position).field("jsonPath");
        let json_path = text(selectable, "jsonPath");
        if json_path.is_empty() {
            out.required(field, "");
            continue;
        }
        let Ok((steps, found)) = field_at(json_path, schema, false) else {
            out.invalid(field, "is an invalid path");
            continue;
        };
        if steps.first().is_some_and(|it| it == "metadata") {
            out.invalid(field.clone(), "must not point to fields in metadata");
        }
        if !matches!(text(found, "type"), "string" | "boolean" | "integer") {
            out.invalid(
                field.clone(),
                "must point to a field of type string, boolean or integer",
            );
        }
        if unique.contains(&steps) {
            out.push(field, ErrorKind::Duplicate, Some(&json_path.into()), "");
        } else {
            unique.push(steps);
        }
    }
    if unique.len() > SELECTABLE_FIELDS_MAX {
        let detail = format!("must have at most {SELECTABLE_FIELDS_MAX} items");
        out.push(
            path.clone(),
            ErrorKind::TooMany,
            Some(&unique.len().into()),
            detail,
        );
    }
}

/// The steps of a path such as `.spec['a'].b` and the schema that it leads to.
///
/// # Errors
///
/// If the path is not valid for the schema.
pub(super) fn field_at<'a>(
    path: &str,
    schema: &'a Value,
    allows_brackets: bool,
) -> Result<(Vec<String>, &'a Value), ()> {
    let mut steps = Vec::new();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(quoted) = rest.strip_prefix("['").filter(|_| allows_brackets) {
            let (text, after) = unquoted(quoted).ok_or(())?;
            name = text;
            rest = after.strip_prefix(']').ok_or(())?;
        } else {
            let body = rest.strip_prefix('.').ok_or(())?;
            let end = body.find(['.', '[', ']']).unwrap_or(body.len());
            let (text, after) = body.split_at(end);
            if text.is_empty() {
                return Err(());
            }
            name = text.to_owned();
            rest = after;
        }
        schema = if is_set(schema, "properties") {
            let mut properties = entries(schema, "properties");
            properties
                .find(|it| *it.0 == name)
                .map(|it| it.1)
                .ok_or(())?
        } else {
            match schema.get("additionalProperties") {
                // Nothing is known about the value.
                Some(Value::Bool(_)) => &Value::Null,
                _ => object(schema, "additionalProperties").ok_or(())?,
            }
        };
        steps.push(name);
    }
    Ok((steps, schema))
}

/// A quoted text without its escapes, and the rest after the closing quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\'' => return Some((out, text.get(at.checked_add(1)?..)?)),
            '\\' => match signs.next()?.1 {
                escaped @ ('\'' | '\\') => out.push(escaped),
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'a' | 'b' | 'f' | 'v' => out.push(' '),
                _ => return None,
            },
            other => out.push(other),
        }
    }
    None
}

/// The columns of a version.
pub(super) fn columns_of(version: &Value) -> &[Value] {
    array_at(version, "additionalPrinterColumns")
}

//! Whether a schema is structural: the invariants and the completeness of value validations.

use super::collector::{Collector, entries, is_set, object, text};
use crate::crd::go_regex;
use crate::crd::values::{array_at, flag_at};
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Value, json};

/// The place of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Keywords that no structural schema has.
const UNSUPPORTED: [&str; 7] = [
    "id",
    "$schema",
    "$ref",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
];

/// Whether a schema or one below it has a keyword that no structural schema has.
pub(super) fn has_unsupported_keywords(schema: &Value) -> bool {
    let is_unsupported = |key: &str| {
        schema.get(key).is_some_and(|it| match it {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(entries) => !entries.is_empty() || key == "additionalItems",
            _ => true,
        })
    };
    UNSUPPORTED.iter().any(|it| is_unsupported(it))
        || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false))
        || schema.get("items").is_some_and(Value::is_array)
        || below(schema).into_iter().any(has_unsupported_keywords)
}

/// The schemas directly below a schema.
pub(super) fn below(schema: &Value) -> Vec<&Value> {
    let mut out: Vec<&Value> = entries(schema, "properties").map(|it| it.1).collect();
    for key in ["items", "additionalProperties", "not"] {
        out.extend(object(schema, key));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        out.extend(array_at(schema, key));
    }
    out
}

/// Validates a structural schema.
pub(super) fn validate(schema: &Value, path: &FieldPath, out: &mut Collector) {
    invariants(schema, Level::Root, path, out);
    completeness(schema, Some(schema), path, path, out);
}

fn properties_path(path: &FieldPath, name: &str) -> FieldPath {
    path.clone().field("properties").key(name)
}

fn invariants(schema: &Value, level: Level, path: &FieldPath, out: &mut Collector) {
    let kind = text(schema, "type");
    if kind == "array" && object(schema, "items").is_none() {
        out.required(path.clone().field("items"), "must be specified");
    }
    if let Some(items) = object(schema, "items") {
        invariants(items, Level::Item, &path.clone().field("items"), out);
    }
    for (name, property) in entries(schema, "properties") {
        invariants(property, Level::Field, &properties_path(path, name), out);
    }
    let has_additional = is_set(schema, "additionalProperties");
    let additional_path = path.clone().field("additionalProperties");
    if has_additional && level == Level::Root {
        out.forbidden(additional_path.clone(), "must not be used at the root");
    }
    if let Some(additional) = object(schema, "additionalProperties") {
        invariants(additional, Level::Field, &additional_path, out);
    }
    let flag = |key: &str| flag_at(schema, key);
    let is_embedded = flag("x-kubernetes-embedded-resource");
    let is_int_or_string = flag("x-kubernetes-int-or-string");
    let preserves = flag("x-kubernetes-preserve-unknown-fields");
    for (key, is_set) in [
        ("x-kubernetes-preserve-unknown-fields", preserves),
        ("x-kubernetes-embedded-resource", is_embedded),
    ] {
        if is_int_or_string && is_set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            out.invalid(path.clone().named(key), detail);
        }
    }
    let alternatives = array_at(schema, "anyOf");
    let first = array_at(schema, "allOf").first().unwrap_or(&Value::Null);
    value_validation(
        schema,
        is_int_or_string_pattern(alternatives),
        is_int_or_string_pattern(array_at(first, "anyOf")),
        path,
        out,
    );
    let type_path = path.clone().field("type");
    if is_embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        if kind.is_empty() {
            out.required(type_path.clone(), detail);
        } else {
            out.invalid(type_path.clone(), detail);
        }
    } else if kind.is_empty() && !is_int_or_string && !preserves {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        out.required(type_path.clone(), format!("must not be empty {place}"));
    }
    if is_embedded && has_additional {
        out.forbidden(
            additional_path,
            "must not be used if x-kubernetes-embedded-resource is set",
        );
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        out.invalid(type_path, "must be object at the root");
    }
    metadata(schema, level, is_embedded, path, out);
    if is_embedded && !preserves && entries(schema, "properties").next().is_none() {
        out.required(path.clone().field("properties"), "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields");
    }
}

/// The schemas of the fields that every resource has.
fn metadata(
    schema: &Value,
    level: Level,
    is_embedded: bool,
    path: &FieldPath,
    out: &mut Collector,
) {
    let is_resource = level == Level::Root || is_embedded;
    for (name, property) in entries(schema, "properties") {
        let field = properties_path(path, name);
        let expected = match name.as_str() {
            "kind" | "apiVersion" => "string",
            "metadata" => "object",
            _ => continue,
        };
        if is_resource && text(property, "type") != expected {
            out.invalid(field.clone().field("type"), format!("must be {expected}"));
        }
        if name == "metadata" && level == Level::Root {
            let is_known = |it: (&String, &Value)| matches!(it.0.as_str(), "name" | "generateName");
            let mut others = property.clone();
            if let Value::Object(others) = &mut others {
                if entries(property, "properties").all(is_known) {
                    others.remove("properties");
                }
                for key in ["type", "default"] {
                    others.remove(key);
                }
                others.retain(|key, value| is_kept(key, value));
                if !others.is_empty() {
                    out.forbidden(field, "must not specify anything other than name and generateName, but metadata is implicitly specified");
                }
            }
        }
    }
}

/// Whether a keyword makes a structural schema differ from an empty one. Some lists and objects are kept if empty.
fn is_kept(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) if items.is_empty() => matches!(
            key,
            "required" | "x-kubernetes-list-map-keys" | "x-kubernetes-validations"
        ),
        Value::Object(fields) if fields.is_empty() => {
            !matches!(key, "definitions" | "patternProperties" | "properties")
        }
        value => key == "additionalProperties" || !is_zero(value),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn is_int_or_string_pattern(alternatives: &[Value]) -> bool {
    alternatives == [json!({"type": "integer"}), json!({"type": "string"})]
}

/// Value validations: branches must not have structure.
fn value_validation(
    schema: &Value,
    skips_any_of: bool,
    skips_first_any_of: bool,
    path: &FieldPath,
    out: &mut Collector,
) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && skips_any_of {
            continue;
        }
        for (position, branch) in array_at(schema, key).iter().enumerate() {
            let skips = key == "allOf" && skips_first_any_of && position == 0;
            nested(branch, skips, &path.clone().named(key).index(position), out);
        }
    }
    if let Some(not) = object(schema, "not") {
        nested(not, false, &path.clone().field("not"), out);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty() && !go_regex::is_valid(pattern) {
        out.invalid(
            path.clone().field("pattern"),
            "must be a valid regular expression, but isn't",
        );
    }
}

/// A branch of a value validation.
fn nested(schema: &Value, skips_any_of: bool, path: &FieldPath, out: &mut Collector) {
    value_validation(schema, skips_any_of, false, path, out);
    if let Some(items) = object(schema, "items") {
        nested(items, false, &path.clone().field("items"), out);
    }
    for (name, property) in entries(schema, "properties") {
        nested(property, false, &properties_path(path, name), out);
    }
    let requirements = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        (
            "x-kubernetes-preserve-unknown-fields",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-int-or-string",
            "must be false to be structural",
        ),
        (
            "x-kubernetes-list-map-keys",
            "must be empty to be structural",
        ),
        (
            "x-kubernetes-list-type",
            "must be undefined to be structural",
        ),
        (
            "x-kubernetes-map-type",
            "must be undefined to be structural",
        ),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (key, detail) in requirements {
        let value = schema.get(key).unwrap_or(&Value::Null);
        let is_pointer = matches!(
            key,
            "default" | "x-kubernetes-list-type" | "x-kubernetes-map-type"
        );
        // `additionalProperties: false` of a branch is dropped.
        let is_present = match key {
            "additionalProperties" => value.is_object() || *value == Value::Bool(true),
            _ if is_pointer => !value.is_null(),
            _ => !is_zero(value),
        };
        if is_present {
            out.forbidden(path.clone().named(key), detail);
        }
    }
    if entries(schema, "properties").any(|it| it.0 == "metadata") {
        let field = properties_path(path, "metadata");
        out.forbidden(field, "must not be specified in a nested context");
    }
}

/// Every field with a value validation must be specified outside of branches.
fn completeness(
    validation: &Value,
    schema: Option<&Value>,
    schema_path: &FieldPath,
    path: &FieldPath,
    out: &mut Collector,
) {
    if schema.is_none() {
        out.required(
            schema_path.clone(),
            format!("because it is defined in {path}"),
        );
        return;
    }
    if let Some(not) = object(validation, "not") {
        nested_completeness(not, schema, schema_path, &path.clone().field("not"), out);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (position, branch) in array_at(validation, key).iter().enumerate() {
            let path = path.clone().named(key).index(position);
            nested_completeness(branch, schema, schema_path, &path, out);
        }
    }
}

fn nested_completeness(
    validation: &Value,
    schema: Option<&Value>,
    schema_path: &FieldPath,
    path: &FieldPath,
    out: &mut Collector,
) {
    let Some(schema) = schema else {
        out.required(
            schema_path.clone(),
            format!("because it is defined in {path}"),
        );
        return;
    };
    completeness(validation, Some(schema), schema_path, path, out);
    if let Some(items) = object(validation, "items") {
        let schema_path = schema_path.clone().field("items");
        nested_completeness(
            items,
            object(schema, "items"),
            &schema_path,
            &path.clone().field("items"),
            out,
        );
    }
    for (name, property) in entries(validation, "properties") {
        let specified = entries(schema, "properties")
            .find(|it| it.0 == name)
            .map(|it| it.1);
        let schema_path = properties_path(schema_path, name);
        nested_completeness(
            property,
            specified,
            &schema_path,
            &properties_path(path, name),
            out,
        );
    }
}

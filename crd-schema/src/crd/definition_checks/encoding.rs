//! The stored form of a definition: empty fields are omitted.

use serde_json::{Map, Value};

/// The fields that are omitted if they are empty.
const OMITTED: [&str; 32] = [
    "$schema",
    "additionalPrinterColumns",
    "allOf",
    "anyOf",
    "categories",
    "deprecated",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "fieldPath",
    "format",
    "id",
    "message",
    "messageExpression",
    "nullable",
    "oneOf",
    "pattern",
    "preserveUnknownFields",
    "properties",
    "required",
    "selectableFields",
    "shortNames",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
    "definitions",
    "patternProperties",
];

/// Fields of which the content is any JSON.
const ANY: [&str; 4] = ["default", "enum", "example", "metadata"];

/// Fields with names that users choose.
const MAPS: [&str; 4] = [
    "definitions",
    "dependencies",
    "patternProperties",
    "properties",
];

/// Omits empty fields of a definition.
pub(super) fn omit_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| !(OMITTED.contains(&name.as_str()) && is_empty(value)));
            for (name, value) in fields.iter_mut() {
                let name = name.as_str();
                match value {
                    _ if ANY.contains(&name) => {}
                    Value::Object(entries) if MAPS.contains(&name) => entries_of(entries),
                    value => omit_empty(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(omit_empty),
        _ => {}
    }
}

fn entries_of(entries: &mut Map<String, Value>) {
    entries.values_mut().for_each(omit_empty);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

//! The stored form of a definition: empty fields are omitted.

use serde_json::{Map, Value};

/// The fields that are omitted if they are empty.
const OMITTED: [&str; 34] = [
    "$schema",
    "additionalPrinterColumns",
    "allOf",
    "anyOf",
    "categories",
    "dependencies",
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
    "priority",
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

/// Fields of which the content is a number, encoded as Go encodes floats.
const NUMBERS: [&str; 3] = ["maximum", "minimum", "multipleOf"];

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
                    value if ANY.contains(&name) || NUMBERS.contains(&name) => {
                        whole_numbers(value);
                    }
                    Value::Object(entries) if MAPS.contains(&name) => entries_of(entries),
                    value => omit_empty(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(omit_empty),
        _ => {}
    }
}

/// Integral numbers are stored without a fraction.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|it| it.fract() == 0.0);
            if let Some(integer) = float.and_then(integer_of) {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the number is an integer in the range"
)]
fn integer_of(number: f64) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    (number.abs() <= EXACT_MAX).then_some(number as i64)
}

fn entries_of(entries: &mut Map<String, Value>) {
    entries.values_mut().for_each(omit_empty);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null => false,
    }
}

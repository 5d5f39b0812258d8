//! Access to JSON values.

use serde_json::{Map, Value};

pub(crate) fn text_at<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

pub(crate) fn array_at<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let items = value.get(key).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

pub(crate) fn flag_at(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

pub(crate) fn texts_at(value: &Value, key: &str) -> Vec<String> {
    let items = array_at(value, key).iter().filter_map(Value::as_str);
    items.map(str::to_owned).collect()
}

/// A value as messages quote it: its JSON, cut at a bound.
pub(crate) fn quoted_json(value: &Value) -> String {
    /// The most characters of a quoted value.
    const CHARACTERS_MAX: usize = 120;
    let text = match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    };
    text.chars().take(CHARACTERS_MAX).collect()
}

/// An object with the numbers that Go decodes: integers beyond 64 bits become floats.
pub(crate) fn normalized(object: &Value) -> Value {
    match object {
        Value::Number(number) if number.is_u64() && number.as_i64().is_none() => {
            number.as_f64().map_or(Value::Null, Value::from)
        }
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), normalized(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// The metadata of an object; empty if it has none.
pub(crate) fn metadata_of(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    object
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&EMPTY)
}

/// Whether a value is nested deeper than a limit.
pub(crate) fn is_deeper_than(value: &Value, limit: usize) -> bool {
    let Some(below) = limit.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|it| is_deeper_than(it, below)),
        Value::Object(fields) => fields.values().any(|it| is_deeper_than(it, below)),
        _ => false,
    }
}

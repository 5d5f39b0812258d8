//! Reads the fields of decoded objects. An absent field and null are the same.

use serde_json::Value;

/// A field; null if it is absent.
pub(super) fn value<'a>(object: &'a Value, key: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    object.get(key).unwrap_or(&NULL)
}

/// A field that is set.
pub(super) fn set<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|it| !it.is_null())
}

/// Whether a field is set.
pub(super) fn is_set(object: &Value, key: &str) -> bool {
    set(object, key).is_some()
}

/// A text; empty if it is absent.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    optional_text(object, key).unwrap_or_default()
}

/// A text that has a default.
pub(super) fn text_or<'a>(object: &'a Value, key: &str, default: &'a str) -> &'a str {
    match text(object, key) {
        "" => default,
        text => text,
    }
}

/// A text that is set.
pub(super) fn optional_text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// The items of a list.
pub(super) fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    let items = object.get(key).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// The texts of a list.
pub(super) fn texts<'a>(object: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list(object, key).iter();
    items.map(|it| it.as_str().unwrap_or_default()).collect()
}

/// A whole number. Decoded objects have floats where a client sends `1.0`.
pub(super) fn integer_of(value: &Value) -> Option<i64> {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the value is whole and in range"
    )]
    value.as_i64().or_else(|| {
        let float = value.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 9e18).then_some(float as i64)
    })
}

/// A number that is set.
pub(super) fn integer(object: &Value, key: &str) -> Option<i64> {
    object.get(key).and_then(integer_of)
}

/// A flag; false if it is absent.
pub(super) fn flag(object: &Value, key: &str) -> bool {
    optional_flag(object, key) == Some(true)
}

/// A flag that is set.
pub(super) fn optional_flag(object: &Value, key: &str) -> Option<bool> {
    object.get(key).and_then(Value::as_bool)
}

/// The entries of a map.
pub(super) fn entries<'a>(
    object: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let entries = object.get(key).and_then(Value::as_object);
    let entries = entries.into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value))
}

/// The entries of a map of texts.
pub(super) fn text_entries<'a>(
    object: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    entries(object, key).map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

/// The annotations of an object.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    let annotations = value(value(object, "metadata"), "annotations");
    optional_text(annotations, key)
}

/// Whether two values are equal as Go's `Semantic.DeepEqual` compares them: absent, null and empty are the same, and
/// numbers are compared by value. False and zero are the same as absent, since the API server stores most of them so.
pub(super) fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let covers = |all: &serde_json::Map<String, Value>,
                          others: &serde_json::Map<String, Value>| {
                let mut entries = all.iter();
                entries.all(|(key, it)| is_equal(it, others.get(key).unwrap_or(&Value::Null)))
            };
            covers(left, right) && covers(right, left)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| is_equal(a, b))
        }
        (Value::Null, other) | (other, Value::Null) => is_empty(other),
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => left == right,
    }
}

/// Whether a value is the same as an absent one.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

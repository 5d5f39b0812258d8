//! Access to the fields of decoded objects.

use serde_json::{Map, Value};

/// The text of a field; empty if it is absent.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a field is set.
pub(super) fn is_set(object: &Value, key: &str) -> bool {
    object.get(key).is_some_and(|it| !it.is_null())
}

/// Whether a list, a map or a struct without set fields is empty or absent.
pub(super) fn is_empty(object: &Value, key: &str) -> bool {
    match object.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(_) => false,
    }
}

/// Sets a field.
pub(super) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value.into());
    }
}

/// Removes a field.
pub(super) fn remove(object: &mut Value, key: &str) -> Option<Value> {
    object.as_object_mut()?.remove(key)
}

/// Sets a field that is not set.
pub(super) fn default(object: &mut Value, key: &str, value: impl Into<Value>) {
    if !is_set(object, key) {
        set(object, key, value);
    }
}

/// An object below a path of fields, if all of them are objects.
pub(super) fn below<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    let mut at = object;
    for key in path {
        at = at.get_mut(key)?;
    }
    at.is_object().then_some(at)
}

/// The items of a list; none if it is absent.
pub(super) fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    let items = object.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten()
}

/// The object of a field; an empty one is set if it is absent.
pub(super) fn ensure<'a>(object: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    default(object, key, Map::new());
    below(object, &[key])
}

/// Sets the text of an entry of a map of texts, such as labels.
pub(super) fn set_entry(object: &mut Value, map: &str, key: &str, value: &str) {
    if let Some(map) = ensure(object, map) {
        set(map, key, value);
    }
}

//! Access to the fields of decoded objects.

use serde_json::{Map, Value};

/// The text of a field; empty if there is none.
pub(super) fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a field is missing or null.
pub(super) fn is_unset(fields: &Map<String, Value>, name: &str) -> bool {
    fields.get(name).is_none_or(Value::is_null)
}

/// Whether a field is a list with items.
pub(super) fn has_items(fields: &Map<String, Value>, name: &str) -> bool {
    let items = fields.get(name).and_then(Value::as_array);
    items.is_some_and(|it| !it.is_empty())
}

pub(super) fn object_at<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> Option<&'a Map<String, Value>> {
    fields.get(name).and_then(Value::as_object)
}

pub(super) fn object_mut<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    fields.get_mut(name).and_then(Value::as_object_mut)
}

/// The objects of a list.
pub(super) fn items_mut<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let items = fields.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

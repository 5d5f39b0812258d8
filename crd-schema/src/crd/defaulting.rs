//! Sets the defaults of a schema.

use super::node::Node;
use serde_json::Value;

/// Sets missing fields, and fields that are null although the schema does not allow it, to their defaults; then the
/// fields below them. Idempotent.
pub(super) fn apply(value: &mut Value, schema: &Node) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default {
                    let stored = fields.get(name);
                    if stored.is_none_or(|it| it.is_null() && !property.is_nullable) {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    apply(value, property);
                } else if let Some(additional) = &schema.additional {
                    replace_null(value, additional);
                    apply(value, additional);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    replace_null(item, schema);
                    apply(item, schema);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, schema: &Node) {
    if value.is_null() && !schema.is_nullable {
        *value = schema.default.clone().unwrap_or_default();
    }
}

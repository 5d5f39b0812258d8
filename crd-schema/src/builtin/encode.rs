//! The stored form of decoded objects, as Go encodes their types.

use super::scalars;
use super::table::{Field, Omission, Table, Type};
use serde_json::{Map, Value};

/// Encodes a decoded value with the types of a table.
pub(super) fn encode(table: &Table, kind: &Type, value: &Value) -> Value {
    match (kind, value) {
        (Type::Pointer(_), Value::Null) => Value::Null,
        (Type::Pointer(target), value) => encode(table, target, value),
        (Type::Struct(name), value) => Value::Object(fields(table, name, value)),
        // The API server stores no difference between empty and absent.
        (Type::List(_), Value::Array(items)) if items.is_empty() => Value::Null,
        (Type::Map(_), Value::Object(entries)) if entries.is_empty() => Value::Null,
        (Type::List(item), Value::Array(items)) => {
            items.iter().map(|it| encode(table, item, it)).collect()
        }
        (Type::Map(item), Value::Object(entries)) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| (key.clone(), encode(table, item, value)));
            Value::Object(entries.collect())
        }
        (kind, Value::Null) => scalars::zero(kind),
        (_, value) => value.clone(),
    }
}

fn fields(table: &Table, definition: &str, object: &Value) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, field) in table.definition(definition) {
        let value = object.get(*name).unwrap_or(&Value::Null);
        if !is_omitted(field, value) {
            let value = if field.is_pointer && value.is_null() {
                Value::Null
            } else {
                encode(table, &field.kind, value)
            };
            out.insert((*name).to_owned(), value);
        }
    }
    out
}

fn is_omitted(field: &Field, value: &Value) -> bool {
    match field.omits {
        Omission::Never => false,
        Omission::Zero => value.is_null(),
        Omission::Empty if field.is_pointer => value.is_null(),
        Omission::Empty => match &field.kind {
            Type::Text | Type::Bytes => value.as_str().is_none_or(str::is_empty),
            Type::Bool => value.as_bool() != Some(true),
            Type::Int32 | Type::Int64 | Type::Float => value.as_f64().is_none_or(|it| it == 0.0),
            Type::List(_) => value.as_array().is_none_or(Vec::is_empty),
            Type::Map(_) => value.as_object().is_none_or(Map::is_empty),
            // `omitempty` has no effect on structs.
            _ => false,
        },
    }
}

//! Decodes JSON into a Go type, and returns it as Go encodes it: with the fields that are never left out.
//!
//! Source: `sigs.k8s.io/json` v1. Null leaves the zero value; a type that does not match is an error, and unknown
//! fields are collected with their paths.

use super::scalars;
use super::table::{Omitted, Table, TypeId, ValueType};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A decoded object.
#[derive(Debug)]
pub(super) struct DecodedStruct {
    /// As Go encodes it.
    pub(super) object: Value,
    /// The paths of unknown fields, in the order of the object.
    pub(super) unknown: Vec<String>,
    /// The paths of values that are stored as they are.
    pub(super) raw: Vec<String>,
}

/// Decodes an object.
///
/// # Errors
///
/// The reason if a value has the wrong type or form.
pub(super) fn decode(table: &Table, of: TypeId, object: &Value) -> Result<DecodedStruct, String> {
    let mut decoder = Decoder {
        table,
        path: String::new(),
        unknown: Vec::new(),
        raw: Vec::new(),
    };
    let object = decoder.decode_struct(of, object)?;
    Ok(DecodedStruct {
        object,
        unknown: decoder.unknown,
        raw: decoder.raw,
    })
}

struct Decoder<'a> {
    table: &'a Table,
    path: String,
    unknown: Vec<String>,
    raw: Vec<String>,
}

impl Decoder<'_> {
    /// Decodes a value that is not null.
    fn decode_value(&mut self, of: &ValueType, value: &Value) -> Result<Value, String> {
        match of {
            ValueType::Any => {
                self.raw.push(self.path.clone());
                Ok(value.clone())
            }
            ValueType::Struct(id) => self.decode_struct(*id, value),
            ValueType::Pointer(of) => self.decode_value(of, value),
            ValueType::List(of) => {
                let Value::Array(items) = value else {
                    return Err(self.mismatch(value, of_list(of)));
                };
                let mut out = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    let length = self.path.len();
                    // Writing to a string does not fail.
                    let _ = write!(self.path, "[{at}]");
                    out.push(self.decode_item(of, item)?);
                    self.path.truncate(length);
                }
                Ok(Value::Array(out))
            }
            ValueType::Map(of) => {
                let Value::Object(fields) = value else {
                    return Err(self.mismatch(value, "a map"));
                };
                let mut out = Map::new();
                for (key, item) in fields {
                    let length = self.enter(key);
                    out.insert(key.clone(), self.decode_item(of, item)?);
                    self.path.truncate(length);
                }
                Ok(Value::Object(out))
            }
            scalar => {
                scalars::decode(scalar, value).ok_or_else(|| self.mismatch(value, name_of(scalar)))
            }
        }
    }

    /// Decodes an item of a list or map, where null is the zero value.
    fn decode_item(&mut self, of: &ValueType, value: &Value) -> Result<Value, String> {
        // Storage has no null for bytes.
        if value.is_null() && *of == ValueType::Bytes {
            return Ok("".into());
        }
        if value.is_null() {
            return Ok(zero(self.table, of));
        }
        self.decode_value(of, value)
    }

    fn decode_struct(&mut self, id: TypeId, value: &Value) -> Result<Value, String> {
        let Value::Object(given) = value else {
            return Err(self.mismatch(value, "an object"));
        };
        let table = self.table;
        let mut out = Map::new();
        for (name, value) in given {
            let length = self.enter(name);
            match table.field(id, name) {
                None => self.unknown.push(self.path.clone()),
                Some(_) if value.is_null() => {}
                Some(field) => {
                    let value = self.decode_value(&field.value_type, value)?;
                    out.insert(name.clone(), value);
                }
            }
            self.path.truncate(length);
        }
        complete(table, id, &mut out);
        Ok(Value::Object(out))
    }

    /// Appends a field to the path; returns the length before.
    fn enter(&mut self, name: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        length
    }

    fn mismatch(&self, value: &Value, expected: &str) -> String {
        let kind = match value {
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
            Value::Null => "null",
        };
        format!("{}: expected {expected}, not {kind}", self.path)
    }
}

/// Leaves out the fields that Go leaves out, and adds the zero values of the others.
fn complete(table: &Table, id: TypeId, out: &mut Map<String, Value>) {
    for field in table.fields(id) {
        let of = &field.value_type;
        let is_left_out = match (out.get(field.name), field.omitted) {
            (Some(_), Omitted::Never) => continue,
            (None, Omitted::Never) => false,
            (None, Omitted::IfEmpty) => field.is_pointer || !is_always_encoded(of),
            (None, Omitted::IfZero) => true,
            (Some(value), Omitted::IfEmpty) => !field.is_pointer && is_empty(of, value),
            (Some(value), Omitted::IfZero) => !field.is_pointer && *value == zero(table, of),
        };
        if is_left_out {
            out.remove(field.name);
        } else if !out.contains_key(field.name) {
            let value = if field.is_pointer {
                Value::Null
            } else {
                zero(table, of)
            };
            out.insert(field.name.to_owned(), value);
        }
    }
}

/// The form in which Go encodes the zero value of a type.
pub(super) fn zero(table: &Table, of: &ValueType) -> Value {
    match of {
        ValueType::Struct(id) => {
            let mut out = Map::new();
            complete(table, *id, &mut out);
            Value::Object(out)
        }
        scalar => scalars::zero(scalar),
    }
}

fn of_list(of: &ValueType) -> &'static str {
    match of {
        ValueType::Text => "a list of strings",
        ValueType::Struct(_) => "a list of objects",
        _ => "a list",
    }
}

/// Whether `omitempty` has no effect on values of this type: Go has a struct for them.
const fn is_always_encoded(of: &ValueType) -> bool {
    matches!(
        of,
        ValueType::Struct(_)
            | ValueType::Quantity
            | ValueType::Time
            | ValueType::MicroTime
            | ValueType::Duration
            | ValueType::IntOrText
            | ValueType::Any
    )
}

fn is_empty(of: &ValueType, value: &Value) -> bool {
    if is_always_encoded(of) {
        return false;
    }
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

const fn name_of(of: &ValueType) -> &'static str {
    match of {
        ValueType::Text => "a string",
        ValueType::Bool => "a boolean",
        ValueType::Int32 => "an integer of 32 bits",
        ValueType::Int64 => "an integer of 64 bits",
        ValueType::Float64 => "a number",
        ValueType::Bytes => "a text in base64",
        ValueType::Quantity => "a quantity",
        ValueType::Time => "a time as in RFC 3339",
        ValueType::MicroTime => "a time as in RFC 3339, with microseconds",
        ValueType::Duration => "a duration such as 5m",
        ValueType::IntOrText => "an integer of 32 bits or a string",
        _ => "another type",
    }
}

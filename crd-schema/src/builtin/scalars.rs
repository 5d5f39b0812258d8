//! Decodes values without fields as Go's decoders of their types do.

use super::table::Type;
use crate::crd::base64::{self, Alphabet};
use crate::crd::formats::time::{parse_duration, parse_rfc3339};
use crate::crd::object_meta::stored_time;
use lockkeeper_api::quantity::Quantity;
use serde_json::Value;

/// The digits of the fraction of a `MicroTime`.
const MICRO_DIGITS: usize = 6;

/// Decodes a value that is not null into its stored form.
///
/// # Errors
///
/// The reason if the value is not of the type.
pub(super) fn decode(kind: &Type, value: &Value) -> Result<Value, String> {
    match (kind, value) {
        (Type::Text | Type::IntOrString, Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Float, Value::Number(_))
        | (Type::Any, _) => Ok(value.clone()),
        (Type::Int32, _) => int32(value).ok_or_else(|| mismatch(value, "int32")),
        (Type::Int64, Value::Number(number)) if number.is_i64() => Ok(value.clone()),
        (Type::Bytes, Value::String(text)) => match base64::decode(text, Alphabet::Standard) {
            Some(bytes) => Ok(base64::encode(&bytes).into()),
            None => Err("illegal base64 data".to_owned()),
        },
        (Type::Quantity, _) => quantity(value),
        (Type::Time, Value::String(text)) => match parse_rfc3339(text) {
            Some(instant) => Ok(stored_time(instant.seconds).map_or(Value::Null, Value::String)),
            None => Err(format!("{text:?} is not a time in RFC 3339 format")),
        },
        (Type::MicroTime, Value::String(text)) => micro_time(text)
            .ok_or_else(|| format!("{text:?} is not a time in RFC 3339 format with microseconds")),
        (Type::Duration, Value::String(text)) => match parse_duration(text) {
            Some(_) => Ok(value.clone()),
            None => Err(format!("{text:?} is not a duration")),
        },
        (Type::IntOrString, _) => int32(value).ok_or_else(|| mismatch(value, "int32 or string")),
        _ => Err(mismatch(value, name(kind))),
    }
}

/// An integer of 32 bits. A number with a fraction is not one, not even `1.0`.
fn int32(value: &Value) -> Option<Value> {
    let integer = i32::try_from(value.as_i64()?).ok()?;
    Some(integer.into())
}

fn quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(mismatch(other, "Quantity")),
    };
    let quantity: Quantity = text.trim().parse().map_err(|it| format!("{it}"))?;
    Ok(quantity.to_string().into())
}

/// A time with exactly six digits of a fraction.
fn micro_time(text: &str) -> Option<Value> {
    // Go accepts a comma, too.
    let (_, fraction) = text.split_once(['.', ','])?;
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let instant = parse_rfc3339(text).filter(|_| digits == MICRO_DIGITS)?;
    let seconds = stored_time(instant.seconds)?;
    let micros = instant.nanos.checked_div(1000)?;
    let stem = seconds.strip_suffix('Z').unwrap_or(&seconds);
    Some(format!("{stem}.{micros:06}Z").into())
}

/// The text of a mismatch of types.
pub(super) fn mismatch(value: &Value, expected: &str) -> String {
    let actual = match value {
        Value::Bool(_) => "bool",
        Value::Number(number) => return format!("cannot decode number {number} into {expected}"),
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    };
    format!("cannot decode {actual} into {expected}")
}

/// The name of a type, for messages.
pub(super) fn name(kind: &Type) -> &'static str {
    match kind {
        Type::Text => "string",
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Float => "float64",
        Type::Bytes => "base64",
        Type::Quantity => "Quantity",
        Type::Time | Type::MicroTime => "Time",
        Type::Duration => "Duration",
        Type::IntOrString => "int32 or string",
        Type::Any => "any type",
        Type::List(_) => "array",
        Type::Map(_) => "map",
        Type::Pointer(target) => name(target),
        Type::Struct(name) => name.rsplit('.').next().unwrap_or(name),
    }
}

/// The zero value of a type that has no fields.
pub(super) fn zero(kind: &Type) -> Value {
    match kind {
        Type::Text | Type::Bytes => Value::String(String::new()),
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::Float | Type::IntOrString => 0.into(),
        Type::Quantity => "0".into(),
        Type::Duration => "0s".into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::{Type, decode};
    use serde_json::{Value, json};

    #[test]
    fn decode_returns_stored_form_or_rejects() {
        for (kind, value, expected) in [
            (
                Type::Int32,
                json!(2_147_483_647),
                Some(json!(2_147_483_647)),
            ),
            (Type::Int32, json!(2_147_483_648_i64), None),
            (Type::Int32, json!(1.0), None),
            (Type::Int64, json!(1.0), None),
            (Type::Int64, json!(u64::MAX), None),
            (Type::Text, json!(1), None),
            (Type::Quantity, json!(0.5), Some(json!("500m"))),
            (Type::Quantity, json!(" 1000m "), Some(json!("1"))),
            (Type::Quantity, json!("1GB"), None),
            (Type::Quantity, json!(true), None),
            (Type::IntOrString, json!("25%"), Some(json!("25%"))),
            (Type::IntOrString, json!(1.5), None),
            (Type::Bytes, json!("aGVs\nbG8="), Some(json!("aGVsbG8="))),
            (Type::Bytes, json!("x"), None),
            (
                Type::Time,
                json!("2026-01-02T03:04:05.6+01:00"),
                Some(json!("2026-01-02T02:04:05Z")),
            ),
            (Type::Time, json!("2026-01-02"), None),
            (
                Type::MicroTime,
                json!("2026-01-02T03:04:05.000006Z"),
                Some(json!("2026-01-02T03:04:05.000006Z")),
            ),
            (
                Type::MicroTime,
                json!("2026-01-02T03:04:05,000001Z"),
                Some(json!("2026-01-02T03:04:05.000001Z")),
            ),
            (Type::MicroTime, json!("2026-01-02T03:04:05Z"), None),
        ] {
            let actual: Option<Value> = decode(&kind, &value).ok();
            assert_eq!(actual, expected, "{kind:?} {value}");
        }
    }
}

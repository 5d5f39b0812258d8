//! Decodes values that JSON has as texts or numbers, and returns them as Go encodes them.

use super::table::ValueType;
use crate::crd::base64::{self, Alphabet};
use crate::crd::formats::time::{parse_duration, parse_rfc3339};
use jiff::Timestamp;
use lockkeeper_api::quantity::Quantity;
use serde_json::Value;

/// The digits of the fraction of a `MicroTime`.
const MICRO_DIGITS: usize = 6;

/// Decodes a value that is not null; `None` if it has the wrong form.
pub(super) fn decode(of: &ValueType, value: &Value) -> Option<Value> {
    match of {
        ValueType::Text => value.as_str().map(Value::from),
        ValueType::Bool => value.as_bool().map(Value::from),
        ValueType::Int32 => int32(value),
        ValueType::Int64 => value.as_i64().map(Value::from),
        ValueType::Float64 => value.is_number().then(|| float(value)),
        ValueType::Bytes => bytes(value),
        ValueType::Quantity => quantity(value),
        ValueType::Time => time(value.as_str()?),
        ValueType::MicroTime => micro_time(value.as_str()?),
        ValueType::Duration => {
            parse_duration(value.as_str()?)?;
            Some(value.clone())
        }
        ValueType::IntOrText => value.as_str().map(Value::from).or_else(|| int32(value)),
        _ => None,
    }
}

/// The form in which Go encodes the zero value.
pub(super) fn zero(of: &ValueType) -> Value {
    match of {
        ValueType::Text => "".into(),
        ValueType::Bool => false.into(),
        ValueType::Int32 | ValueType::Int64 | ValueType::Float64 | ValueType::IntOrText => 0.into(),
        ValueType::Quantity => "0".into(),
        ValueType::Duration => "0s".into(),
        _ => Value::Null,
    }
}

fn int32(value: &Value) -> Option<Value> {
    let number = i32::try_from(value.as_i64()?).ok()?;
    Some(number.into())
}

/// Go encodes a float without a fraction as an integer.
fn float(value: &Value) -> Value {
    match value.as_f64() {
        Some(float) if float.fract() == 0.0 && float.abs() < 9.2e18 => {
            crate::crd::numbers::truncate(float).into()
        }
        _ => value.clone(),
    }
}

/// A base64 text, in the form in which Go encodes the bytes.
fn bytes(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    base64::decode(text, Alphabet::Standard)?;
    let text: String = text
        .chars()
        .filter(|it| !matches!(it, '\r' | '\n'))
        .collect();
    Some(text.into())
}

/// A number or a text. Spaces around a text are ignored.
fn quantity(value: &Value) -> Option<Value> {
    let parsed: Quantity = match value {
        Value::String(text) => text.trim().parse().ok()?,
        Value::Number(number) => number.to_string().parse().ok()?,
        _ => return None,
    };
    Some(parsed.to_string().into())
}

fn time(text: &str) -> Option<Value> {
    let instant = parse_rfc3339(text)?;
    // Years that JSON cannot have are not encoded.
    let time = Timestamp::from_second(instant.seconds).ok()?;
    Some(time.to_string().into())
}

fn micro_time(text: &str) -> Option<Value> {
    let instant = parse_rfc3339(text)?;
    let (_, fraction) = text.rsplit_once('.')?;
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits != MICRO_DIGITS {
        return None;
    }
    let time = Timestamp::from_second(instant.seconds).ok()?.to_string();
    let digits = fraction.get(..MICRO_DIGITS)?;
    Some(format!("{}.{digits}Z", time.trim_end_matches('Z')).into())
}

#[cfg(test)]
mod tests {
    use super::{ValueType, decode};
    use serde_json::{Value, json};

    #[test]
    fn scalars_are_decoded_as_by_go() {
        let wrong = Value::Null;
        for (of, given, expected) in [
            (ValueType::Int32, json!(1.0), &wrong),
            (ValueType::Int32, json!(2_147_483_648_i64), &wrong),
            (
                ValueType::Int64,
                json!(2_147_483_648_i64),
                &json!(2_147_483_648_i64),
            ),
            (ValueType::Int32, json!("1"), &wrong),
            (ValueType::Bool, json!("true"), &wrong),
            (ValueType::Text, json!(1), &wrong),
            (ValueType::Float64, json!(1), &json!(1)),
            (ValueType::Bytes, json!("aGVs\nbG8="), &json!("aGVsbG8=")),
            (ValueType::Bytes, json!("aGVsbG8"), &wrong),
            (ValueType::Quantity, json!("0.5"), &json!("500m")),
            (ValueType::Quantity, json!(1.5), &json!("1500m")),
            (ValueType::Quantity, json!("1 Gi"), &wrong),
            (ValueType::Quantity, json!(true), &wrong),
            (
                ValueType::Time,
                json!("2026-01-02T03:04:05+01:00"),
                &json!("2026-01-02T02:04:05Z"),
            ),
            (ValueType::Time, json!("2026-01-02"), &wrong),
            (ValueType::MicroTime, json!("2026-01-02T03:04:05Z"), &wrong),
            (
                ValueType::MicroTime,
                json!("2026-01-02T03:04:05.000001Z"),
                &json!("2026-01-02T03:04:05.000001Z"),
            ),
            (ValueType::IntOrText, json!("25%"), &json!("25%")),
            (ValueType::IntOrText, json!(1.5), &wrong),
            (ValueType::Duration, json!("5m"), &json!("5m")),
            (ValueType::Duration, json!("5 m"), &wrong),
        ] {
            let actual = decode(&of, &given).unwrap_or_default();
            assert_eq!(actual, *expected, "{of:?} {given}");
        }
    }
}

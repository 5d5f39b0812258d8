//! Numbers as Go converts and compares them.

use super::node::Kind;
use serde_json::Value;
use std::fmt;

/// The largest integer that a float represents exactly, 2^53 - 1.
const JSON_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// The tolerance of `swag.IsFloat64AJSONInteger`.
const EPSILON: f64 = 1e-9;

/// Whether a float counts as an integer.
pub(super) fn is_json_integer(number: f64) -> bool {
    if !(-JSON_INTEGER_MAX..=JSON_INTEGER_MAX).contains(&number) {
        return false;
    }
    if number.fract() == 0.0 {
        return true;
    }
    if number < 0.0 {
        return false;
    }
    let whole = number.trunc();
    (number - whole).abs() / (number + whole) < EPSILON && whole != 0.0
}

/// A float as Go's `int64(number)`.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, as wanted"
)]
pub(super) fn truncate(number: f64) -> i64 {
    number as i64
}

pub(super) fn is_multiple_of_integer(value: i64, factor: f64) -> bool {
    let factor = truncate(factor);
    factor > 0 && value.checked_rem(factor) == Some(0)
}

pub(super) fn is_multiple_of(value: f64, factor: f64) -> bool {
    if factor <= 0.0 {
        return false;
    }
    let multiple = if factor < 1.0 {
        1.0 / factor * value
    } else {
        value / factor
    };
    is_json_integer(multiple)
}

/// The numbers that fit a type and format.
pub(super) enum Range {
    Int32,
    Int64 { has_format: bool },
    Float,
    Unlimited,
}

impl Range {
    pub(super) fn new(types: &[Kind], format: &str) -> Self {
        match (types, format) {
            ([Kind::Integer], "int32") => Self::Int32,
            ([Kind::Integer], format) => Self::Int64 {
                has_format: format == "int64",
            },
            ([Kind::Number], "float") => Self::Float,
            _ => Self::Unlimited,
        }
    }

    pub(super) fn contains(&self, number: &Value) -> bool {
        let integer = number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            let is_integer = float.fract() == 0.0 && float.abs() < TWO_TO_63;
            is_integer.then(|| truncate(float))
        });
        match self {
            Self::Int32 => integer.is_some_and(|it| i32::try_from(it).is_ok()),
            Self::Int64 { .. } => integer.is_some(),
            Self::Float => number.as_f64().is_some_and(|it| it.abs() < FLOAT_OVERFLOW),
            Self::Unlimited => true,
        }
    }
}

/// 2^63.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// The least number that rounds to infinity as a 32-bit float.
const FLOAT_OVERFLOW: f64 = 3.402_823_567_797_336_6e38;

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int32 => "of type integer with format int32",
            Self::Int64 { has_format: true } => "of type integer with format int64",
            Self::Int64 { has_format: false } => "of type integer (default format)",
            Self::Float => "of type number with format float",
            Self::Unlimited => "a number",
        })
    }
}

/// Whether a value equals an enum value, after Go's conversion to the type of the enum value.
pub(super) fn equals_enum_value(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(_), Value::Number(_)) => match (value.as_i64(), expected.as_i64()) {
            (Some(value), Some(expected)) => value == expected,
            (None, Some(expected)) => value.as_f64().is_some_and(|it| truncate(it) == expected),
            _ => value.as_f64() == expected.as_f64(),
        },
        // Go converts an integer to the character with that code.
        (Value::Number(_), Value::String(expected)) => {
            let code = value.as_i64().and_then(|it| u32::try_from(it).ok());
            let character = code.and_then(char::from_u32);
            character.is_some_and(|it| expected.chars().eq([it]))
        }
        _ => value == expected,
    }
}

/// The integers that Go encodes without an exponent, as floats.
const PLAIN_FLOAT_MAX: f64 = 9.2e18;

/// A value as Go encodes it: floats without a fraction become integers.
pub(super) fn encoded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            let is_whole = float.fract() == 0.0 && float.abs() < PLAIN_FLOAT_MAX;
            if is_whole {
                truncate(float).into()
            } else {
                value.clone()
            }
        }
        Value::Array(items) => items.iter().map(encoded).collect(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), encoded(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

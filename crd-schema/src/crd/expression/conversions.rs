//! Conversions between types.

use super::times::{duration_text, time_text};
use super::value::{self, Outcome, Value, error, no_overload};
use crate::crd::formats::time;
use std::rc::Rc;

/// The end of the range of 64-bit integers as floats.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Calls a conversion; `None` if the name is none, or the conversion is that of the Kubernetes library.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    let [value] = args else {
        return None;
    };
    if matches!(value, Value::Foreign(_)) && name != "type" && name != "dyn" {
        return None;
    }
    Some(match name {
        "int" => to_int(value),
        "uint" => to_uint(value),
        "double" => to_double(value),
        "string" => to_text(value),
        "bytes" => match value {
            Value::Text(text) => Ok(Value::Bytes(Rc::new(text.as_bytes().to_vec()))),
            Value::Bytes(_) => Ok(value.clone()),
            _ => no_overload(),
        },
        "bool" => match value {
            Value::Bool(_) => Ok(value.clone()),
            Value::Text(text) => match text.as_ref() {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
                "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
                _ => conversion_error("string", "bool"),
            },
            _ => no_overload(),
        },
        "dyn" => Ok(value.clone()),
        "type" => Ok(Value::Type(value.type_name())),
        "duration" => match value {
            Value::Duration(_) => Ok(value.clone()),
            Value::Text(text) => match time::parse_duration(text) {
                Some(duration) => Ok(Value::Duration(duration)),
                None => conversion_error("string", "google.protobuf.Duration"),
            },
            _ => no_overload(),
        },
        "timestamp" => match value {
            Value::Time(_) => Ok(value.clone()),
            Value::Int(seconds) => value::time(time::Instant {
                seconds: *seconds,
                nanos: 0,
            }),
            Value::Text(text) => match time::parse_rfc3339(text) {
                Some(instant) => value::time(instant),
                None => conversion_error("string", "google.protobuf.Timestamp"),
            },
            _ => no_overload(),
        },
        "size" => match value.size() {
            Some(size) => Ok(Value::Int(size)),
            None => no_overload(),
        },
        _ => return None,
    })
}

fn conversion_error<'a>(from: &str, to: &str) -> Outcome<'a> {
    error(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_int<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Uint(it) => {
            i64::try_from(*it).map_or_else(|_| error("integer overflow"), |it| Ok(Value::Int(it)))
        }
        #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
        Value::Double(it) if *it > -TWO_TO_63 && *it < TWO_TO_63 => Ok(Value::Int(*it as i64)),
        Value::Double(_) => error("integer overflow"),
        Value::Text(text) => text.parse().map_or_else(
            |_| conversion_error("string", "int"),
            |it| Ok(Value::Int(it)),
        ),
        Value::Time(it) => Ok(Value::Int(it.seconds)),
        Value::Duration(it) => Ok(Value::Int(*it)),
        _ => no_overload(),
    }
}

fn to_uint<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Uint(_) => Ok(value.clone()),
        Value::Int(it) => u64::try_from(*it).map_or_else(
            |_| error("unsigned integer overflow"),
            |it| Ok(Value::Uint(it)),
        ),
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked"
        )]
        Value::Double(it) if *it >= 0.0 && *it < TWO_TO_63 * 2.0 => Ok(Value::Uint(*it as u64)),
        Value::Double(_) => error("unsigned integer overflow"),
        Value::Text(text) => {
            let is_number = !text.starts_with('+');
            let parsed = text.parse().ok().filter(|_| is_number);
            parsed.map_or_else(
                || conversion_error("string", "uint"),
                |it| Ok(Value::Uint(it)),
            )
        }
        _ => no_overload(),
    }
}

#[allow(clippy::cast_precision_loss, reason = "as in cel-go")]
fn to_double<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(it) => Ok(Value::Double(*it as f64)),
        Value::Uint(it) => Ok(Value::Double(*it as f64)),
        Value::Text(text) => match parse_float(text) {
            Some(it) => Ok(Value::Double(it)),
            None => conversion_error("string", "double"),
        },
        _ => no_overload(),
    }
}

/// `strconv.ParseFloat`: values beyond the range are errors.
fn parse_float(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    if matches!(digits, "inf" | "infinity" | "nan") {
        return lower.parse().ok();
    }
    let plain = if lower.contains('_') {
        has_valid_underscores(&lower).then(|| lower.replace('_', ""))?
    } else {
        lower
    };
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => hexadecimal_float(digits),
        None if digits.starts_with(['+', '-']) => None,
        None => digits.parse().ok(),
    };
    let number = number.filter(|it: &f64| it.is_finite())?;
    Some(sign * number)
}

/// Whether each underscore stands between digits, or between the prefix of a base and a digit (`underscoreOK` of Go).
fn has_valid_underscores(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_hexadecimal = digits.starts_with("0x");
    let has_prefix = ["0x", "0o", "0b"].iter().any(|it| digits.starts_with(it));
    let rest = digits.get(if has_prefix { 2 } else { 0 }..);
    let mut is_after_digit = has_prefix;
    let mut is_after_underscore = false;
    for sign in rest.unwrap_or_default().chars() {
        let is_digit = sign.is_ascii_digit() || (is_hexadecimal && sign.is_ascii_hexdigit());
        if (sign == '_' && !is_after_digit) || (sign != '_' && is_after_underscore && !is_digit) {
            return false;
        }
        is_after_underscore = sign == '_';
        is_after_digit = is_digit;
    }
    !is_after_underscore
}

/// A hexadecimal float after its prefix: digits, and a power of two in decimal.
#[allow(
    clippy::cast_precision_loss,
    reason = "Go rounds to the nearest float too"
)]
fn hexadecimal_float(text: &str) -> Option<f64> {
    /// The digits that a float with 53 bits can depend on, with a margin.
    const DIGITS_MAX: usize = 30;
    let (digits, exponent) = text.split_once('p')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    if all.is_empty() || !all.chars().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    let used = significant.get(..significant.len().min(DIGITS_MAX))?;
    let dropped = significant.len().checked_sub(used.len())?;
    let mantissa = if used.is_empty() {
        0
    } else {
        u128::from_str_radix(used, 16).ok()?
    };
    let exponent: i64 = exponent.parse().ok()?;
    let places = i64::try_from(fraction.len()).ok()?;
    let shift = i64::try_from(dropped).ok()?.checked_sub(places)?;
    let exponent = exponent.checked_add(shift.checked_mul(4)?)?;
    let exponent = i32::try_from(exponent.clamp(-2200, 2200)).ok()?;
    // Two steps, because one power may be beyond the range.
    let half = exponent / 2;
    let rest = exponent.checked_sub(half)?;
    Some(mantissa as f64 * 2_f64.powi(half) * 2_f64.powi(rest))
}

fn to_text<'a>(value: &Value<'a>) -> Outcome<'a> {
    Ok(match value {
        Value::Text(_) => value.clone(),
        Value::Bool(it) => Value::text(it.to_string()),
        Value::Int(it) => Value::text(it.to_string()),
        Value::Uint(it) => Value::text(it.to_string()),
        Value::Double(it) => Value::text(double_text(*it)),
        Value::Bytes(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Value::text(text),
            Err(_) => return error("invalid UTF-8 in bytes, cannot convert to string"),
        },
        Value::Duration(it) => Value::text(duration_text(*it)),
        Value::Time(it) => Value::text(time_text(*it)),
        _ => return no_overload(),
    })
}

/// A float as Go's `strconv.FormatFloat(x, 'g', -1, 64)` prints it.
pub(super) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
    number.to_string()
}

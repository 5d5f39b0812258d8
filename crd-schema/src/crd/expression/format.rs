//! The method `format` of texts, as version 2 of cel-go's `ext.Strings` (`ext/formatting.go`).

use super::conversions;
use super::format_text::{fixed, quoted, scientific};
use super::operators::pairs_of;
use super::value::{Failure, Outcome, Value, error};
use std::fmt::Write as _;

/// The decimal places without a precision.
const PLACES: usize = 6;

/// The largest precision.
const PLACES_MAX: usize = 1_000_000;

/// The largest width of a number with an exponent. cel-go has no limit; many wide numbers would fill the memory.
const WIDTH_MAX: usize = 500;

/// A part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Piece {
    Text(String),
    /// A place of an argument.
    Clause(Clause),
}

/// How an argument is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Clause {
    Text,
    Decimal,
    /// The decimal places.
    Fixed(usize),
    /// The width: cel-go passes the precision as one.
    Scientific(usize),
    Binary,
    /// Whether the letters are in upper case.
    Hexadecimal(bool),
    Octal,
}

/// Parses a format.
///
/// # Errors
///
/// The reason if a clause is not known.
pub(in super::super) fn parse(format: &str) -> Result<Vec<Piece>, String> {
    let mut out = Vec::new();
    let mut text = String::new();
    let mut signs = format.chars().peekable();
    while let Some(sign) = signs.next() {
        if sign != '%' || signs.next_if_eq(&'%').is_some() {
            text.push(sign);
            continue;
        }
        if !text.is_empty() {
            out.push(Piece::Text(std::mem::take(&mut text)));
        }
        let mut places = PLACES;
        if signs.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = signs.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let parsed = digits.parse().ok().filter(|it| *it <= PLACES_MAX);
            places = parsed.ok_or("error while converting precision to integer")?;
        }
        out.push(Piece::Clause(match signs.next() {
            Some('s') => Clause::Text,
            Some('d') => Clause::Decimal,
            Some('f') => Clause::Fixed(places),
            Some('e') if places <= WIDTH_MAX => Clause::Scientific(places),
            Some('b') => Clause::Binary,
            Some('x') => Clause::Hexadecimal(false),
            Some('X') => Clause::Hexadecimal(true),
            Some('o') => Clause::Octal,
            Some(other) => return Err(format!("unrecognized formatting clause {other:?}")),
            None => return Err("unexpected end of string".to_owned()),
        }));
    }
    if !text.is_empty() {
        out.push(Piece::Text(text));
    }
    Ok(out)
}

/// Calls `format`; `None` if the name is another one, or the arguments have other types.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    let ("format", [Value::Text(format), list]) = (name, args) else {
        return None;
    };
    if !list.is_list() {
        return None;
    }
    Some(formatted(format, list))
}

fn formatted<'a>(format: &str, list: &Value<'a>) -> Outcome<'a> {
    let pieces = match parse(format) {
        Ok(pieces) => pieces,
        Err(reason) => return error(reason),
    };
    let mut args = list.items().unwrap_or_default().into_iter();
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(&text),
            Piece::Clause(clause) => match args.next() {
                Some(arg) => out.push_str(&written(clause, &arg?)?),
                None => return error("index out of range"),
            },
        }
    }
    Ok(Value::text(out))
}

/// An argument as a clause writes it.
fn written(clause: Clause, arg: &Value<'_>) -> Result<String, Failure> {
    let unsuited = |kinds: &str| {
        let given = arg.type_name();
        error(format!(
            "error during formatting: {kinds}, was given {given}"
        ))
    };
    Ok(match (clause, arg) {
        (Clause::Text, arg) => return text(arg),
        (Clause::Decimal, Value::Int(number)) => number.to_string(),
        (Clause::Decimal, Value::Uint(number)) => number.to_string(),
        (Clause::Fixed(places), arg) if float(arg).is_some() => {
            fixed(float(arg).unwrap_or_default(), places)
        }
        (Clause::Scientific(width), arg) if float(arg).is_some() => {
            scientific(float(arg).unwrap_or_default(), width)
        }
        (Clause::Binary, Value::Bool(flag)) => u8::from(*flag).to_string(),
        (Clause::Binary, Value::Int(number)) => {
            format!("{}{:b}", minus(*number), number.unsigned_abs())
        }
        (Clause::Binary, Value::Uint(number)) => format!("{number:b}"),
        (Clause::Octal, Value::Int(number)) => {
            format!("{}{:o}", minus(*number), number.unsigned_abs())
        }
        (Clause::Octal, Value::Uint(number)) => format!("{number:o}"),
        (Clause::Hexadecimal(is_upper), arg) => {
            let digits = match arg {
                Value::Int(number) => format!("{}{:x}", minus(*number), number.unsigned_abs()),
                Value::Uint(number) => format!("{number:x}"),
                Value::Text(text) => hexadecimal(text.as_bytes()),
                Value::Bytes(bytes) => hexadecimal(bytes),
                _ => {
                    return unsuited(
                        "only integers, byte buffers, and strings can be formatted as hex",
                    );
                }
            };
            if is_upper {
                digits.to_uppercase()
            } else {
                digits
            }
        }
        (Clause::Decimal, _) => return unsuited("decimal clause can only be used on integers"),
        (Clause::Fixed(_), _) => return unsuited("fixed-point clause can only be used on doubles"),
        (Clause::Scientific(_), _) => {
            return unsuited("scientific clause can only be used on doubles");
        }
        (Clause::Binary, _) => {
            return unsuited("only integers and bools can be formatted as binary");
        }
        (Clause::Octal, _) => return unsuited("octal clause can only be used on integers"),
    })
}

/// The value of a float, or of a text with the name of one (`NaN`, `Infinity`).
fn float(arg: &Value<'_>) -> Option<f64> {
    match arg {
        Value::Double(number) => Some(*number),
        Value::Text(text) => match text.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn minus(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// A value as `%s` writes it.
fn text(arg: &Value<'_>) -> Result<String, Failure> {
    match arg {
        Value::Null => Ok("null".to_owned()),
        Value::Type(name) => Ok((*name).to_owned()),
        Value::Map(_) | Value::JsonMap(_) => map_text(arg),
        arg if arg.is_list() => list_text(arg),
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Text(_)
        | Value::Bytes(_)
        | Value::Time(_)
        | Value::Duration(_) => match conversions::call("string", std::slice::from_ref(arg)) {
            Some(Ok(Value::Text(text))) => Ok(text.into_owned()),
            Some(Err(failure)) => Err(failure),
            _ => error("could not convert argument to string"),
        },
        other => error(format!(
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
             lists, types, durations, and timestamps, was given {}",
            other.type_name()
        )),
    }
}

fn list_text(list: &Value<'_>) -> Result<String, Failure> {
    let mut parts = Vec::new();
    for item in list.items().unwrap_or_default() {
        parts.push(literal(&item?)?);
    }
    Ok(format!("[{}]", parts.join(", ")))
}

fn map_text(map: &Value<'_>) -> Result<String, Failure> {
    let mut parts = Vec::new();
    for (key, value) in pairs_of(map)? {
        let key = key?;
        if !matches!(
            key,
            Value::Text(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)
        ) {
            let kind = key.type_name();
            return error(format!("no formatting function for map key of type {kind}"));
        }
        parts.push((literal(&key)?, literal(&value?)?));
    }
    parts.sort_by(|left, right| left.0.cmp(&right.0));
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    Ok(format!("{{{}}}", parts.join(", ")))
}

/// A value inside a list or a map, in the form of a literal.
fn literal(value: &Value<'_>) -> Result<String, Failure> {
    let plain = match value {
        Value::Double(number) if number.is_finite() => return Ok(format!("{number:.PLACES$}")),
        value => text(value)?,
    };
    Ok(match value {
        Value::Text(_) | Value::Double(_) => quoted(&plain),
        Value::Bytes(_) => format!("b{}", quoted(&plain)),
        Value::Time(_) => format!("timestamp({})", quoted(&plain)),
        Value::Duration(_) => format!("duration({})", quoted(&plain)),
        _ => plain,
    })
}

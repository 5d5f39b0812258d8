//! The texts of `format`: numbers in the locale `en_US`, and quoted texts.

use crate::crd::unicode::is_printable;
use std::fmt::Write as _;

/// The most decimal places of a float that are not zero.
const PLACES_MAX: usize = 1100;

/// The digits in exponents.
const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// A float with decimal places and groups of thousands, as `golang.org/x/text/message` prints it.
pub(super) fn fixed(number: f64, places: usize) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    let (sign, digits) = signed(
        number,
        &format!("{:.*}", places.min(PLACES_MAX), number.abs()),
    );
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut out = sign;
    for (position, digit) in whole.chars().enumerate() {
        let rest = whole.len().saturating_sub(position);
        if position > 0 && rest.is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    // The library keeps the least number of places in a byte.
    let kept = fraction.trim_end_matches('0').len().max(places % 256);
    if kept > 0 {
        out.push('.');
        out.extend(fraction.chars().take(kept));
    }
    out
}

/// A float with six decimal places and an exponent, as `golang.org/x/text/message` prints it in a width.
pub(super) fn scientific(number: f64, width: usize) -> String {
    let text = special(number).unwrap_or_else(|| with_exponent(number));
    let missing = width.saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(missing))
}

fn with_exponent(number: f64) -> String {
    let (sign, text) = signed(number, &format!("{:.6e}", number.abs()));
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (exponent_sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ("⁻", exponent),
        None => ("", exponent),
    };
    let mut out = format!("{sign}{digits}×10{exponent_sign}");
    for digit in format!("{exponent:0>2}").chars() {
        let digit = digit.to_digit(10).and_then(|it| usize::try_from(it).ok());
        out.extend(digit.and_then(|it| SUPERSCRIPTS.get(it)));
    }
    out
}

fn special(number: f64) -> Option<String> {
    let text = if number.is_nan() {
        "NaN"
    } else if number == f64::INFINITY {
        "∞"
    } else if number == f64::NEG_INFINITY {
        "-∞"
    } else {
        return None;
    };
    Some(text.to_owned())
}

/// The sign, which zero has not, and the digits.
fn signed(number: f64, digits: &str) -> (String, String) {
    let sign = if number < 0.0 { "-" } else { "" };
    (sign.to_owned(), digits.to_owned())
}

/// A text in quotes, as `strconv.Quote` of Go writes it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for sign in text.chars() {
        let escape = match sign {
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{b}' => "\\v",
            '\\' => "\\\\",
            '"' => "\\\"",
            sign if is_printable(sign.encode_utf8(&mut [0; 4])) => {
                out.push(sign);
                continue;
            }
            sign => {
                let code = u32::from(sign);
                // Writing to a string does not fail.
                let _ = match code {
                    0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
                    0x80..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
                continue;
            }
        };
        out.push_str(escape);
    }
    out.push('"');
    out
}

//! Escape sequences of one sign, and how a sign is written for the crate `regex`.

use super::cursor::Cursor;
use std::fmt::Write as _;

/// The largest code point.
const CODE_MAX: u32 = 0x10_ffff;

/// Reads the rest of an escape sequence after the backslash (`parseEscape` of Go): its code point.
pub(super) fn code(at: &mut Cursor<'_>) -> Option<u32> {
    let sign = at.next()?;
    Some(match sign {
        // A single digit would be a back reference.
        '1'..='7' if !at.peek().is_some_and(|it| it.is_digit(8)) => return None,
        '0'..='7' => {
            let mut code = sign.to_digit(8)?;
            for _ in 0..2 {
                let Some(digit) = at.peek().and_then(|it| it.to_digit(8)) else {
                    break;
                };
                at.next();
                code = code.checked_mul(8)?.checked_add(digit)?;
            }
            code
        }
        'x' => hexadecimal(at)?,
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => u32::from(other),
        _ => return None,
    })
}

/// Reads two hexadecimal digits, or any number of them in braces.
fn hexadecimal(at: &mut Cursor<'_>) -> Option<u32> {
    if !at.take("{") {
        let high = at.next()?.to_digit(16)?;
        let low = at.next()?.to_digit(16)?;
        return high.checked_mul(16)?.checked_add(low);
    }
    let digits = at.take_until("}")?;
    if digits.is_empty() {
        return None;
    }
    digits.chars().try_fold(0_u32, |code, sign| {
        let code = code.checked_mul(16)?.checked_add(sign.to_digit(16)?)?;
        (code <= CODE_MAX).then_some(code)
    })
}

/// Appends a literal character, inside and outside a class.
pub(super) fn push_sign(sign: char, out: &mut String) {
    if sign.is_ascii_alphanumeric() || !sign.is_ascii() {
        out.push(sign);
    } else {
        // Writing to a string does not fail.
        let _ = write!(out, "\\x{:02x}", u32::from(sign));
    }
}

//! Rewrites literal bytes so that the parser of the crate `cel` 0.13 reads them.
//!
//! It reads only `b'…'` and `b"…"`, with hexadecimal and octal escapes.

use super::cel_signs::{end_of_line, end_of_text};
use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with all literal bytes in the form `b'…'`. Literals with invalid escapes stay as they are.
pub(super) fn with_plain_bytes(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes.get(at..).is_some_and(|it| it.starts_with(b"//")) {
            at = end_of_line(bytes, at);
            continue;
        }
        let Some(end) = end_of_text(bytes, at) else {
            at = at.saturating_add(1);
            continue;
        };
        let literal = text.get(at..end).unwrap_or_default();
        if let Some(plain) = plain_literal(literal) {
            out.push_str(text.get(copied..at).unwrap_or_default());
            out.push_str(&plain);
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// The literal in the form `b'…'`; `None` if it is no literal of bytes, or if it is invalid.
fn plain_literal(literal: &str) -> Option<String> {
    let quote_at = literal.find(['\'', '"'])?;
    let (prefix, quoted) = literal.split_at(quote_at);
    if !prefix.contains(['b', 'B']) {
        return None;
    }
    let is_raw = prefix.contains(['r', 'R']);
    let quote = quoted.get(..1)?;
    let width = if quoted.len() >= 6 && quoted.starts_with(&quote.repeat(3)) {
        3
    } else {
        1
    };
    let body = quoted.get(width..quoted.len().checked_sub(width)?)?;
    let mut out = "b'".to_owned();
    let mut signs = body.chars();
    while let Some(sign) = signs.next() {
        if sign == '\\' && !is_raw {
            push_escape(&mut signs, &mut out)?;
        } else {
            push_text(sign, &mut out);
        }
    }
    out.push('\'');
    Some(out)
}

/// Appends the bytes of an escape (`unescape` of the package `parser` of cel-go).
fn push_escape(signs: &mut std::str::Chars<'_>, out: &mut String) -> Option<()> {
    let sign = signs.next()?;
    let byte = match sign {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '\'' | '"' | '`' | '?' => u8::try_from(sign).ok()?,
        'x' | 'X' => number(signs, 2, 16)?,
        '0'..='3' => {
            let high = u8::try_from(sign.to_digit(8)?).ok()?;
            number(signs, 2, 8)?.checked_add(high.checked_mul(64)?)?
        }
        _ => return None,
    };
    push_byte(byte, out);
    Some(())
}

fn number(signs: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Option<u8> {
    let digits: String = signs.take(count).collect();
    let is_whole = digits.len() == count && digits.chars().all(|it| it.is_digit(radix));
    is_whole.then(|| u8::from_str_radix(&digits, radix).ok())?
}

fn push_text(sign: char, out: &mut String) {
    for byte in sign.encode_utf8(&mut [0; 4]).bytes() {
        push_byte(byte, out);
    }
}

/// Appends a byte, with an escape unless it is a letter, a digit or a space.
fn push_byte(byte: u8, out: &mut String) {
    if byte.is_ascii_alphanumeric() || byte == b' ' {
        out.push(char::from(byte));
    } else {
        // Writing to a string does not fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::with_plain_bytes;

    #[test]
    fn literal_bytes_get_hexadecimal_escapes() {
        for (text, expected) in [
            ("b'a b' == self", "b'a b' == self"),
            (r"b'\n\''", r"b'\x0a\x27'"),
            (r#"B"\"\x41\101" + b''"#, r"b'\x22AA' + b''"),
            (r"rb'\n'", r"b'\x5cn'"),
            ("b'''a'b'''", r"b'a\x27b'"),
            ("b'ä'", r"b'\xc3\xa4'"),
            (r"'\n' + r'b'", r"'\n' + r'b'"),
            (r"b'\u0041'", r"b'\u0041'"),
            ("a // b'\\n'", "a // b'\\n'"),
            ("sub'", "sub'"),
        ] {
            assert_eq!(with_plain_bytes(text), expected, "{text}");
        }
    }
}

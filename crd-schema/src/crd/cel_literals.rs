//! Rewrites literals so that the parser of the crate `cel` 0.13 reads them as cel-go.
//!
//! The parser refuses a minus before a hexadecimal integer. It reads bytes only as `b'…'` and `b"…"`, with hexadecimal and octal escapes. In a text it keeps the
//! backslash of `\"` inside `'…'`, and it refuses quotes inside `'''…'''`.

use super::cel_signs::{end_of_line, end_of_text};
use std::fmt::Write as _;

/// An expression with rewritten literals.
pub(super) struct PlainText {
    /// The text for the parser.
    pub(super) text: String,
    /// The ends of the rewritten literals, in the text and in the original, with the length of the original, in bytes.
    ends: Vec<(usize, usize, usize)>,
}

impl PlainText {
    /// The text with all literals that the parser misreads in a form that it reads. Invalid literals stay as they are.
    pub(super) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut out = String::with_capacity(text.len());
        let mut ends = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        while at < bytes.len() {
            if bytes.get(at..).is_some_and(|it| it.starts_with(b"//")) {
                at = end_of_line(bytes, at);
                continue;
            }
            let is_number = end_of_hexadecimal(bytes, at);
            let Some(end) = is_number.or_else(|| end_of_text(bytes, at)) else {
                at = at.saturating_add(1);
                continue;
            };
            let literal = text.get(at..end).unwrap_or_default();
            let plain = match is_number {
                Some(_) => decimal(literal),
                None => plain_literal(literal),
            };
            if let Some(plain) = plain {
                out.push_str(text.get(copied..at).unwrap_or_default());
                out.push_str(&plain);
                ends.push((out.len(), end, literal.len()));
                copied = end;
            }
            at = end;
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        Self { text: out, ends }
    }

    /// The offset in the original of an offset in the text, in bytes. An offset inside a rewritten literal becomes the
    /// start of the literal.
    pub(super) fn original_offset(&self, offset: usize) -> usize {
        let after = self.ends.partition_point(|(end, _, _)| *end <= offset);
        let shifted = match after.checked_sub(1).and_then(|it| self.ends.get(it)) {
            Some((end, original, _)) => offset.saturating_sub(*end).saturating_add(*original),
            None => offset,
        };
        match self.ends.get(after) {
            Some((_, original, length)) => shifted.min(original.saturating_sub(*length)),
            None => shifted,
        }
    }
}

/// The end of a hexadecimal integer with a sign bit. `None` if there is none at the place.
fn end_of_hexadecimal(bytes: &[u8], start: usize) -> Option<usize> {
    let before = start.checked_sub(1).and_then(|it| bytes.get(it));
    let is_inside_name = before.is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    let digits = bytes.get(start..)?.strip_prefix(b"0x")?;
    let count = digits
        .iter()
        .take_while(|it| it.is_ascii_hexdigit())
        .count();
    let is_unsigned = matches!(digits.get(count), Some(b'u' | b'U'));
    let length = count.checked_add(2)?;
    (count > 0 && !is_inside_name && !is_unsigned).then(|| start.saturating_add(length))
}

/// The decimal form of a hexadecimal integer: the parser refuses a minus before it.
fn decimal(literal: &str) -> Option<String> {
    let number = u64::from_str_radix(literal.strip_prefix("0x")?, 16).ok()?;
    Some(number.to_string())
}

/// A literal in a form that the parser reads; `None` if it reads the literal itself, or if the literal is invalid.
fn plain_literal(literal: &str) -> Option<String> {
    let quote_at = literal.find(['\'', '"'])?;
    let (prefix, quoted) = literal.split_at(quote_at);
    let is_bytes = prefix.contains(['b', 'B']);
    let is_raw = prefix.contains(['r', 'R']);
    let quote = quoted.get(..1)?;
    let width = if quoted.len() >= 6 && quoted.starts_with(&quote.repeat(3)) {
        3
    } else {
        1
    };
    let body = quoted.get(width..quoted.len().checked_sub(width)?)?;
    if width == 1 && body.contains(['\n', '\r']) {
        return None;
    }
    if !is_bytes && is_read_as_is(body, width) {
        return None;
    }
    let mut out = if is_bytes { "b'" } else { "'" }.to_owned();
    let mut signs = Signs(body);
    while let Some(sign) = signs.next() {
        let value = if sign == '\\' && !is_raw {
            escape(&mut signs, is_bytes)?
        } else {
            sign
        };
        match u8::try_from(value) {
            // In bytes, an escape is one byte.
            Ok(byte) if is_bytes && (sign == '\\' && !is_raw) => push_byte(byte, &mut out),
            _ if is_bytes => push_text(value, &mut out),
            _ => push_sign(value, &mut out),
        }
    }
    out.push('\'');
    Some(out)
}

/// Whether the parser reads a text as cel-go.
fn is_read_as_is(body: &str, width: usize) -> bool {
    let has_misread = ["\\'", "\\\"", "\\X", "\r"]
        .iter()
        .any(|it| body.contains(it));
    !has_misread && !body.ends_with('\\') && (width == 1 || !body.contains(['\'', '"']))
}

/// The signs of a literal, with line ends as `\n`.
struct Signs<'a>(&'a str);

impl Signs<'_> {
    fn next(&mut self) -> Option<char> {
        let mut signs = self.0.chars();
        let sign = signs.next()?;
        self.0 = signs.as_str();
        if sign == '\r' {
            self.0 = self.0.strip_prefix('\n').unwrap_or(self.0);
            return Some('\n');
        }
        Some(sign)
    }

    /// Reads digits.
    fn number(&mut self, count: usize, radix: u32) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        if !digits.chars().all(|it| it.is_digit(radix)) {
            return None;
        }
        self.0 = rest;
        u32::from_str_radix(digits, radix).ok()
    }
}

/// The sign or the byte of an escape (`unescapeChar` of the package `parser` of cel-go).
fn escape(signs: &mut Signs<'_>, is_bytes: bool) -> Option<char> {
    let sign = signs.next()?;
    let code = match sign {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        '\\' | '\'' | '"' | '`' | '?' => u32::from(sign),
        'x' | 'X' => signs.number(2, 16)?,
        'u' if !is_bytes => signs.number(4, 16)?,
        'U' if !is_bytes => signs.number(8, 16)?,
        '0'..='3' => {
            let high = sign.to_digit(8)?.checked_mul(64)?;
            signs.number(2, 8)?.checked_add(high)?
        }
        _ => return None,
    };
    char::from_u32(code)
}

/// Appends a sign of a text.
fn push_sign(sign: char, out: &mut String) {
    if sign.is_ascii() {
        push_byte(sign as u8, out);
    } else {
        out.push(sign);
    }
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
    use super::PlainText;

    #[test]
    fn literals_that_the_parser_misreads_get_escapes() {
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
            ("-0x10 + a0x1 + 0xFFu", "-16 + a0x1 + 0xFFu"),
            ("'0x10' + 0xg", "'0x10' + 0xg"),
            (r#"'a\"b' == "it\'s""#, r"'a\x22b' == 'it\x27s'"),
            ("'a\"b'", "'a\"b'"),
            (r#"r"""^[^"]*$""""#, r"'\x5e\x5b\x5e\x22\x5d\x2a\x24'"),
            ("'''a''b'''", r"'a\x27\x27b'"),
            ("'''a\r\n'b'''", r"'a\x0a\x27b'"),
            (r"r'a\' + r'\d'", r"'a\x5c' + r'\d'"),
            (r"'\X41\'\u00e4\U0001f600\344'", "'A\\x27ä😀ä'"),
            (r"'\'\ud800'", r"'\'\ud800'"),
            ("'a\n\\''", "'a\n\\''"),
        ] {
            assert_eq!(PlainText::new(text).text, expected, "{text}");
        }
    }

    #[test]
    fn offset_after_rewritten_literal_is_that_of_original() {
        let plain = PlainText::new(r"a + '\'' + '\'' + b");
        assert_eq!(plain.text, r"a + '\x27' + '\x27' + b");
        for (sign, expected) in [('a', 0), ('2', 4), ('b', 18)] {
            let offset = plain.text.find(sign).unwrap();
            assert_eq!(plain.original_offset(offset), expected, "{sign}");
        }
    }
}

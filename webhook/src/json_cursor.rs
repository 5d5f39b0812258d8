//! Follows the structure of a JSON text without decoding it.

use crate::word_search::{Matches, WORD_BYTES};
use std::ops::Range;

/// A place in a JSON text. All functions return `None` if the text is not as expected; they cost O(n) together.
pub(crate) struct JsonCursor<'a> {
    text: &'a [u8],
    rest: &'a [u8],
}

impl<'a> JsonCursor<'a> {
    /// The start of a text.
    pub(crate) const fn new(text: &'a [u8]) -> Self {
        Self { text, rest: text }
    }

    fn position(&self) -> usize {
        self.text.len().saturating_sub(self.rest.len())
    }

    /// The next byte after whitespace.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    /// Reads the members of an object; `value` reads the value of a key.
    pub(crate) fn members(
        &mut self,
        mut value: impl FnMut(&mut Self, &[u8]) -> Option<()>,
    ) -> Option<()> {
        self.items(b'{', b'}', |cursor| {
            let key = cursor.key()?;
            cursor.expect(b':')?;
            value(cursor, key)
        })
    }

    /// Reads the elements of an array; `element` reads one.
    pub(crate) fn elements(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.items(b'[', b']', element)
    }

    fn items(
        &mut self,
        open: u8,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.expect(open)?;
        if self.peek()? == close {
            return self.expect(close);
        }
        loop {
            item(self)?;
            match self.peek()? {
                b',' => self.expect(b',')?,
                _ => return self.expect(close),
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.peek().filter(|it| *it == byte)?;
        self.rest = self.rest.get(1..)?;
        Some(())
    }

    /// A key without escapes: an API server writes none.
    fn key(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let start = self.position();
        self.rest = after_string(self.rest)?;
        let key = self.text.get(start..self.position().checked_sub(1)?)?;
        (!key.contains(&b'\\')).then_some(key)
    }

    /// Skips a value, and returns its place.
    pub(crate) fn value_range(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let start = self.position();
        self.skip_value()?;
        Some(start..self.position())
    }

    /// Skips a value.
    pub(crate) fn skip_value(&mut self) -> Option<()> {
        self.rest = match self.peek()? {
            b'{' | b'[' => after_brackets(self.rest)?,
            b'"' => after_string(self.rest.get(1..)?)?,
            _ => {
                let mut bytes = self.rest.iter();
                let length = bytes.position(|it| matches!(it, b',' | b'}' | b']'))?;
                self.rest.get(length..)?
            }
        };
        Some(())
    }
}

/// The text after a value that starts with a bracket.
fn after_brackets(mut text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    loop {
        let (byte, rest) = text.split_first()?;
        text = match byte {
            b'"' => after_string(rest)?,
            b'{' | b'[' => {
                depth = depth.saturating_add(1);
                rest
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(rest);
                }
                rest
            }
            _ => rest,
        };
    }
}

/// The text after the end quote of a string, given the text after its first quote.
fn after_string(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let special = if let Some(word) = text.first_chunk() {
            let found = Matches::equal(*word, b'"').or(Matches::equal(*word, b'\\'));
            let Some(at) = found.first() else {
                text = text.get(WORD_BYTES..)?;
                continue;
            };
            at
        } else {
            text.iter().position(|it| matches!(it, b'"' | b'\\'))?
        };
        match text.get(special..)? {
            [b'"', rest @ ..] => return Some(rest),
            [_, _, rest @ ..] => text = rest,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::{JsonCursor, after_string};

    #[test]
    fn string_of_any_length_ends_at_its_quote() {
        for length in 0..40 {
            for text in ["a", "\\\"", "\\\\", "\u{e9}\u{ff}"] {
                let string = format!("{}{text}", "b".repeat(length));
                let after = after_string(format!("{string}\", \"").as_bytes()).map(<[u8]>::to_vec);
                assert_eq!(after.as_deref(), Some(&b", \""[..]), "{string}");
                assert!(after_string(string.as_bytes()).is_none(), "{string}");
            }
        }
    }

    #[test]
    fn cursor_reads_members_and_elements() {
        let text = br#" {"a": [1, {"b": "]"}, []], "c": [], "d": {}, "a": null} "#;
        let mut found = Vec::new();
        let done = JsonCursor::new(text).members(|cursor, key| {
            if key != b"a" || cursor.peek()? != b'[' {
                return cursor.skip_value();
            }
            cursor.elements(|cursor| {
                found.push(std::str::from_utf8(&text[cursor.value_range()?]).ok()?);
                Some(())
            })
        });
        assert_eq!((done, found), (Some(()), vec!["1", r#"{"b": "]"}"#, "[]"]));
        for text in [
            "",
            "[",
            "{\"a\" 1}",
            "{\"a\": 1",
            "{\"a\": [1}",
            "{\"\\u0061\": 1}",
        ] {
            let mut cursor = JsonCursor::new(text.as_bytes());
            assert!(
                cursor.members(|cursor, _| cursor.skip_value()).is_none(),
                "{text}"
            );
        }
    }
}

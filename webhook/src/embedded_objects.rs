//! Finds the objects in the body of an AdmissionReview, without decoding them.
//!
//! The objects are nearly the whole body. A generic decoder parses each of them twice: once to find its end, and once
//! into its type. This scan only follows strings and brackets, which costs a fifth of a parse; the second parse rejects
//! an object that is not valid JSON.

use crate::word_search::{Matches, WORD_BYTES};
use std::borrow::Cow;
use std::ops::Range;

/// A body, split into the objects of its request and the rest.
pub(crate) struct ReviewParts<'a> {
    /// The body with `null` in place of the found objects.
    pub(crate) envelope: Cow<'a, [u8]>,
    /// The text of `request.object`, if the scan found it.
    pub(crate) object: Option<&'a str>,
    /// The text of `request.oldObject`, if the scan found it.
    pub(crate) old_object: Option<&'a str>,
}

impl<'a> ReviewParts<'a> {
    /// Splits a body. If the scan fails, as for a body that is not JSON or has a duplicate key, the envelope is the whole
    /// body, so that its decoder reports the error. Costs O(n).
    pub(crate) fn split(body: &'a [u8]) -> Self {
        Self::scan(body).unwrap_or(Self {
            envelope: Cow::Borrowed(body),
            object: None,
            old_object: None,
        })
    }

    fn scan(body: &'a [u8]) -> Option<Self> {
        let mut scanner = Scanner {
            body,
            rest: body,
            object: None,
            old_object: None,
        };
        scanner.members(Scanner::review_value)?;
        let text = |range: &Range<usize>| std::str::from_utf8(body.get(range.clone())?).ok();
        let object = scanner.object.as_ref();
        let old_object = scanner.old_object.as_ref();
        let mut found: Vec<&Range<usize>> = [object, old_object].into_iter().flatten().collect();
        found.sort_by_key(|range| range.start);
        let mut envelope = Vec::with_capacity(ENVELOPE_CAPACITY_BYTES);
        let mut copied = 0;
        for range in &found {
            envelope.extend_from_slice(body.get(copied..range.start)?);
            envelope.extend_from_slice(b"null");
            copied = range.end;
        }
        envelope.extend_from_slice(body.get(copied..)?);
        Some(Self {
            envelope: Cow::Owned(envelope),
            // A text that is not UTF-8 ends the scan, like any other error.
            object: object.map(text).map_or(Some(None), |it| it.map(Some))?,
            old_object: old_object.map(text).map_or(Some(None), |it| it.map(Some))?,
        })
    }
}

/// Capacity for the fields of a request besides its objects, in bytes.
const ENVELOPE_CAPACITY_BYTES: usize = 1024;

/// The rest of a body, and the ranges of the objects before it.
struct Scanner<'a> {
    body: &'a [u8],
    rest: &'a [u8],
    object: Option<Range<usize>>,
    old_object: Option<Range<usize>>,
}

impl<'a> Scanner<'a> {
    fn position(&self) -> usize {
        self.body.len().saturating_sub(self.rest.len())
    }

    /// The next byte after whitespace.
    fn peek(&mut self) -> Option<u8> {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    /// Reads the members of a JSON object; `value` reads the value of a key. `None` if the text is not an object.
    fn members(&mut self, value: fn(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            return self.expect(b'}');
        }
        loop {
            let key = self.key()?;
            self.expect(b':')?;
            value(self, key)?;
            match self.peek()? {
                b',' => self.expect(b',')?,
                _ => return self.expect(b'}'),
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
        let key = self.body.get(start..self.position().checked_sub(1)?)?;
        (!key.contains(&b'\\')).then_some(key)
    }

    /// Reads the value of a key of the review.
    fn review_value(&mut self, key: &[u8]) -> Option<()> {
        if key == b"request" && self.peek()? == b'{' {
            return self.members(Self::request_value);
        }
        self.skip_value()
    }

    /// Reads the value of a key of the request.
    fn request_value(&mut self, key: &[u8]) -> Option<()> {
        let is_object = self.peek()? == b'{';
        let start = self.position();
        self.skip_value()?;
        let range = start..self.position();
        let found = match key {
            b"object" if is_object => &mut self.object,
            b"oldObject" if is_object => &mut self.old_object,
            _ => return Some(()),
        };
        // With a duplicate key it is undefined which value the decoder would use.
        found.replace(range).is_none().then_some(())
    }

    fn skip_value(&mut self) -> Option<()> {
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

    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(body: &str, envelope: &str, object: Option<&str>, old_object: Option<&str>) {
        let parts = ReviewParts::split(body.as_bytes());
        assert_eq!(std::str::from_utf8(&parts.envelope).unwrap(), envelope);
        assert_eq!((parts.object, parts.old_object), (object, old_object));
    }

    #[test]
    fn objects_of_request_are_split_off() {
        check(
            r#"{"request": {"uid": "}", "object": {"a": "}\"{", "b": [{}]}, "oldObject":null}}"#,
            r#"{"request": {"uid": "}", "object": null, "oldObject":null}}"#,
            Some(r#"{"a": "}\"{", "b": [{}]}"#),
            None,
        );
        check(
            r#"{"request":{"oldObject":{"o":1},"dryRun":false,"object":{}},"kind":"x"}"#,
            r#"{"request":{"oldObject":null,"dryRun":false,"object":null},"kind":"x"}"#,
            Some("{}"),
            Some(r#"{"o":1}"#),
        );
        // Only the request's own keys count.
        let other = r#"{"object": {"a": 1}, "request": {"options": {"object": {}}, "object": 5}}"#;
        check(other, other, None, None);
    }

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
    fn body_that_scan_rejects_stays_whole() {
        for body in [
            "",
            "[]",
            "{",
            r#"{"request": {"object": {"a": 1}"#,
            r#"{"request": {"object": {"a": "1}}}"#,
            r#"{"request": {"object": {}, "object": {}}}"#,
            r#"{"request": {"obj\u0065ct": {}, "object": {"a": 1}}}"#,
            r#"{"request": {"object": {}} "#,
        ] {
            check(body, body, None, None);
        }
        let not_utf8 = b"{\"request\": {\"object\": {\"a\": \"\xff\"}}}";
        assert_eq!(&*ReviewParts::split(not_utf8).envelope, not_utf8);
    }

    #[test]
    fn split_objects_decode_as_in_whole_body() {
        let object = json!({"a": ["]", "\\", "\"", {"b\\": "\u{e9}"}], "n": [1.5e3, true, null]});
        let review = json!({"request": {"uid": "u", "object": object, "oldObject": {"z": {}}}});
        for body in [
            review.to_string(),
            serde_json::to_string_pretty(&review).unwrap(),
        ] {
            let parts = ReviewParts::split(body.as_bytes());
            let decoded: Value = serde_json::from_str(parts.object.unwrap()).unwrap();
            assert_eq!(decoded, object);
            assert_eq!(
                serde_json::from_str::<Value>(parts.old_object.unwrap()).unwrap(),
                json!({"z": {}})
            );
            let envelope: Value = serde_json::from_slice(&parts.envelope).unwrap();
            assert_eq!(
                envelope,
                json!({"request": {"uid": "u", "object": null, "oldObject": null}})
            );
        }
    }
}

//! Texts of a response as JSON.
//!
//! A rejection has each message twice, in the message of its status and in the causes. The texts are escaped once, eight
//! bytes at a time; the encoder of `serde_json` looks at each byte of each copy, which was a fifth of the cost of a
//! rejection with many findings.

use crate::word_search::first_escaped;
use std::fmt::Write as _;
use std::ops::Range;

/// A text as a JSON string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonText {
    /// Without its quotes.
    escaped: String,
}

impl JsonText {
    /// Escapes a text.
    pub(crate) fn new(text: &str) -> Self {
        let mut out = Self::with_capacity(text.len());
        out.push(text);
        out
    }

    /// An empty text with room for another one of this length.
    pub(crate) fn with_capacity(length: usize) -> Self {
        let escaped = String::with_capacity(length.saturating_add(ESCAPES_BYTES));
        Self { escaped }
    }

    /// Appends a text, and escapes it.
    pub(crate) fn push(&mut self, text: &str) {
        push_escaped(&mut self.escaped, text);
    }

    /// Appends a text, and returns its place.
    pub(crate) fn push_part(&mut self, text: &str) -> Range<usize> {
        let start = self.len();
        self.push(text);
        start..self.len()
    }

    /// The escaped text at a place that [`Self::push_part`] returned.
    pub(crate) fn part(&self, place: &Range<usize>) -> &str {
        self.escaped.get(place.clone()).unwrap_or_default()
    }

    /// The length of the JSON without quotes, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.escaped.len()
    }

    /// Appends the JSON string to a JSON text.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(self.escaped.as_bytes());
        out.push(b'"');
    }
}

/// The bytes for the escapes of a usual text.
const ESCAPES_BYTES: usize = 32;

fn push_escaped(out: &mut String, mut text: &str) {
    while let Some(at) = first_escaped(text.as_bytes()) {
        // The byte is ASCII, so both splits are at characters.
        let (plain, rest) = text.split_at_checked(at).unwrap_or_default();
        out.push_str(plain);
        let (special, rest) = rest.split_at_checked(1).unwrap_or_default();
        match special {
            "\"" => out.push_str("\\\""),
            "\\" => out.push_str("\\\\"),
            "\n" => out.push_str("\\n"),
            control => {
                for byte in control.bytes() {
                    // Writing to a string does not fail.
                    let _ = write!(out, "\\u{byte:04x}");
                }
            }
        }
        text = rest;
    }
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &JsonText) -> String {
        let mut json = Vec::new();
        text.append_to(&mut json);
        serde_json::from_slice(&json).unwrap()
    }

    proptest! {
        #[test]
        fn json_text_decodes_to_its_parts(parts in prop::collection::vec("[\\x00-\\x7fä€\u{1f600}\"\\\\]{0,20}", 0..4)) {
            let mut whole = JsonText::with_capacity(0);
            for part in &parts {
                whole.push(part);
                let escaped = JsonText::new(part);
                prop_assert_eq!(&decoded(&escaped), part);
                let place = whole.push_part(part);
                prop_assert_eq!(whole.part(&place), &escaped.escaped);
            }
            let doubled: String = parts.iter().map(|it| it.repeat(2)).collect();
            prop_assert_eq!(decoded(&whole), doubled);
        }
    }
}

//! Messages about invalid texts, in the terms of the text instead of the parser's.

use super::values_max::VALUES_MAX;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;
use std::fmt;

/// An error of parsing a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line and column, from 1.
    pub location: Option<(usize, usize)>,
    /// The problem, on one line, in lower case.
    pub message: String,
}

/// The position, if it is known, and the message.
impl fmt::Display for SyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location {
            Some((line, column)) => write!(out, "{line}:{column}: {}", self.message),
            None => out.write_str(&self.message),
        }
    }
}

impl SyntaxError {
    /// Describes an error of the parser.
    #[must_use]
    pub fn from_parser(error: &Error) -> Self {
        let location = error.location().and_then(|location| {
            let line = usize::try_from(location.line()).ok()?;
            Some((line, usize::try_from(location.column()).ok()?))
        });
        Self {
            location,
            message: message(error.without_snippet()),
        }
    }

    /// Describes an error of the parser. A text with placeholders of a template gets a message about these, because any
    /// other would be about their syntax.
    #[must_use]
    pub fn in_text(error: &Error, text: &str) -> Self {
        match placeholder(text) {
            Some(location) => Self {
                location: Some(location),
                message: "a template, not a manifest; render it first, for example with helm template, or leave it out"
                    .to_owned(),
            },
            None => Self::from_parser(error),
        }
    }
}

/// Line and column of the first `{{` outside comments. No JSON has two opening braces in a row.
fn placeholder(text: &str) -> Option<(usize, usize)> {
    let mut lines = (1_usize..).zip(text.lines());
    lines.find_map(|(number, line)| {
        let code = line.split(" #").next().unwrap_or_default();
        let at = code.find("{{").filter(|_| !code.starts_with('#'))?;
        let column = code.get(..at)?.chars().count().saturating_add(1);
        Some((number, column))
    })
}

fn message(error: &Error) -> String {
    match error {
        Error::Budget { breach, .. } => limit_message(breach),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => alias_message(),
        Error::AliasError { error, .. } => message(error),
        Error::MultipleDocuments { .. } => {
            "more than one document; give a file with a single one".to_owned()
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("duplicate key {key}: kubectl would silently use the last value")
        }
        other => {
            let text = other.to_string();
            let first = text.lines().next().unwrap_or_default();
            // The message repeats the position at its end.
            let end = first.rfind(" at line ").unwrap_or(first.len());
            plain_words(first.get(..end).unwrap_or(first))
        }
    }
}

fn limit_message(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Events { .. }
        | BudgetBreach::Nodes { .. }
        | BudgetBreach::Documents { .. } => {
            format!("more than {VALUES_MAX} values; split it into smaller files")
        }
        BudgetBreach::Depth { depth } => {
            let limit = depth.saturating_sub(1);
            format!("nested more than {limit} levels deep")
        }
        BudgetBreach::ScalarBytes { .. } | BudgetBreach::InputBytes { .. } => {
            "the texts in it are too large; split it into smaller files".to_owned()
        }
        BudgetBreach::SequenceUnbalanced => "a list or mapping ends that did not begin".to_owned(),
        _ => alias_message(),
    }
}

fn alias_message() -> String {
    "its anchors and aliases expand to too many values; write the values out".to_owned()
}

/// The parser's and the decoder's terms, and those of a manifest.
const TERMS: [(&str, &str); 19] = [
    ("unknown variant", "unknown value"),
    ("expected mapping start", "expected a mapping"),
    ("expected sequence start", "expected a list"),
    ("expected string scalar", "expected a string"),
    ("expected scalar", "expected a single value"),
    ("expected a sequence", "expected a list"),
    ("expected sequence", "expected a list"),
    ("expected a map", "expected a mapping"),
    ("a mappingping", "a mapping"),
    ("type: map", "type: mapping"),
    ("type: sequence", "type: list"),
    ("unit value", "null"),
    ("floating point", "number"),
    ("expected i32", "expected a whole number"),
    ("expected i64", "expected a whole number"),
    ("expected u32", "expected a whole number, 0 or more"),
    ("expected u64", "expected a whole number, 0 or more"),
    ("expected usize", "expected a whole number, 0 or more"),
    ("expected f64", "expected a number"),
];

/// The message of a decoder in the terms of a manifest: no names of types of this program.
#[must_use]
pub fn plain_words(message: &str) -> String {
    if message.contains("did not match any variant of untagged enum") {
        return "the value has none of the accepted forms".to_owned();
    }
    let mut text = message.to_owned();
    for (term, plain) in TERMS {
        if text.contains(term) {
            text = text.replace(term, plain);
        }
    }
    // "expected struct Name" and "expected struct Name with 2 elements" are about any mapping.
    match text.find("expected struct ") {
        Some(at) => format!("{}expected a mapping", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{placeholder, plain_words};

    #[test]
    fn plain_words_replaces_terms_of_the_decoder() {
        for (message, expected) in [
            (
                "unknown variant `deny`, expected `a`",
                "unknown value `deny`, expected `a`",
            ),
            (
                "invalid type: map, expected a string",
                "invalid type: mapping, expected a string",
            ),
            (
                "invalid type: string \"a\", expected struct Pod",
                "invalid type: string \"a\", expected a mapping",
            ),
            (
                "invalid type: integer `1`, expected a map",
                "invalid type: integer `1`, expected a mapping",
            ),
            (
                "data did not match any variant of untagged enum X",
                "the value has none of the accepted forms",
            ),
        ] {
            assert_eq!(plain_words(message), expected);
        }
    }

    #[test]
    fn placeholder_ignores_comments_and_json() {
        assert_eq!(placeholder("a: 1\nb: {{ .x }}"), Some((2, 4)));
        assert_eq!(placeholder("# {{ x }}\na: {b: {c: 1}} # {{ x }}\n"), None);
    }
}

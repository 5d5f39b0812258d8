//! Splits a JSON text into its objects: the items of lists, and objects that are no list. Several documents may follow each other.

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt;

/// An error in a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonError {
    /// From 1.
    pub(super) line: usize,
    /// From 1.
    pub(super) column: usize,
    message: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl JsonError {
    /// An error in the part of a text that starts at a byte.
    pub(super) fn in_part(text: &str, start: usize, error: &serde_json::Error) -> Self {
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |it| it.saturating_add(1));
        let lines = before.bytes().filter(|it| *it == b'\n').count();
        let of_first_line = match error.line() {
            // The part continues a line of the text.
            1 => before.len().saturating_sub(line_start),
            _ => 0,
        };
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        Self {
            line: lines.saturating_add(error.line()),
            column: of_first_line.saturating_add(error.column()),
            message: message.trim_end_matches(&place).to_owned(),
        }
    }
}

/// The texts of the objects in a JSON text. Costs one pass over the text, which validates its syntax.
///
/// # Errors
///
/// The text is not JSON, or a document is neither an object nor a list of objects.
pub(super) fn json_items(text: &str) -> Result<Vec<&str>, JsonError> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Document<'_>>();
    let mut found = Vec::new();
    loop {
        let start = documents.byte_offset();
        match documents.next() {
            None => return Ok(found),
            Some(Err(error)) => return Err(JsonError::in_part(text, 0, &error)),
            Some(Ok(document)) => match document.items {
                Items::Listed(items) => found.extend(items.into_iter().map(RawValue::get)),
                Items::Absent => found.extend(text.get(start..documents.byte_offset())),
            },
        }
    }
}

/// A document: a list if it has the field `items`.
#[derive(serde::Deserialize)]
struct Document<'a> {
    #[serde(borrow, default, deserialize_with = "listed")]
    items: Items<'a>,
}

/// The field `items` of a document.
#[derive(Default)]
enum Items<'a> {
    /// The document is no list.
    #[default]
    Absent,
    /// The items; none if the field is null.
    Listed(Vec<&'a RawValue>),
}

fn listed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Items<'de>, D::Error> {
    let items: Option<Vec<&RawValue>> = Option::deserialize(deserializer)?;
    Ok(Items::Listed(items.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::json_items;

    #[test]
    fn items_of_lists_and_single_objects_are_found() {
        let text = r#"{"kind": "List", "items": [{"a": 1}, {"b": [2.5]}], "metadata": {}}
            {"kind": "Job"} {"items": null}
            "#;
        let found = json_items(text).unwrap();
        let trimmed: Vec<&str> = found.iter().map(|it| it.trim()).collect();
        assert_eq!(
            trimmed,
            [r#"{"a": 1}"#, r#"{"b": [2.5]}"#, r#"{"kind": "Job"}"#]
        );
        assert!(json_items("").unwrap().is_empty());
    }

    #[test]
    fn wrong_texts_are_errors_with_position() {
        let error = json_items("{\"items\": [\n{\"a\": 1}, {\"b\"").unwrap_err();
        assert_eq!((error.line, error.column), (2, 14));
        assert_eq!(error.to_string(), "EOF while parsing an object");
        assert!(json_items("[1]").is_err());
        let error = json_items(r#"{"items": 5}"#).unwrap_err();
        assert!(error.to_string().contains("expected a sequence"), "{error}");
    }
}

//! A parsed manifest file.

use crate::document::Document;
use crate::yaml::YamlTree;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crdgen::manifests::{SyntaxError, parse_documents, plain_words};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use std::sync::OnceLock;

/// A file that could be read: its text, its objects, and (built on demand) its positions.
pub struct ParsedSource {
    /// The text as it was read.
    pub text: String,
    /// The objects, items of lists included, in the order of the text.
    pub documents: Vec<Document>,
    tree: OnceLock<YamlTree>,
}

/// An error of reading a file.
#[derive(Clone, Debug)]
pub struct ReadError {
    /// Line and column, from 1.
    pub location: Option<(usize, usize)>,
    /// The problem, in lower case.
    pub message: String,
}

impl ReadError {
    /// An error of a whole file.
    #[must_use]
    pub fn without_location(message: String) -> Self {
        Self {
            location: None,
            message,
        }
    }
}

impl From<SyntaxError> for ReadError {
    fn from(error: SyntaxError) -> Self {
        Self {
            location: error.location,
            message: error.message,
        }
    }
}

impl ParsedSource {
    /// Parses YAML or JSON with any number of documents.
    ///
    /// # Errors
    ///
    /// The text is not valid YAML, or exceeds the limits of the deserializer.
    pub fn parse(text: String) -> Result<Self, ReadError> {
        let tree = OnceLock::new();
        let values = match YamlTree::parse(&text) {
            Some((parsed, values)) => {
                // Not set before: the cell is new.
                let _ = tree.set(parsed);
                values
            }
            // Anchors, tags, scalars of unclear type and errors need the full deserializer.
            None => parse_documents(&text)?,
        };
        let mut documents = Vec::new();
        for (number, value) in values.into_iter().enumerate() {
            flatten_lists(number, String::new(), value, &mut documents);
        }
        Ok(Self {
            text,
            documents,
            tree,
        })
    }

    /// Decodes the only object of the text.
    ///
    /// # Errors
    ///
    /// The text has no object or several, or the object does not fit the type. The error has the position and the
    /// path of the field.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        let [document] = self.documents.as_slice() else {
            let count = self.documents.len();
            let message = format!("expected one document, found {count}");
            return Err(ReadError::without_location(message));
        };
        serde_path_to_error::deserialize(&document.value).map_err(|error| {
            let field =
                error
                    .path()
                    .iter()
                    .fold(FieldPath::default(), |path, segment| match segment {
                        Segment::Seq { index } => path.index(*index),
                        Segment::Map { key } => path.named(key.as_str()),
                        Segment::Enum { variant } => path.named(variant.as_str()),
                        Segment::Unknown => path,
                    });
            let pointer = field.pointer();
            let place = format!("{}{pointer}", document.pointer);
            let location = self.tree().locate(document.number, &place);
            let problem = plain_words(&error.into_inner().to_string());
            ReadError {
                location: location.map(|it| (it.line, it.column)),
                message: if pointer.is_empty() {
                    problem
                } else {
                    format!("{field}: {problem}")
                },
            }
        })
    }

    /// Line and column of a field of a document, or of its deepest parent that exists.
    #[must_use]
    pub fn locate(&self, document: &Document, field: &FieldPath) -> Option<(usize, usize)> {
        let place = format!("{}{}", document.pointer, field.pointer());
        let location = self.tree().locate(document.number, &place)?;
        Some((location.line, location.column))
    }

    /// The positions of all fields.
    pub(crate) fn tree(&self) -> &YamlTree {
        self.tree.get_or_init(|| YamlTree::new(&self.text))
    }
}

/// Adds an object, or the items of a `List`. Null documents are skipped.
fn flatten_lists(number: usize, pointer: String, mut value: Value, out: &mut Vec<Document>) {
    let is_list = value
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|it| it.ends_with("List"));
    let items = value.get_mut("items").filter(|_| is_list).map(Value::take);
    match items {
        Some(Value::Array(items)) => {
            for (at, item) in items.into_iter().enumerate() {
                flatten_lists(number, format!("{pointer}/items/{at}"), item, out);
            }
        }
        _ if value.is_null() => {}
        _ => out.push(Document {
            number,
            pointer,
            value,
            origin: None,
            is_patch: false,
        }),
    }
}

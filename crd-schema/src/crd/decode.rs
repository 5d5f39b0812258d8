//! Decodes a request body as the API server does.

mod json;
mod yaml;

use serde_json::Value;

/// The format of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// `application/json`.
    Json,
    /// `application/yaml`. The API server reads the first document only.
    Yaml,
}

/// The deepest nesting that is decoded. The API server's limit is 10,000.
const DEPTH_MAX: usize = 256;

/// A decoded text.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) value: Value,
    /// The paths of duplicate fields in JSON.
    pub(super) duplicates: Vec<String>,
    /// Whether a mapping in YAML has a key more than once.
    pub(super) has_duplicate_keys: bool,
}

/// Decodes a text.
///
/// # Errors
///
/// The reason if the text is not valid.
pub(super) fn decode(text: &str, content_type: ContentType) -> Result<Decoded, String> {
    match content_type {
        ContentType::Json => json::decode(text),
        ContentType::Yaml => yaml::decode(text),
    }
}

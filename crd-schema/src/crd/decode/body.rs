//! Decodes a text of either format.

use super::decoded::{ContentType, Decoded};
use super::json::{self, Duplicates};
use super::yaml;

/// Decodes a text.
///
/// # Errors
///
/// The reason if the text is not valid.
pub(crate) fn decode(text: &str, content_type: ContentType) -> Result<Decoded, String> {
    match content_type {
        ContentType::Json => json::decode(text, Duplicates::Replace),
        ContentType::Yaml => yaml::decode(text),
    }
}

/// Decodes a text of a typed object: values of a JSON field that is set more than once are merged.
///
/// # Errors
///
/// The reason if the text is not valid.
pub(crate) fn decode_merging(text: &str, content_type: ContentType) -> Result<Decoded, String> {
    match content_type {
        ContentType::Json => json::decode(text, Duplicates::Merge),
        ContentType::Yaml => yaml::decode(text),
    }
}

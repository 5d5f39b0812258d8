//! Decodes a text of either format.

use super::decoded::{ContentType, Decoded};
use super::{json, yaml};

/// Decodes a text.
///
/// # Errors
///
/// The reason if the text is not valid.
pub(in super::super) fn decode(text: &str, content_type: ContentType) -> Result<Decoded, String> {
    match content_type {
        ContentType::Json => json::decode(text),
        ContentType::Yaml => yaml::decode(text),
    }
}

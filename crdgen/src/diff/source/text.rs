//! Texts of manifest files.

use std::path::Path;

/// A text and its origin, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The file, or the revision and the path.
    pub place: String,
    /// The text.
    pub text: String,
}

/// Whether the extension is one of manifest files.
pub(super) fn is_manifest_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

//! What the decoders of all formats share.

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
pub(crate) const DEPTH_MAX: usize = 256;

/// A decoded text.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// The paths of duplicate fields in JSON.
    pub(crate) duplicates: Vec<String>,
    /// Whether a mapping in YAML has a key more than once.
    pub(crate) has_duplicate_keys: bool,
}

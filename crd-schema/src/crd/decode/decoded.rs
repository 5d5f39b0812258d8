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
pub(in super::super) const DEPTH_MAX: usize = 256;

/// A decoded text.
#[derive(Debug)]
pub(in super::super) struct Decoded {
    pub(in super::super) value: Value,
    /// The paths of duplicate fields in JSON.
    pub(in super::super) duplicates: Vec<String>,
    /// Whether a mapping in YAML has a key more than once.
    pub(in super::super) has_duplicate_keys: bool,
}

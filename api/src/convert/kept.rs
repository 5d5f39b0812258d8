//! What a version has no field for, in an annotation.

use super::difference::Entry;
use super::error::Why;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The annotation that keeps what the version of an object has no field for.
pub const KEPT: &str = "lockkeeper.dev/kept-in-conversion";

/// The most that the annotation may hold, in bytes: half of what Kubernetes lets all annotations of an object have.
pub const KEPT_MAX_BYTES: usize = 128 * 1024;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// What the version lacks of the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) hub: Vec<Entry>,
    /// What objects of other versions had that the hub lacks, by version: fields that this build does not know, and ways
    /// to write a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) own: BTreeMap<String, Vec<Entry>>,
}

impl Kept {
    /// What is in an annotation, or why it is none of ours.
    pub(super) fn read(annotation: &Value) -> Result<Self, String> {
        let text = annotation.as_str().ok_or("it is no text")?;
        if text.len() > KEPT_MAX_BYTES {
            return Err(format!("it is larger than {KEPT_MAX_BYTES} bytes"));
        }
        // A list would be taken for its fields in their order.
        if !text.trim_start().starts_with('{') {
            return Err("it is no JSON object".to_owned());
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// The text of the annotation; `None` if nothing is kept.
    pub(super) fn write(&self) -> Result<Option<String>, Why> {
        if self.hub.is_empty() && self.own.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_string(self).map_err(|error| {
            let field = crate::field_path::FieldPath::new("metadata.annotations").key(KEPT);
            Why::Unfit(super::Fault::new(field, error.to_string()))
        })?;
        if text.len() > KEPT_MAX_BYTES {
            return Err(Why::TooMuchKept { bytes: text.len() });
        }
        Ok(Some(text))
    }
}

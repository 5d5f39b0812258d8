//! What the API server demands of the metadata of any custom resource.

use super::METADATA;
use crate::finding::{Finding, Findings};
use crate::metadata::created;
use kube::core::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Value, json};
use serde_path_to_error::Segment;

/// What is wrong with the metadata of an object that is made.
#[must_use]
pub fn metadata(object: &Value, is_namespaced: bool) -> Vec<Finding> {
    let none = json!({});
    let given = object.get("metadata").filter(|it| !it.is_null());
    let given = given.unwrap_or(&none);
    let read: Result<ObjectMeta, _> = serde_path_to_error::deserialize(given);
    match read {
        Ok(metadata) => {
            let mut out = Findings::new(METADATA);
            created(&metadata, is_namespaced, &mut out);
            out.into_items()
        }
        Err(error) => {
            let field = error
                .path()
                .iter()
                .fold(FieldPath::new("metadata"), |path, it| match it {
                    Segment::Seq { index } => path.index(*index),
                    Segment::Map { key } => path.named(key.as_str()),
                    Segment::Enum { .. } | Segment::Unknown => path,
                });
            vec![Finding::undecodable(
                field,
                None,
                &error.inner().to_string(),
            )]
        }
    }
}

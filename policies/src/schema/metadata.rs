//! Validation of the metadata of any custom resource, as in the API server.

use crate::finding::{Finding, Findings};
use crate::metadata::check_on_create;
use kube::core::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use serde::Deserialize;
use serde_json::{Value, json};

/// The id under which invalid metadata is reported.
pub const METADATA: &str = "SC004";

/// Validates the metadata of a new object. `object` is the whole object.
#[must_use]
pub fn metadata(object: &Value, is_namespaced: bool) -> Vec<Finding> {
    let none = json!({});
    let given = object.get("metadata").filter(|it| !it.is_null());
    let given = given.unwrap_or(&none);
    // Tracking the path is the expensive part, so the metadata is decoded a second time only after an error.
    let read = ObjectMeta::deserialize(given).or_else(|_| serde_path_to_error::deserialize(given));
    match read {
        Ok(metadata) => {
            let mut out = Findings::new(METADATA);
            check_on_create(&metadata, is_namespaced, &mut out);
            let mut found = out.into_items();
            // For cluster-scoped objects the API server clears the namespace before validation.
            let namespace = FieldPath::new("metadata").field("namespace");
            found.retain(|it| is_namespaced || it.field != namespace);
            found
        }
        Err(error) => vec![Finding::type_mismatch(
            FieldPath::new("metadata"),
            &error,
            Some(object),
        )],
    }
}

//! What the API server demands of the metadata of any custom resource.

use super::METADATA;
use crate::finding::{Finding, Findings};
use crate::metadata::check_on_create;
use kube::core::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use serde::Deserialize;
use serde_json::{Value, json};

/// What is wrong with the metadata of an object that is made.
#[must_use]
pub fn metadata(object: &Value, is_namespaced: bool) -> Vec<Finding> {
    let none = json!({});
    let given = object.get("metadata").filter(|it| !it.is_null());
    let given = given.unwrap_or(&none);
    // Keeping track of the place costs more than all else here: it is asked for only after an error.
    let read = ObjectMeta::deserialize(given).or_else(|_| serde_path_to_error::deserialize(given));
    match read {
        Ok(metadata) => {
            let mut out = Findings::new(METADATA);
            check_on_create(&metadata, is_namespaced, &mut out);
            let mut found = out.into_items();
            // Of an object that lives in none the API server clears it before it looks.
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

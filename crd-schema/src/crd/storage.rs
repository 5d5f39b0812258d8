//! The object as it is read back from storage.

use super::definition::Schema;
use super::node::Node;
use super::numbers::encoded;
use super::{defaulting, embedded, pruning};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// An accepted object, encoded in the stored version and read back: the defaults of the stored version apply, also to
/// fields that were removed for validation, and its unknown fields are removed.
pub(super) fn round_trip(schema: &Schema, object: &Value) -> Value {
    let mut object = encoded(object);
    let stored = schema.stored_root.as_ref().unwrap_or(&schema.root);
    if schema.stored_root.is_some() {
        coerce(schema, &mut object, stored);
    }
    coerce(schema, &mut object, stored);
    defaulting::apply(&mut object, stored);
    if schema.stored_root.is_some() {
        coerce(schema, &mut object, &schema.root);
    }
    object
}

/// Removes what a schema does not specify.
fn coerce(schema: &Schema, object: &mut Value, root: &Node) {
    if !schema.preserves_unknown_fields {
        pruning::prune(object, Some(root));
        pruning::remove_nulls(object, Some(root));
    }
    // Metadata that cannot be decoded was rejected before.
    let _ = embedded::coerce(object, Some(root), &FieldPath::default(), &mut Vec::new());
}

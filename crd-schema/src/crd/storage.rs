//! The object as it is read back from storage.

use super::definition::Schema;
use super::node::Node;
use super::numbers;
use super::{defaulting, embedded, pruning};
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};

/// The integers that Go encodes without an exponent, as floats.
const PLAIN_FLOAT_MAX: f64 = 9.2e18;

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

/// A value as Go encodes it: floats without a fraction become integers.
fn encoded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            let is_whole = float.fract() == 0.0 && float.abs() < PLAIN_FLOAT_MAX;
            if is_whole {
                numbers::truncate(float).into()
            } else {
                value.clone()
            }
        }
        Value::Array(items) => items.iter().map(encoded).collect(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), encoded(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

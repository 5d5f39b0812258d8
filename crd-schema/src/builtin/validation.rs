//! Validates decoded and defaulted objects.

use super::kind::BuiltInKind;
use crate::finding::Finding;
use serde_json::Value;

/// The findings about a decoded and defaulted object; with the stored one it is an update.
pub(super) fn validate(_kind: BuiltInKind, _object: &Value, _old: Option<&Value>) -> Vec<Finding> {
    Vec::new()
}

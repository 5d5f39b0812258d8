//! The fields of the metadata that the API server sets.

use serde_json::{Map, Value};

/// The fields of a new object that the API server sets or drops.
const SYSTEM_FIELDS: [&str; 6] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
    "uid",
];

/// The longest prefix of a generated name, in bytes.
const PREFIX_MAX_BYTES: usize = 58;

/// Sets what the API server sets in the metadata of a new object before it validates it. The end of a generated name is
/// random there, and fixed here.
pub(crate) fn set_system_fields(metadata: &mut Map<String, Value>) {
    for name in SYSTEM_FIELDS {
        metadata.remove(name);
    }
    metadata.insert("generation".to_owned(), 1.into());
    let prefix = metadata.get("generateName").and_then(Value::as_str);
    if let Some(prefix) = prefix.filter(|_| !metadata.contains_key("name")) {
        let end = prefix.floor_char_boundary(PREFIX_MAX_BYTES);
        let name = format!("{}xxxxx", prefix.get(..end).unwrap_or_default());
        metadata.insert("name".to_owned(), name.into());
    }
}

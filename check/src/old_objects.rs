//! The objects before a change, by which the new ones are compared.

use crate::document::{Document, Identity};
use serde_json::Value;
use std::collections::BTreeMap;

/// Group, kind, namespace and name.
type Key = (String, String, String, String);

/// Old objects by group, kind, namespace and name. The version may change.
#[derive(Debug, Default)]
pub struct OldObjects {
    objects: BTreeMap<Key, Value>,
}

impl OldObjects {
    /// Adds an object. Of several objects with the same name the last one is used. An object without a name is not
    /// added: the API server generates its name, so it does not exist yet.
    pub fn add(&mut self, document: Document) {
        let key = key(&Identity::from_object(&document.value));
        if !key.3.is_empty() {
            self.objects.insert(key, document.value);
        }
    }

    /// The old form of an object.
    pub(crate) fn find(&self, object: &Value) -> Option<&Value> {
        if self.objects.is_empty() {
            return None;
        }
        self.objects.get(&key(&Identity::from_object(object)))
    }
}

fn key(identity: &Identity) -> Key {
    let (group, _) = identity
        .api_version
        .split_once('/')
        .unwrap_or(("", &identity.api_version));
    (
        group.to_owned(),
        identity.kind.clone(),
        identity.namespace.clone(),
        identity.name.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::OldObjects;
    use crate::document::Document;
    use serde_json::{Value, json};

    fn object(version: &str, namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": version, "kind": "Widget",
            "metadata": {"namespace": namespace, "name": name},
        })
    }

    #[test]
    fn old_objects_are_found_by_group_kind_namespace_and_name() {
        let mut old = OldObjects::default();
        for value in [
            object("example.com/v1", "a", "x"),
            object("example.com/v1", "a", ""),
        ] {
            old.add(Document {
                number: 0,
                pointer: String::new(),
                value,
                origin: None,
                is_patch: false,
            });
        }
        for (version, namespace, name, is_found) in [
            ("example.com/v1", "a", "x", true),
            ("example.com/v2", "a", "x", true),
            ("example.org/v1", "a", "x", false),
            ("example.com/v1", "b", "x", false),
            ("example.com/v1", "a", "y", false),
            ("example.com/v1", "a", "", false),
        ] {
            let found = old.find(&object(version, namespace, name));
            assert_eq!(found.is_some(), is_found, "{version} {namespace} {name}");
        }
    }
}

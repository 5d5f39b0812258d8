//! Sets what the API server sets before it validates an object, the defaults aside.

use super::kind::BuiltInKind;
use crate::crd::system_fields::set_system_fields;
use crate::crd::values::metadata_of;
use serde_json::{Map, Value};

impl BuiltInKind {
    /// Prepares the metadata of a new object.
    pub(super) fn prepare_new(&self, object: &mut Value, namespace: &str) {
        self.set_namespace(object, namespace);
        if let Some(metadata) = metadata_mut(object) {
            set_system_fields(metadata);
        }
    }

    /// Prepares the metadata of an update.
    pub(super) fn prepare_change(&self, object: &mut Value, old: &Value, namespace: &str) {
        self.set_namespace(object, namespace);
        let stored = metadata_of(old);
        let Some(metadata) = metadata_mut(object) else {
            return;
        };
        for name in ["managedFields", "selfLink"] {
            metadata.remove(name);
        }
        for name in ["generation", "creationTimestamp"] {
            match stored.get(name) {
                Some(value) => metadata.insert(name.to_owned(), value.clone()),
                None => metadata.remove(name),
            };
        }
        for name in [
            "uid",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "resourceVersion",
        ] {
            if let Some(value) = stored.get(name) {
                metadata.entry(name).or_insert_with(|| value.clone());
            }
        }
    }

    /// Sets the namespace of a namespaced object that has none, and removes that of others.
    pub(super) fn set_namespace(&self, object: &mut Value, namespace: &str) {
        if let Some(metadata) = metadata_mut(object) {
            if self.is_namespaced() {
                metadata
                    .entry("namespace")
                    .or_insert_with(|| namespace.into());
            } else {
                metadata.remove("namespace");
            }
        }
    }
}

fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

//! Default values of unset fields.

use crate::settings::Settings;
use k8s_openapi::api::core::v1::PodSchedulingGate;
use kube::core::ObjectMeta;
use lockkeeper_api::field_path::{FieldPath, unescaped};
use lockkeeper_api::labels;
use serde::Serialize;
use serde_json::Value;

/// One default.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultedField {
    /// The path for messages.
    pub field: FieldPath,
    /// The JSON pointer (RFC 6901) at which the value is added; it ends in `/-` when the value is
    /// appended to a list.
    pub pointer: String,
    /// The value.
    pub value: Value,
}

impl DefaultedField {
    /// Sets the value in an object. Does nothing if the parent is missing.
    pub fn apply(&self, object: &mut Value) {
        let Some((above, name)) = self.pointer.rsplit_once('/') else {
            return;
        };
        match object.pointer_mut(above) {
            Some(Value::Object(fields)) => {
                fields.insert(unescaped(name), self.value.clone());
            }
            Some(Value::Array(items)) if name == "-" => items.push(self.value.clone()),
            _ => {}
        }
    }
}

/// Defaults in the order in which they must be applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    items: Vec<DefaultedField>,
}

impl Defaults {
    /// The defaults.
    #[must_use]
    pub fn items(&self) -> &[DefaultedField] {
        &self.items
    }

    /// Returns the defaults in the order in which they must be applied.
    #[must_use]
    pub fn into_items(self) -> Vec<DefaultedField> {
        self.items
    }

    /// Sets a field with an existing parent.
    pub(crate) fn set(&mut self, field: FieldPath, value: impl Serialize) {
        let pointer = field.pointer();
        self.push(field, pointer, value);
    }

    /// Adds the finalizer that blocks the deletion of an object in use. A replacement without it is not meant to remove it.
    ///
    /// Not to an object that is being deleted: the controller removes the finalizer from it, and the API server rejects
    /// additions. Not where no controller removes it.
    pub(crate) fn add_finalizer(&mut self, metadata: &ObjectMeta, settings: &Settings) {
        if metadata.deletion_timestamp.is_none() && settings.adds_finalizers {
            self.add_named_finalizer(labels::RESOURCE_IN_USE, metadata.finalizers.as_ref());
        }
    }

    /// Adds the scheduling gate of the controller to a pod.
    pub(crate) fn add_admission_gate(&mut self, present: &[PodSchedulingGate]) {
        let field = FieldPath::new("spec.schedulingGates");
        let gate = PodSchedulingGate {
            name: labels::ADMISSION_GATE.to_owned(),
        };
        if present.is_empty() {
            self.set(field, [gate]);
        } else if !present.contains(&gate) {
            let pointer = format!("{}/-", field.pointer());
            self.push(field, pointer, gate);
        }
    }

    /// Adds a finalizer.
    pub(crate) fn add_named_finalizer(&mut self, finalizer: &str, present: Option<&Vec<String>>) {
        let field = FieldPath::new("metadata.finalizers");
        match present {
            None => self.set(field, [finalizer]),
            Some(list) if list.iter().any(|name| name == finalizer) => {}
            Some(_) => {
                // `/-` appends to the list: other finalizers stay (RFC 6902).
                let pointer = format!("{}/-", field.pointer());
                self.push(field, pointer, finalizer);
            }
        }
    }

    fn push(&mut self, field: FieldPath, pointer: String, value: impl Serialize) {
        // Defaults are strings, numbers, booleans, lists and maps: serialising them does not fail.
        if let Ok(value) = serde_json::to_value(value) {
            self.items.push(DefaultedField {
                field,
                pointer,
                value,
            });
        }
    }
}

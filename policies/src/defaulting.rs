//! What is filled in where an object says nothing.

use lockkeeper_api::field_path::{FieldPath, unescaped};
use lockkeeper_api::labels;
use serde::Serialize;
use serde_json::Value;

/// One value that is filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultedField {
    /// The field as a person reads it.
    pub field: FieldPath,
    /// The JSON pointer (RFC 6901) at which the value is added; it ends in `/-` when the value is
    /// appended to a list.
    pub pointer: String,
    /// The value.
    pub value: Value,
}

impl DefaultedField {
    /// Puts the value into an object. Where its parent is missing nothing happens.
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

/// Everything that is filled in, in the order in which it must be applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    items: Vec<DefaultedField>,
}

impl Defaults {
    /// What is filled in.
    #[must_use]
    pub fn items(&self) -> &[DefaultedField] {
        &self.items
    }

    /// Fills in a field whose parent exists.
    pub(crate) fn set(&mut self, field: FieldPath, value: impl Serialize) {
        let pointer = field.pointer();
        self.push(field, pointer, value);
    }

    /// Adds the finalizer that keeps an object in use from going away.
    pub(crate) fn add_finalizer(&mut self, present: Option<&Vec<String>>) {
        self.add_named_finalizer(labels::RESOURCE_IN_USE, present);
    }

    /// Adds a finalizer.
    pub(crate) fn add_named_finalizer(&mut self, finalizer: &str, present: Option<&Vec<String>>) {
        let field = FieldPath::new("metadata.finalizers");
        match present {
            None => self.set(field, [finalizer]),
            Some(list) if list.iter().any(|name| name == finalizer) => {}
            Some(_) => {
                let pointer = format!("{}/-", field.pointer());
                self.push(field, pointer, finalizer);
            }
        }
    }

    fn push(&mut self, field: FieldPath, pointer: String, value: impl Serialize) {
        // Only strings, numbers, flags and lists and maps of them are filled in: they always have a
        // JSON form.
        if let Ok(value) = serde_json::to_value(value) {
            self.items.push(DefaultedField {
                field,
                pointer,
                value,
            });
        }
    }
}

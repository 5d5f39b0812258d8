//! Removes unknown fields, and nulls that are neither allowed nor replaced by a default.

use super::node::Node;
use serde_json::Value;

/// The fields that every resource has.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Removes the fields of a resource that its schema does not specify, and returns their paths, sorted.
pub(super) fn prune(object: &mut Value, schema: Option<&Node>) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.visit(object, schema, true);
    pruner.unknown.sort_unstable();
    pruner.unknown
}

/// Removes the fields of a value, which may be a resource, that its schema does not specify.
pub(super) fn prune_value(value: &mut Value, schema: &Node, is_resource: bool) {
    Pruner::default().visit(value, Some(schema), is_resource);
}

/// The path of an unknown field below `parent`.
pub(crate) fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}

#[derive(Default)]
struct Pruner {
    path: String,
    unknown: Vec<String>,
}

impl Pruner {
    /// Visits a value one step further down.
    fn below(&mut self, step: &str, is_field: bool, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if is_field && length > 0 {
            self.path.push('.');
        }
        self.path.push_str(step);
        visit(self);
        self.path.truncate(length);
    }

    fn visit(&mut self, value: &mut Value, schema: Option<&Node>, is_root: bool) {
        let preserves = schema.is_some_and(|it| it.preserves_unknown_fields);
        match value {
            Value::Object(fields) => {
                let is_resource = is_root || schema.is_some_and(|it| it.is_embedded);
                let mut removed = Vec::new();
                for (name, value) in fields.iter_mut() {
                    if is_resource && is_meta(name) {
                        continue;
                    }
                    let property = schema.and_then(|it| it.properties.get(name));
                    if property.is_some() {
                        self.below(name, true, |it| it.visit(value, property, false));
                    } else if let Some(schema) = schema.filter(|it| it.has_additional()) {
                        let additional = schema.additional.as_deref();
                        self.below(name, true, |it| it.visit(value, additional, false));
                    } else if !preserves {
                        if !is_meta(name) || !self.path.is_empty() {
                            self.unknown.push(join(&self.path, name));
                        }
                        removed.push(name.clone());
                    }
                }
                for name in removed {
                    fields.remove(&name);
                }
            }
            Value::Array(items) => {
                let schema_of_items = schema.and_then(|it| it.items.as_deref());
                for (position, item) in items.iter_mut().enumerate() {
                    self.below(&format!("[{position}]"), false, |it| {
                        // Below a list that preserves unknown fields everything without a schema is preserved.
                        if !preserves {
                            it.visit(item, schema_of_items, false);
                        } else if schema_of_items.is_some() {
                            it.visit_preserved(item, schema_of_items);
                        }
                    });
                }
            }
            _ => {}
        }
    }

    /// Visits an item of a list that preserves unknown fields: its own unknown fields are preserved too.
    fn visit_preserved(&mut self, value: &mut Value, schema: Option<&Node>) {
        let Some(schema) = schema else {
            return;
        };
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    if schema.is_embedded && is_meta(name) {
                        continue;
                    }
                    if let Some(property) = schema.properties.get(name) {
                        self.below(name, true, |it| it.visit(value, Some(property), false));
                    } else if schema.has_additional() {
                        let additional = schema.additional.as_deref();
                        self.below(name, true, |it| it.visit(value, additional, false));
                    }
                }
            }
            Value::Array(items) => {
                for (position, item) in items.iter_mut().enumerate() {
                    let items = schema.items.as_deref();
                    self.below(&format!("[{position}]"), false, |it| {
                        it.visit_preserved(item, items);
                    });
                }
            }
            _ => {}
        }
    }
}

/// Removes nulls that the schema neither allows nor replaces by a default.
pub(super) fn remove_nulls(value: &mut Value, schema: Option<&Node>) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let field = schema.and_then(|it| it.field(name));
                !(value.is_null()
                    && field.is_some_and(|it| !it.is_nullable && it.default.is_none()))
            });
            for (name, value) in fields.iter_mut() {
                remove_nulls(value, schema.and_then(|it| it.field(name)));
            }
        }
        Value::Array(items) => {
            for item in items {
                remove_nulls(item, schema.and_then(|it| it.items.as_deref()));
            }
        }
        _ => {}
    }
}

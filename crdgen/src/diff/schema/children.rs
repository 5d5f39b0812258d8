//! Compares the fields, entries and items of a node.

use super::accepts::{accepts_anything, accepts_field};
use super::comparison::SchemaComparison;
use super::cursor::{Cursor, entries, items, preserves_unknown_fields, property};
use crate::diff::{ChangeCode, Effect, StoredObjectsEffect};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use lockkeeper_policies::schema::StructuralSchema;
use serde_json::json;

/// Whether the default of a field is still valid when the defaults below it are applied.
fn has_valid_default(field: &JSONSchemaProps) -> bool {
    // The API server validates each default separately, so their combination may be invalid.
    let around = json!({"type": "object", "properties": {"field": field}});
    StructuralSchema::new(&around).is_ok_and(|structure| {
        let mut object = json!({});
        structure.apply_defaults(&mut object);
        structure.check(&object, None).is_empty()
    })
}

impl SchemaComparison<'_> {
    pub(super) fn compare_children(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        at: &Cursor,
    ) {
        for name in old.properties.iter().flat_map(|it| it.keys()) {
            let (Some(before), path) = (property(old, name), at.path.field(name)) else {
                continue;
            };
            let below = at.child(path, new);
            match property(new, name) {
                Some(after) => {
                    self.compare_node(before, after, &below);
                    self.compare_default(before, after, is_required(old, name), &below);
                }
                None => self.field_removed(before, new, &below),
            }
        }
        for (name, after) in new.properties.iter().flatten() {
            if property(old, name).is_none() {
                let below = at.child(at.path.field(name), new);
                self.field_added(old, new, name, after, &below);
            }
        }
        self.compare_entries(old, new, at);
        self.compare_items(old, new, at);
    }

    /// Compares a field that no longer has a schema of its own.
    fn field_removed(&mut self, before: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        if let Some(after) = entries(new) {
            self.compare_node(before, after, at);
        } else if preserves_unknown_fields(new) {
            let what = "it no longer has a schema".to_owned();
            self.report(
                &at.path,
                ChangeCode::FieldUntyped,
                Effect::Wider,
                StoredObjectsEffect::Untouched,
                what,
            );
        } else {
            let what = "the field is removed".to_owned();
            let code = ChangeCode::FieldRemoved;
            return self.report(
                &at.path,
                code,
                Effect::Narrower,
                StoredObjectsEffect::Dropped,
                what,
            );
        }
        if before.default.is_some() {
            let what = "its default is removed".to_owned();
            let code = ChangeCode::DefaultRemoved;
            self.report(
                &at.path,
                code,
                Effect::Same,
                StoredObjectsEffect::Untouched,
                what,
            );
        }
    }

    /// Compares a field that had no schema of its own.
    fn field_added(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        name: &str,
        after: &JSONSchemaProps,
        at: &Cursor,
    ) {
        if let Some(before) = entries(old) {
            self.compare_node(before, after, at);
        } else if preserves_unknown_fields(old) && !accepts_anything(after) {
            let what = "it has a schema now".to_owned();
            self.report(
                &at.path,
                ChangeCode::FieldTyped,
                Effect::Narrower,
                at.stored_until(),
                what,
            );
        } else if !is_required(new, name) || after.default.is_some() {
            let what = "the field is added".to_owned();
            self.report(
                &at.path,
                ChangeCode::FieldAdded,
                Effect::Wider,
                StoredObjectsEffect::Untouched,
                what,
            );
        }
        let Some(default) = &after.default else {
            return;
        };
        let default = &default.0;
        // Objects without the field were valid, and now get a value.
        if accepts_field(old, name) {
            let what = format!("the default is {default}, there was none");
            let code = ChangeCode::DefaultAdded;
            self.report(
                &at.path,
                code,
                Effect::Same,
                StoredObjectsEffect::Untouched,
                what,
            );
        } else if at.has_outer_constraint
            || new.max_properties.is_some()
            || !has_valid_default(after)
        {
            let what = format!("the default {default} is applied");
            let code = ChangeCode::DefaultUnderBound;
            self.report(
                &at.path,
                code,
                Effect::Unclear,
                StoredObjectsEffect::Untouched,
                what,
            );
        }
    }

    fn compare_default(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        was_required: bool,
        at: &Cursor,
    ) {
        let (code, what) = match (&old.default, &new.default) {
            (None, Some(after)) => {
                let code = if was_required {
                    ChangeCode::DefaultOfRequiredAdded
                } else {
                    ChangeCode::DefaultAdded
                };
                (code, format!("the default is {}, there was none", after.0))
            }
            (Some(before), None) => {
                let what = format!("the default was {}, there is none", before.0);
                (ChangeCode::DefaultRemoved, what)
            }
            (Some(before), Some(after)) if before != after => {
                let what = format!("the default is {}, it was {}", after.0, before.0);
                (ChangeCode::DefaultChanged, what)
            }
            _ => return,
        };
        self.report(
            &at.path,
            code,
            Effect::Same,
            StoredObjectsEffect::Untouched,
            what,
        );
    }

    fn compare_entries(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let below = at.child(at.path.entries(), new);
        match (entries(old), entries(new)) {
            (Some(before), Some(after)) => return self.compare_node(before, after, &below),
            (None, Some(_)) if preserves_unknown_fields(old) => {
                let what = "entries have a schema now".to_owned();
                return self.report(
                    &below.path,
                    ChangeCode::FieldTyped,
                    Effect::Narrower,
                    at.stored_until(),
                    what,
                );
            }
            (None, Some(_)) => {
                let what = "entries of any name are kept".to_owned();
                let code = ChangeCode::EntriesAllowed;
                return self.report(
                    &at.path,
                    code,
                    Effect::Wider,
                    StoredObjectsEffect::Untouched,
                    what,
                );
            }
            (Some(_), None) if preserves_unknown_fields(new) => {
                let what = "entries no longer have a schema".to_owned();
                let code = ChangeCode::FieldUntyped;
                return self.report(
                    &below.path,
                    code,
                    Effect::Wider,
                    StoredObjectsEffect::Untouched,
                    what,
                );
            }
            (Some(_), None) => {
                let what = "entries with other names are dropped".to_owned();
                let code = ChangeCode::EntriesRemoved;
                return self.report(
                    &at.path,
                    code,
                    Effect::Narrower,
                    StoredObjectsEffect::Dropped,
                    what,
                );
            }
            (None, None) => {}
        }
        self.compare_unknown_fields(old, new, at);
    }

    fn compare_unknown_fields(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        at: &Cursor,
    ) {
        match (preserves_unknown_fields(old), preserves_unknown_fields(new)) {
            (false, true) => {
                let what = "unknown fields are kept".to_owned();
                self.report(
                    &at.path,
                    ChangeCode::UnknownKept,
                    Effect::Wider,
                    StoredObjectsEffect::Untouched,
                    what,
                );
            }
            (true, false) => {
                let what = "unknown fields are dropped".to_owned();
                let code = ChangeCode::UnknownDropped;
                self.report(
                    &at.path,
                    code,
                    Effect::Narrower,
                    StoredObjectsEffect::Dropped,
                    what,
                );
            }
            _ => {}
        }
    }

    fn compare_items(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let mut below = at.child(at.path.items(), new);
        // Only the items of a keyed list are correlated with the stored ones for ratcheting.
        if new.x_kubernetes_list_type.as_deref() != Some("map") {
            below.list = below.list.or_else(|| Some(at.path.clone()));
        }
        match (items(old), items(new)) {
            (Some(before), Some(after)) => self.compare_node(before, after, &below),
            (None, Some(_)) => {
                let what = "items have a schema now".to_owned();
                self.report(
                    &below.path,
                    ChangeCode::FieldTyped,
                    Effect::Narrower,
                    below.stored_until(),
                    what,
                );
            }
            (Some(_), None) => {
                let what = "items no longer have a schema".to_owned();
                let code = ChangeCode::FieldUntyped;
                self.report(
                    &below.path,
                    code,
                    Effect::Wider,
                    StoredObjectsEffect::Untouched,
                    what,
                );
            }
            (None, None) => {}
        }
    }
}

fn is_required(schema: &JSONSchemaProps, name: &str) -> bool {
    schema.required.iter().flatten().any(|it| it == name)
}

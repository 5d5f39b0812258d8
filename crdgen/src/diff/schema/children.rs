//! The fields, entries and items of a place.

use super::{At, Walk, entries, items, keeps_unknown, property};
use crate::diff::{Code, Effect, Stored};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use lockkeeper_policies::structure::Structure;
use serde_json::json;

/// Whether an object could have this field.
pub(super) fn may_hold(schema: &JSONSchemaProps, name: &str) -> bool {
    property(schema, name).is_some() || entries(schema).is_some() || keeps_unknown(schema)
}

/// Whether it takes any value, and keeps all of it.
fn takes_all(schema: &JSONSchemaProps) -> bool {
    let rest = JSONSchemaProps {
        description: None,
        title: None,
        example: None,
        external_docs: None,
        nullable: None,
        x_kubernetes_preserve_unknown_fields: None,
        ..schema.clone()
    };
    keeps_unknown(schema) && rest == JSONSchemaProps::default() && schema.nullable == Some(true)
}

/// Whether the default of a field is still valid when the defaults below it are filled in. The API server looks at each
/// by itself.
fn fills_in_well(field: &JSONSchemaProps) -> bool {
    let around = json!({"type": "object", "properties": {"field": field}});
    Structure::new(&around).is_ok_and(|structure| {
        let mut object = json!({});
        structure.fill(&mut object);
        structure.check(&object, None).is_empty()
    })
}

impl Walk<'_> {
    pub(super) fn children(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        for name in old.properties.iter().flat_map(|it| it.keys()) {
            let (Some(before), path) = (property(old, name), at.path.field(name)) else {
                continue;
            };
            let below = at.below(path, new);
            match property(new, name) {
                Some(after) => {
                    self.place(before, after, &below);
                    self.default(before, after, is_required(old, name), &below);
                }
                None => self.gone(before, new, &below),
            }
        }
        for (name, after) in new.properties.iter().flatten() {
            if property(old, name).is_none() {
                let below = at.below(at.path.field(name), new);
                self.come(old, new, name, after, &below);
            }
        }
        self.entries(old, new, at);
        self.items(old, new, at);
    }

    /// A field that has no schema of its own any more.
    fn gone(&mut self, before: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        if let Some(after) = entries(new) {
            self.place(before, after, at);
        } else if keeps_unknown(new) {
            let what = "it has no schema any more".to_owned();
            self.report(
                &at.path,
                Code::FieldUntyped,
                Effect::Wider,
                Stored::Untouched,
                what,
            );
        } else {
            let what = "the field is gone".to_owned();
            let code = Code::FieldRemoved;
            return self.report(&at.path, code, Effect::Narrower, Stored::Dropped, what);
        }
        if before.default.is_some() {
            let what = "its default is gone".to_owned();
            let code = Code::DefaultRemoved;
            self.report(&at.path, code, Effect::Same, Stored::Untouched, what);
        }
    }

    /// A field that had no schema of its own.
    fn come(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        name: &str,
        after: &JSONSchemaProps,
        at: &At,
    ) {
        if let Some(before) = entries(old) {
            self.place(before, after, at);
        } else if keeps_unknown(old) && !takes_all(after) {
            let what = "it had no schema, and has one".to_owned();
            self.report(
                &at.path,
                Code::FieldTyped,
                Effect::Narrower,
                at.until(),
                what,
            );
        } else if !is_required(new, name) || after.default.is_some() {
            let what = "the field is new".to_owned();
            self.report(
                &at.path,
                Code::FieldAdded,
                Effect::Wider,
                Stored::Untouched,
                what,
            );
        }
        let Some(default) = &after.default else {
            return;
        };
        let default = &default.0;
        if may_hold(old, name) {
            let what = format!("the default is {default}, there was none");
            let code = Code::DefaultAdded;
            self.report(&at.path, code, Effect::Same, Stored::Untouched, what);
        } else if at.is_held || new.max_properties.is_some() || !fills_in_well(after) {
            let what = format!("{default} is filled in");
            let code = Code::DefaultUnderBound;
            self.report(&at.path, code, Effect::Unclear, Stored::Untouched, what);
        }
    }

    fn default(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        was_required: bool,
        at: &At,
    ) {
        let (code, what) = match (&old.default, &new.default) {
            (None, Some(after)) => {
                let code = if was_required {
                    Code::DefaultOfRequiredAdded
                } else {
                    Code::DefaultAdded
                };
                (code, format!("the default is {}, there was none", after.0))
            }
            (Some(before), None) => {
                let what = format!("the default was {}, there is none", before.0);
                (Code::DefaultRemoved, what)
            }
            (Some(before), Some(after)) if before != after => {
                let what = format!("the default is {}, it was {}", after.0, before.0);
                (Code::DefaultChanged, what)
            }
            _ => return,
        };
        self.report(&at.path, code, Effect::Same, Stored::Untouched, what);
    }

    fn entries(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        let below = at.below(at.path.entries(), new);
        match (entries(old), entries(new)) {
            (Some(before), Some(after)) => return self.place(before, after, &below),
            (None, Some(_)) if keeps_unknown(old) => {
                let what = "entries had no schema, and have one".to_owned();
                return self.report(
                    &below.path,
                    Code::FieldTyped,
                    Effect::Narrower,
                    at.until(),
                    what,
                );
            }
            (None, Some(_)) => {
                let what = "entries of any name are kept".to_owned();
                let code = Code::EntriesAllowed;
                return self.report(&at.path, code, Effect::Wider, Stored::Untouched, what);
            }
            (Some(_), None) if keeps_unknown(new) => {
                let what = "entries have no schema any more".to_owned();
                let code = Code::FieldUntyped;
                return self.report(&below.path, code, Effect::Wider, Stored::Untouched, what);
            }
            (Some(_), None) => {
                let what = "entries of other names are dropped".to_owned();
                let code = Code::EntriesRemoved;
                return self.report(&at.path, code, Effect::Narrower, Stored::Dropped, what);
            }
            (None, None) => {}
        }
        match (keeps_unknown(old), keeps_unknown(new)) {
            (false, true) => {
                let what = "unknown fields are kept".to_owned();
                self.report(
                    &at.path,
                    Code::UnknownKept,
                    Effect::Wider,
                    Stored::Untouched,
                    what,
                );
            }
            (true, false) => {
                let what = "unknown fields are dropped".to_owned();
                let code = Code::UnknownDropped;
                self.report(&at.path, code, Effect::Narrower, Stored::Dropped, what);
            }
            _ => {}
        }
    }

    fn items(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &At) {
        let mut below = at.below(at.path.items(), new);
        if new.x_kubernetes_list_type.as_deref() != Some("map") {
            below.list = below.list.or_else(|| Some(at.path.clone()));
        }
        match (items(old), items(new)) {
            (Some(before), Some(after)) => self.place(before, after, &below),
            (None, Some(_)) => {
                let what = "items had no schema, and have one".to_owned();
                self.report(
                    &below.path,
                    Code::FieldTyped,
                    Effect::Narrower,
                    below.until(),
                    what,
                );
            }
            (Some(_), None) => {
                let what = "items have no schema any more".to_owned();
                let code = Code::FieldUntyped;
                self.report(&below.path, code, Effect::Wider, Stored::Untouched, what);
            }
            (None, None) => {}
        }
    }
}

fn is_required(schema: &JSONSchemaProps, name: &str) -> bool {
    schema.required.iter().flatten().any(|it| it == name)
}

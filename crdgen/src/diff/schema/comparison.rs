//! Compares two schemas, node by node.

use super::accepts::{accepts_field, accepts_former_enum, format_effect};
use super::cursor::{Cursor, is_embedded, property};
use crate::diff::bounds::bound_changes;
use crate::diff::cel_rules::{self, RuleChange};
use crate::diff::rule_folding::accepts_former_values;
use crate::diff::{
    Change, ChangeClass, ChangeCode, ChangeLocation, Effect, SchemaPath, StoredObjectsEffect,
    junctors,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, JSONSchemaProps};

/// The changes from one schema of a version to another.
#[must_use]
pub fn compare(
    definition: &str,
    version: &str,
    old: &JSONSchemaProps,
    new: &JSONSchemaProps,
) -> Vec<Change> {
    let mut walk = SchemaComparison {
        definition,
        version,
        changes: Vec::new(),
    };
    // A schema may list the fields of every object or not; neither is a change.
    let (old, new) = (with_meta(old, new), with_meta(new, old));
    walk.compare_node(&old, &new, &Cursor::default());
    walk.changes
}

/// The schema with the fields that every object has; copied from the other schema if this one lacks them.
fn with_meta(schema: &JSONSchemaProps, other: &JSONSchemaProps) -> JSONSchemaProps {
    let of_type = |name: &str| JSONSchemaProps {
        type_: Some(name.to_owned()),
        ..JSONSchemaProps::default()
    };
    let mut schema = schema.clone();
    let fields = schema.properties.get_or_insert_default();
    for (name, sort) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        let implied = || JSONSchemaProps {
            description: property(other, name).and_then(|it| it.description.clone()),
            ..of_type(sort)
        };
        fields.entry(name.to_owned()).or_insert_with(implied);
    }
    if let Some(metadata) = fields.get_mut("metadata") {
        let names = metadata.properties.get_or_insert_default();
        for name in ["name", "generateName"] {
            names
                .entry(name.to_owned())
                .or_insert_with(|| of_type("string"));
        }
    }
    schema
}

pub(super) struct SchemaComparison<'a> {
    definition: &'a str,
    version: &'a str,
    changes: Vec<Change>,
}

impl SchemaComparison<'_> {
    pub(super) fn report(
        &mut self,
        path: &SchemaPath,
        code: ChangeCode,
        effect: Effect,
        stored: StoredObjectsEffect,
        what: String,
    ) {
        let place = ChangeLocation::Schema(self.version.to_owned(), path.clone());
        self.changes.push(Change {
            effect,
            stored,
            ..Change::new(self.definition, place, code, what)
        });
    }

    pub(super) fn compare_node(
        &mut self,
        old: &JSONSchemaProps,
        new: &JSONSchemaProps,
        at: &Cursor,
    ) {
        self.compare_docs(old, new, at);
        // Validations of different types cannot be compared.
        if self.compare_type(old, new, at) {
            self.compare_values(old, new, at);
            self.compare_list_types(old, new, at);
            self.compare_required(old, new, at);
            self.compare_rules(old, new, at);
            if is_embedded(old) && is_embedded(new) {
                self.compare_children(&with_meta(old, new), &with_meta(new, old), at);
            } else {
                self.compare_children(old, new, at);
            }
        }
    }

    fn compare_docs(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let mut names = Vec::new();
        let pairs = [
            ("title", old.title != new.title),
            ("description", old.description != new.description),
            ("example", old.example != new.example),
            ("externalDocs", old.external_docs != new.external_docs),
        ];
        names.extend(
            pairs
                .into_iter()
                .filter(|(_, is_other)| *is_other)
                .map(|(name, _)| name),
        );
        if !names.is_empty() {
            let what = format!("the {} changes", names.join(" and the "));
            let code = ChangeCode::DescriptionChanged;
            self.report(
                &at.path,
                code,
                Effect::Same,
                StoredObjectsEffect::Untouched,
                what,
            );
        }
    }

    /// Compares the validations of a value.
    fn compare_values(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let before = self.changes.len();
        self.compare_constraints(old, new, at);
        if accepts_former_enum(old, new) {
            let changes = self.changes.get_mut(before..).unwrap_or_default();
            for change in changes
                .iter_mut()
                .filter(|it| it.class == ChangeClass::Breaking)
            {
                change.accept_former_values("the former enum has no value that violates it");
            }
        }
    }

    fn compare_constraints(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        for bound in bound_changes(old, new) {
            let is_wider = bound.effect == Effect::Wider;
            let code = if is_wider {
                ChangeCode::BoundLoosened
            } else {
                ChangeCode::BoundTightened
            };
            self.report_bound(at, code, bound.effect, bound.description);
        }
        self.compare_enum(old, new, at);
        self.compare_pattern(old, new, at);
        self.compare_format(old, new, at);
        for (name, effect) in junctors::junctor_changes(old, new) {
            let is_wider = effect == Effect::Wider;
            let code = if is_wider {
                ChangeCode::JunctorLoosened
            } else {
                ChangeCode::JunctorChanged
            };
            self.report_bound(at, code, effect, format!("{name} changes"));
        }
    }

    /// Reports a change of the accepted values.
    pub(super) fn report_bound(
        &mut self,
        at: &Cursor,
        code: ChangeCode,
        effect: Effect,
        what: String,
    ) {
        let stored = if effect == Effect::Wider {
            StoredObjectsEffect::Untouched
        } else {
            at.stored_until()
        };
        self.report(&at.path, code, effect, stored, what);
    }

    fn compare_enum(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let shown = |all: &[&JSON]| {
            let all: Vec<String> = all.iter().map(|it| it.0.to_string()).collect();
            all.join(", ")
        };
        let (before, after) = match (&old.enum_, &new.enum_) {
            (None, None) => return,
            (Some(_), None) => {
                let what = "any value is accepted, not only some".to_owned();
                return self.report_bound(at, ChangeCode::EnumWidened, Effect::Wider, what);
            }
            (None, Some(after)) => {
                let what = format!(
                    "only {} are accepted",
                    shown(&after.iter().collect::<Vec<_>>())
                );
                return self.report_bound(at, ChangeCode::EnumNarrowed, Effect::Narrower, what);
            }
            (Some(before), Some(after)) => (before, after),
        };
        let gone: Vec<&JSON> = before.iter().filter(|it| !after.contains(it)).collect();
        let come: Vec<&JSON> = after.iter().filter(|it| !before.contains(it)).collect();
        if !come.is_empty() {
            let what = format!("{} is accepted", shown(&come));
            self.report_bound(at, ChangeCode::EnumWidened, Effect::Wider, what);
        }
        if !gone.is_empty() {
            let what = format!("{} is no longer accepted", shown(&gone));
            self.report_bound(at, ChangeCode::EnumNarrowed, Effect::Narrower, what);
        }
    }

    fn compare_pattern(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        match (&old.pattern, &new.pattern) {
            (Some(before), None) => {
                let what = format!("the pattern {before:?} is removed");
                self.report_bound(at, ChangeCode::PatternRemoved, Effect::Wider, what);
            }
            (None, Some(after)) => {
                let what = format!("the pattern {after:?} is added");
                self.report_bound(at, ChangeCode::PatternChanged, Effect::Narrower, what);
            }
            (Some(before), Some(after)) if before != after => {
                let what = format!("the pattern is {after:?}, it was {before:?}");
                self.report_bound(at, ChangeCode::PatternChanged, Effect::Unclear, what);
            }
            _ => {}
        }
    }

    fn compare_format(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        if old.format == new.format {
            return;
        }
        let name = |it: &JSONSchemaProps| it.format.clone().unwrap_or_else(|| "none".to_owned());
        let what = format!("the format is {}, it was {}", name(new), name(old));
        match format_effect(old, new) {
            // The API server validates neither format.
            Effect::Same => {
                let code = ChangeCode::FormatLoosened;
                self.report(
                    &at.path,
                    code,
                    Effect::Same,
                    StoredObjectsEffect::Untouched,
                    what,
                );
            }
            Effect::Wider => self.report_bound(at, ChangeCode::FormatLoosened, Effect::Wider, what),
            effect => self.report_bound(at, ChangeCode::FormatChanged, effect, what),
        }
    }

    /// Compares list and map types.
    fn compare_list_types(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let list = |schema: &JSONSchemaProps| {
            let name = schema.x_kubernetes_list_type.as_deref().unwrap_or("atomic");
            match schema.x_kubernetes_list_map_keys.as_deref() {
                Some(keys) if !keys.is_empty() => format!("{name} by {}", keys.join(", ")),
                _ => name.to_owned(),
            }
        };
        let (before, after) = (list(old), list(new));
        if before != after {
            let what = format!("the list is {after}, it was {before}");
            let (effect, stored) = match (before.as_str(), after.as_str()) {
                (_, "atomic") => (Effect::Wider, StoredObjectsEffect::Untouched),
                ("atomic", _) => (Effect::Narrower, StoredObjectsEffect::Duplicates),
                _ => (Effect::Unclear, StoredObjectsEffect::Duplicates),
            };
            self.report(&at.path, ChangeCode::ListTypeChanged, effect, stored, what);
        }
        let map = |it: &JSONSchemaProps| it.x_kubernetes_map_type.clone();
        let map = |it| map(it).unwrap_or_else(|| "granular".to_owned());
        if map(old) != map(new) {
            let what = format!("the object is {}, it was {}", map(new), map(old));
            let code = ChangeCode::MapTypeChanged;
            self.report(
                &at.path,
                code,
                Effect::Same,
                StoredObjectsEffect::Untouched,
                what,
            );
        }
    }

    fn compare_required(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let is_in =
            |it: &JSONSchemaProps, name: &String| it.required.iter().flatten().any(|it| it == name);
        for name in new
            .required
            .iter()
            .flatten()
            .filter(|name| !is_in(old, name))
        {
            let path = at.path.field(name);
            let child = property(new, name);
            // The API server applies defaults before it validates required fields.
            if child.is_some_and(|it| it.default.is_some()) {
                let code = ChangeCode::RequiredWithDefaultAdded;
                let what = "it is required, and has a default".to_owned();
                self.report(
                    &path,
                    code,
                    Effect::Same,
                    StoredObjectsEffect::Untouched,
                    what,
                );
                continue;
            }
            let is_new = child.is_some() && !accepts_field(old, name);
            let code = if is_new {
                ChangeCode::RequiredFieldAdded
            } else {
                ChangeCode::RequiredAdded
            };
            let what = if is_new {
                "the field is added and required"
            } else {
                "it is required"
            };
            self.report(
                &path,
                code,
                Effect::Narrower,
                at.stored_until(),
                what.to_owned(),
            );
        }
        for name in old
            .required
            .iter()
            .flatten()
            .filter(|name| !is_in(new, name))
        {
            let what = "it may be omitted".to_owned();
            let code = ChangeCode::RequiredRemoved;
            self.report(
                &at.path.field(name),
                code,
                Effect::Wider,
                StoredObjectsEffect::Untouched,
                what,
            );
        }
    }

    fn compare_rules(&mut self, old: &JSONSchemaProps, new: &JSONSchemaProps, at: &Cursor) {
        let of = |it: &JSONSchemaProps| it.x_kubernetes_validations.clone().unwrap_or_default();
        for RuleChange { code, rule, what } in cel_rules::rule_changes(&of(old), &of(new)) {
            let (effect, stored) = match code {
                ChangeCode::TransitionRuleAdded => {
                    (Effect::Narrower, StoredObjectsEffect::EveryUpdate)
                }
                ChangeCode::RuleAdded | ChangeCode::RatchetingRuleAdded => {
                    (Effect::Narrower, at.stored_until())
                }
                ChangeCode::RuleRemoved => (Effect::Wider, StoredObjectsEffect::Untouched),
                _ => (Effect::Same, StoredObjectsEffect::Untouched),
            };
            self.report(&at.path, code, effect, stored, what);
            if code == ChangeCode::RuleAdded
                && accepts_former_values(&rule, old, new)
                && let Some(change) = self.changes.last_mut()
            {
                change
                    .accept_former_values("it concerns only fields or values that are new as well");
            }
        }
    }
}

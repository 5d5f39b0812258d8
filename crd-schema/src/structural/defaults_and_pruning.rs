//! Defaulting and pruning, which the API server does before validation.

use super::check::display_value;
use super::node::{DEPTH_MAX, Node};
use crate::finding::{ErrorKind, Finding};
use crate::rule_ids::UNKNOWN_FIELD;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::borrow::Cow;

/// The most unknown fields that are reported.
const UNKNOWN_MAX: usize = 100;

/// The least similarity of a name that is suggested for an unknown one.
const SIMILARITY_MIN: f64 = 0.8;

/// The fields of every object, which schemas need not specify.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Applies defaults from the root down.
pub(super) fn apply_defaults(node: &Node, value: &mut Value) {
    apply_defaults_at(node, value, 0);
}

fn apply_defaults_at(node: &Node, value: &mut Value, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    let below = depth.saturating_add(1);
    match value {
        Value::Object(fields) => {
            // A null in a field that is not nullable counts as missing, so the default replaces it.
            fields.retain(|name, value| {
                let child = node.properties.get(name).or(node.additional.as_deref());
                !value.is_null() || child.is_none_or(|it| it.is_nullable)
            });
            for (name, child) in &node.properties {
                if let Some(default) = &child.default
                    && !fields.contains_key(name)
                {
                    fields.insert(name.clone(), default.clone());
                }
                // Descend into an inserted default as well: its fields may have defaults.
                if let Some(value) = fields.get_mut(name) {
                    apply_defaults_at(child, value, below);
                }
            }
            if let Some(additional) = &node.additional {
                let others = fields.iter_mut();
                for (_, value) in others.filter(|(name, _)| !node.properties.contains_key(*name)) {
                    apply_defaults_at(additional, value, below);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = &node.items {
                for item in items {
                    apply_defaults_at(child, item, below);
                }
            }
        }
        _ => {}
    }
}

/// Removes and reports unknown fields.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<Finding> {
    let mut pruned = Pruner::default();
    pruned.node(root, object, true);
    pruned.removed
}

/// The result of looking up a field in a schema.
pub(super) enum FieldLookup<'a> {
    Known(&'a Node),
    /// Not specified, but preserved.
    Preserved,
    /// Not specified: pruned.
    Unknown,
}

/// Looks up a field. `is_object` is set for the root and embedded objects.
pub(super) fn lookup_field<'a>(node: &'a Node, name: &str, is_object: bool) -> FieldLookup<'a> {
    match node.properties.get(name).or(node.additional.as_deref()) {
        Some(child) => FieldLookup::Known(child),
        None if node.preserves_unknown || (is_object && OBJECT_FIELDS.contains(&name)) => {
            FieldLookup::Preserved
        }
        None => FieldLookup::Unknown,
    }
}

/// The similarity of the specified names to another name, from 0 to 1.
pub(super) fn similarity_scores<'a>(
    node: &'a Node,
    name: &str,
) -> impl Iterator<Item = (f64, &'a str)> {
    let name = name.to_lowercase();
    let known = node.properties.keys();
    known.map(move |it| (strsim::jaro_winkler(&name, &it.to_lowercase()), it.as_str()))
}

/// The specified name most similar to another name.
pub(super) fn most_similar<'a>(node: &'a Node, name: &str) -> Option<(f64, &'a str)> {
    similarity_scores(node, name).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// A step of a path. Owned, because the object changes during the walk.
enum OwnedPathStep {
    Field(String),
    Index(usize),
}

#[derive(Default)]
struct Pruner {
    path: Vec<OwnedPathStep>,
    removed: Vec<Finding>,
}

impl Pruner {
    fn node(&mut self, node: &Node, value: &mut Value, is_object: bool) {
        if self.path.len() > DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(fields) => {
                let is_object = is_object || node.is_embedded;
                fields.retain(|name, value| {
                    let is_known =
                        !matches!(lookup_field(node, name, is_object), FieldLookup::Unknown);
                    if !is_known {
                        self.report(node, name, value);
                    }
                    is_known
                });
                for (name, value) in fields.iter_mut() {
                    // Metadata of objects is not pruned by the schema.
                    let is_of_object = is_object && name == "metadata";
                    let child = node.properties.get(name).or(node.additional.as_deref());
                    if let Some(child) = child.filter(|_| !is_of_object) {
                        self.path.push(OwnedPathStep::Field(name.clone()));
                        self.node(child, value, false);
                        self.path.pop();
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = &node.items else {
                    return;
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push(OwnedPathStep::Index(index));
                    self.node(child, item, false);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, node: &Node, name: &str, value: &Value) {
        if self.removed.len() >= UNKNOWN_MAX {
            return;
        }
        let path = self
            .path
            .iter()
            .fold(FieldPath::default(), |path, step| match step {
                OwnedPathStep::Field(name) => path.named(name.as_str()),
                OwnedPathStep::Index(index) => path.index(*index),
            });
        let detail = match most_similar(node, name) {
            Some((score, best)) if score >= SIMILARITY_MIN => {
                format!("unknown field, which would be dropped; did you mean {best}?")
            }
            _ => "unknown field, which would be dropped; remove it".to_owned(),
        };
        self.removed.push(Finding {
            rule: Cow::Borrowed(UNKNOWN_FIELD),
            field: path.named(name),
            kind: ErrorKind::Invalid,
            value: Some(display_value(value)),
            detail: detail.into(),
        });
    }
}

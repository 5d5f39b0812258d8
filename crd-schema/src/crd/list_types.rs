//! Validates that the items of sets and the keys of map lists are unique.

use super::node::{ListType, Node};
use super::values::quoted_json;
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding};
use crate::rule_ids::SCHEMA_VIOLATION;
use crate::structural::path::{PathStack, PathStep};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Findings for duplicate items.
pub(super) fn validate(root: &Node, object: &Value) -> Vec<Finding> {
    let mut out = Vec::new();
    visit(root, object, &mut PathStack::default(), &mut out);
    out
}

fn visit<'a>(schema: &'a Node, value: &'a Value, way: &mut PathStack<'a>, out: &mut Vec<Finding>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(additional) = schema.additional.as_deref() {
                    way.with_step(PathStep::Entry(name), |way| {
                        visit(additional, value, way, out);
                    });
                }
                if let Some(property) = schema.properties.get(name) {
                    way.with_step(PathStep::Field(name), |way| {
                        visit(property, value, way, out);
                    });
                }
            }
        }
        Value::Array(items) => {
            list(schema, items, way, out);
            if let Some(schema) = schema.items.as_deref() {
                for (position, item) in items.iter().enumerate() {
                    way.with_step(PathStep::Index(position), |way| {
                        visit(schema, item, way, out);
                    });
                }
            }
        }
        _ => {}
    }
}

fn list<'a>(schema: &'a Node, items: &'a [Value], way: &mut PathStack<'a>, out: &mut Vec<Finding>) {
    let mut report = |position: usize, kind: ErrorKind, value: &Value, detail: &'static str| {
        if out.len() < FINDINGS_PER_RULE_MAX {
            out.push(Finding {
                rule: Cow::Borrowed(SCHEMA_VIOLATION),
                field: way.keyed_path().index(position),
                kind,
                value: Some(quoted_json(value)),
                detail: Cow::Borrowed(detail),
            });
        }
    };
    let keys = match &schema.list {
        ListType::Atomic => return,
        ListType::Set => None,
        ListType::Map(keys) => Some(keys),
    };
    let is_item = |it: &Value| keys.is_none() || it.is_object() || it.is_null();
    if let Some((position, item)) = items.iter().enumerate().find(|it| !is_item(it.1)) {
        let detail = "must be an object for an array of list-type map";
        report(position, ErrorKind::Invalid, item, detail);
        return;
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (position, item) in items.iter().enumerate() {
        let key = match keys {
            Some(keys) => key_of(keys, item),
            None => item.clone(),
        };
        let count = counts.entry(key.to_string()).or_default();
        *count = count.saturating_add(1);
        // Only the second appearance is reported.
        if *count == 2 {
            report(position, ErrorKind::Duplicate, &key, "");
        }
    }
}

/// The key fields of an item that are set.
fn key_of(keys: &[String], item: &Value) -> Value {
    let entry = |key: &String| Some((key.clone(), item.get(key)?.clone()));
    Value::Object(keys.iter().filter_map(entry).collect::<Map<_, _>>())
}

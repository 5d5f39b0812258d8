//! Adds the defaults of absent fields.

use super::edits::{Edit, apply_if_equivalent, schema_violations};
use super::yaml_insert;
use crate::document::Document;
use crate::kinds::KindRegistry;
use crate::source::ParsedSource;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::rule::Context;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Fields that are never written into a manifest. Controllers change them after creation, and each `kubectl apply` would
/// reset them.
const NEVER_DEFAULTED: [&str; 3] = ["/metadata", "/status", "/spec/active"];

/// If the edits of all objects together fail, at most this many objects are tried one by one.
const SINGLE_ATTEMPTS_MAX: usize = 64;

/// The absent fields of one mapping.
struct MissingFields {
    parent: FieldPath,
    depth: usize,
    fields: Map<String, Value>,
}

/// The absent fields of an object.
#[derive(Default)]
struct Missing {
    mappings: Vec<MissingFields>,
    /// Fields that are null and have a default.
    empty_fields: Vec<FieldPath>,
}

/// The edits that add the defaults of one object.
#[derive(Default)]
struct DefaultsPlan {
    edits: Vec<Edit>,
    fields: Vec<FieldPath>,
    /// The object with the added fields.
    expected: Value,
    skipped_fields: Vec<FieldPath>,
}

/// The text with the defaults of all whole objects, their number, and the fields that cannot be added.
pub fn add_defaults(
    kinds: &KindRegistry,
    context: &Context<'_>,
    source: ParsedSource,
) -> (String, usize, Vec<FieldPath>) {
    // Decided once for the text: a JSON list may have many objects.
    let is_json = OnceCell::new();
    let mut plans: Vec<DefaultsPlan> = Vec::with_capacity(source.documents.len());
    for document in &source.documents {
        let missing = if document.is_patch {
            Missing::default()
        } else {
            find_missing(kinds, context, &document.value)
        };
        plans.push(if missing.mappings.is_empty() {
            DefaultsPlan {
                expected: document.value.clone(),
                skipped_fields: missing.empty_fields,
                ..DefaultsPlan::default()
            }
        } else {
            plan_document(&source, &is_json, document, missing)
        });
    }
    let mut skipped: Vec<FieldPath> = Vec::new();
    for plan in &mut plans {
        skipped.append(&mut plan.skipped_fields);
    }
    let all: BTreeSet<usize> = (0..plans.len()).collect();
    if plans.iter().all(|it| it.edits.is_empty()) {
        return (source.text, 0, skipped);
    }
    if let Some(after) = apply_plans(&source, &plans, &all) {
        let count = plans.iter().map(|it| it.fields.len()).sum();
        return (after.text, count, skipped);
    }
    // Some object cannot be edited safely: find it, and edit the others.
    let with_edits = plans
        .iter()
        .enumerate()
        .filter(|(_, plan)| !plan.edits.is_empty());
    let mut applicable = BTreeSet::new();
    for (at, _) in with_edits.take(SINGLE_ATTEMPTS_MAX) {
        applicable.insert(at);
        if apply_plans(&source, &plans, &applicable).is_none() {
            applicable.remove(&at);
        }
    }
    let mut count = 0_usize;
    for (at, plan) in plans.iter().enumerate() {
        if applicable.contains(&at) {
            count = count.saturating_add(plan.fields.len());
        } else {
            skipped.extend(plan.fields.iter().cloned());
        }
    }
    let after = apply_plans(&source, &plans, &applicable);
    (after.map_or(source.text, |it| it.text), count, skipped)
}

/// The source after these plans, if it parses to the intended objects.
fn apply_plans(
    source: &ParsedSource,
    plans: &[DefaultsPlan],
    chosen: &BTreeSet<usize>,
) -> Option<ParsedSource> {
    let mut edits = Vec::new();
    let mut intended = Vec::with_capacity(plans.len());
    for (at, (plan, document)) in plans.iter().zip(&source.documents).enumerate() {
        if chosen.contains(&at) {
            edits.extend(plan.edits.iter().cloned());
            intended.push(plan.expected.clone());
        } else {
            intended.push(document.value.clone());
        }
    }
    apply_if_equivalent(source, edits, &intended)
}

fn plan_document(
    source: &ParsedSource,
    is_json: &OnceCell<bool>,
    document: &Document,
    mut missing: Missing,
) -> DefaultsPlan {
    let mut plan = DefaultsPlan {
        expected: document.value.clone(),
        skipped_fields: missing.empty_fields,
        ..DefaultsPlan::default()
    };
    let is_json = *is_json.get_or_init(|| serde_json::from_str::<IgnoredAny>(&source.text).is_ok());
    // If two mappings end at the same byte, the edit of the deeper one comes first.
    missing.mappings.sort_by_key(|it| Reverse(it.depth));
    for mapping in missing.mappings {
        let names = mapping.fields.keys();
        let fields = names.map(|name| mapping.parent.clone().named(name.as_str()));
        let pointer = mapping.parent.pointer();
        let target = source
            .tree()
            .mapping(document.number, &format!("{}{pointer}", document.pointer));
        let edits = target.and_then(|target| {
            yaml_insert::insertion_edits(&source.text, &target, &mapping.fields, is_json)
        });
        match (edits, plan.expected.pointer_mut(&pointer)) {
            (Some(edits), Some(Value::Object(known))) => {
                plan.edits.extend(edits);
                plan.fields.extend(fields);
                known.extend(mapping.fields);
            }
            _ => plan.skipped_fields.extend(fields),
        }
    }
    plan
}

fn find_missing(kinds: &KindRegistry, context: &Context<'_>, value: &Value) -> Missing {
    let mut missing = Missing::default();
    let structure = kinds.structure(value);
    // A default beside a misspelt field would hide the typo, so invalid objects are skipped.
    if structure.is_none_or(|it| schema_violations(it, value.clone()).is_empty()) {
        let after = kinds.with_defaults(value, context);
        collect_missing(value, &after, FieldPath::default(), 0, &mut missing);
    }
    missing
}

fn collect_missing(before: &Value, after: &Value, at: FieldPath, depth: usize, out: &mut Missing) {
    let below = depth.saturating_add(1);
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut fields = Map::new();
            for (name, after) in after {
                let field = at.clone().named(name.as_str());
                // No path in the list is longer, and building a pointer costs an allocation.
                if depth < 2 && NEVER_DEFAULTED.contains(&&*field.pointer()) {
                    continue;
                }
                match before.get(name) {
                    None => {
                        fields.insert(name.clone(), after.clone());
                    }
                    // The key exists, so that an insertion would duplicate it.
                    Some(Value::Null) if !after.is_null() => out.empty_fields.push(field),
                    Some(before) => collect_missing(before, after, field, below, out),
                }
            }
            if !fields.is_empty() {
                out.mappings.push(MissingFields {
                    parent: at,
                    depth,
                    fields,
                });
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                collect_missing(before, after, at.clone().index(index), below, out);
            }
        }
        _ => {}
    }
}

//! What an object does not say, and what that means.

use super::super::source::{Document, ParsedSource};
use super::super::spans::YamlTree;
use super::{Edit, Fixer, apply_if_equivalent, schema_violations, yaml_insert};
use lockkeeper_api::field_path::FieldPath;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What is never written into a file: what belongs to a controller after an object was made would be set back each time
/// the file is applied.
const NEVER_DEFAULTED: [&str; 3] = ["/metadata", "/status", "/spec/active"];

/// The most objects of a file that are tried one by one if all together do not read as they are meant.
const SINGLE_ATTEMPTS_MAX: usize = 64;

/// What is missing in a mapping.
struct MissingFields {
    parent: FieldPath,
    depth: usize,
    fields: Map<String, Value>,
}

/// What is to be done with one object.
#[derive(Default)]
struct DefaultsPlan {
    edits: Vec<Edit>,
    fields: Vec<FieldPath>,
    /// The object with them.
    expected: Value,
    skipped_fields: Vec<FieldPath>,
}

/// The text with the defaults of all objects filled in, how many, and those that cannot be. An object whose shape is
/// wrong is left alone: a default beside a misspelt field would hide what was meant.
pub(super) fn add_defaults(
    mender: &Fixer,
    source: ParsedSource,
) -> (String, usize, Vec<FieldPath>) {
    let mut tree = None;
    let mut plans: Vec<DefaultsPlan> = Vec::with_capacity(source.documents.len());
    for document in &source.documents {
        let missing = find_missing(mender, &document.value);
        plans.push(if missing.0.is_empty() {
            DefaultsPlan {
                expected: document.value.clone(),
                skipped_fields: missing.1,
                ..DefaultsPlan::default()
            }
        } else {
            let text = tree.get_or_insert_with(|| ParsedText::new(&source.text));
            plan_document(text, document, missing)
        });
    }
    let mut left: Vec<FieldPath> = Vec::new();
    for plan in &mut plans {
        left.append(&mut plan.skipped_fields);
    }
    let all: BTreeSet<usize> = (0..plans.len()).collect();
    if plans.iter().all(|it| it.edits.is_empty()) {
        return (source.text, 0, left);
    }
    if let Some(after) = apply_plans(&source, &plans, &all) {
        let count = plans.iter().map(|it| it.fields.len()).sum();
        return (after.text, count, left);
    }
    let asked = plans.iter().enumerate();
    let asked = asked.filter(|(_, plan)| !plan.edits.is_empty());
    let mut good = BTreeSet::new();
    for (at, _) in asked.take(SINGLE_ATTEMPTS_MAX) {
        good.insert(at);
        if apply_plans(&source, &plans, &good).is_none() {
            good.remove(&at);
        }
    }
    let mut count = 0_usize;
    for (at, plan) in plans.iter().enumerate() {
        if good.contains(&at) {
            count = count.saturating_add(plan.fields.len());
        } else {
            left.extend(plan.fields.iter().cloned());
        }
    }
    let after = apply_plans(&source, &plans, &good);
    (after.map_or(source.text, |it| it.text), count, left)
}

/// The source with these plans carried out, if it reads as it is meant.
fn apply_plans(
    source: &ParsedSource,
    plans: &[DefaultsPlan],
    chosen: &BTreeSet<usize>,
) -> Option<ParsedSource> {
    let mut edits = Vec::new();
    let mut meant = Vec::with_capacity(plans.len());
    for (at, (plan, document)) in plans.iter().zip(&source.documents).enumerate() {
        if chosen.contains(&at) {
            edits.extend(plan.edits.iter().cloned());
            meant.push(plan.expected.clone());
        } else {
            meant.push(document.value.clone());
        }
    }
    apply_if_equivalent(source, edits, &meant)
}

/// A text, and what has to be known of it to add to it.
struct ParsedText<'t> {
    text: &'t str,
    tree: YamlTree,
    is_json: bool,
}

impl<'t> ParsedText<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            tree: YamlTree::new(text),
            is_json: serde_json::from_str::<IgnoredAny>(text).is_ok(),
        }
    }
}

fn plan_document(
    written: &ParsedText<'_>,
    document: &Document,
    (mut missing, left): (Vec<MissingFields>, Vec<FieldPath>),
) -> DefaultsPlan {
    let mut plan = DefaultsPlan {
        expected: document.value.clone(),
        skipped_fields: left,
        ..DefaultsPlan::default()
    };
    let ParsedText {
        text,
        tree,
        is_json,
    } = written;
    // Where both end at the same place, what is deeper comes first.
    missing.sort_by_key(|it| Reverse(it.depth));
    for it in missing {
        let fields = it.fields.keys();
        let fields = fields.map(|name| it.parent.clone().named(name.as_str()));
        let pointer = it.parent.pointer();
        let mapping = tree.mapping(document.number, &format!("{}{pointer}", document.pointer));
        let edits = mapping
            .and_then(|mapping| yaml_insert::insertion_edits(text, &mapping, &it.fields, *is_json));
        match (edits, plan.expected.pointer_mut(&pointer)) {
            (Some(edits), Some(Value::Object(known))) => {
                plan.edits.extend(edits);
                plan.fields.extend(fields);
                known.extend(it.fields);
            }
            _ => plan.skipped_fields.extend(fields),
        }
    }
    plan
}

/// What an object lacks, by the mapping that it would stand in, and what stands there empty.
fn find_missing(mender: &Fixer, value: &Value) -> (Vec<MissingFields>, Vec<FieldPath>) {
    let mut found = (Vec::new(), Vec::new());
    let structure = mender.kinds.structure(value);
    if structure.is_none_or(|it| schema_violations(it, value.clone()).is_empty()) {
        let after = mender.kinds.with_defaults(value, &mender.context());
        collect_missing(value, &after, FieldPath::default(), 0, &mut found);
    }
    found
}

fn collect_missing(
    before: &Value,
    after: &Value,
    at: FieldPath,
    depth: usize,
    out: &mut (Vec<MissingFields>, Vec<FieldPath>),
) {
    let below = depth.saturating_add(1);
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut fields = Map::new();
            for (name, after) in after {
                let field = at.clone().named(name.as_str());
                if depth < 2 && NEVER_DEFAULTED.contains(&&*field.pointer()) {
                    continue;
                }
                match before.get(name) {
                    None => {
                        fields.insert(name.clone(), after.clone());
                    }
                    Some(Value::Null) if !after.is_null() => out.1.push(field),
                    Some(before) => collect_missing(before, after, field, below, out),
                }
            }
            if !fields.is_empty() {
                out.0.push(MissingFields {
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

//! Defaults of a definition: pruned, and valid by their own schemas.

use super::collector::Collector;
use crate::crd::node::Node;
use crate::crd::{cel_rules, embedded, pruning, value_validation};
use crate::finding::Finding;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Validates the defaults of a schema.
pub(super) fn validate(root: &Node, path: &FieldPath, out: &mut Collector) {
    visit(root, &Place::Root, path, out);
}

/// The place of a schema.
enum Place<'a> {
    Root,
    Field,
    /// Below `apiVersion`, `kind` or `metadata` of a resource: the names from there. List items have none.
    Metadata(Vec<Option<&'a str>>),
}

fn visit(schema: &Node, place: &Place<'_>, path: &FieldPath, out: &mut Collector) {
    let is_root = matches!(place, Place::Root);
    if let Some(default) = &schema.default {
        let path = path.clone().field("default");
        match place {
            Place::Metadata(steps) if !schema.is_embedded => {
                if let Err(reason) = metadata(steps, default) {
                    out.invalid(path, format!("must result in valid metadata: {reason}"));
                } else {
                    values(schema, default, &path, out);
                }
            }
            _ => {
                let mut pruned = default.clone();
                pruning::prune_value(&mut pruned, schema, schema.is_embedded || is_root);
                if pruned != *default {
                    out.invalid(path.clone(), "must not have unknown fields");
                }
                resource(schema, default, is_root, &path, out);
            }
        }
    }
    let below = |step: Option<&'_ str>| match place {
        Place::Metadata(steps) if !schema.is_embedded => {
            let mut steps: Vec<Option<String>> =
                steps.iter().map(|it| it.map(str::to_owned)).collect();
            steps.push(step.map(str::to_owned));
            Some(steps)
        }
        _ => None,
    };
    let place_of = |steps: Option<&Vec<Option<String>>>| match steps {
        Some(_) => None,
        None => Some(Place::Field),
    };
    if let Some(items) = &schema.items {
        let steps = below(None);
        let place = place_of(steps.as_ref());
        let steps = steps.unwrap_or_default();
        let place =
            place.unwrap_or_else(|| Place::Metadata(steps.iter().map(Option::as_deref).collect()));
        visit(items, &place, &path.clone().field("items"), out);
    }
    let is_resource = schema.is_embedded || is_root;
    for (name, property) in &schema.properties {
        let path = path.clone().field("properties").key(name.as_str());
        let is_meta = matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        if is_resource && is_meta {
            visit(property, &Place::Metadata(vec![Some(name)]), &path, out);
            continue;
        }
        let steps = below(Some(name));
        let place = place_of(steps.as_ref());
        let steps = steps.unwrap_or_default();
        let place =
            place.unwrap_or_else(|| Place::Metadata(steps.iter().map(Option::as_deref).collect()));
        visit(property, &place, &path, out);
    }
}

/// Whether a default below `apiVersion`, `kind` or `metadata` can be decoded there, and makes valid metadata.
fn metadata(steps: &[Option<&str>], default: &Value) -> Result<(), String> {
    let object = steps
        .iter()
        .rev()
        .fold(default.clone(), |below, step| match step {
            Some(name) => serde_json::json!({ *name: below }),
            None => serde_json::json!([below]),
        });
    let Value::Object(mut resource) = object else {
        return Err("must be an object".to_owned());
    };
    for (key, value) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
        let value = resource.entry(key).or_insert_with(|| value.into());
        if !value.is_string() {
            return Err("must be a string".to_owned());
        }
    }
    let findings = embedded::validate_resource(&resource);
    findings
        .first()
        .map_or(Ok(()), |it| Err(it.detail.to_string()))
}

fn resource(schema: &Node, default: &Value, is_root: bool, path: &FieldPath, out: &mut Collector) {
    let mut coerced = default.clone();
    if let Err(reason) = embedded::coerce(&mut coerced, Some(schema), path, &mut Vec::new()) {
        out.invalid(path.clone(), reason);
        return;
    }
    let mut findings = embedded::validate(schema, default);
    if let Some(fields) = default.as_object().filter(|_| is_root) {
        findings.extend(embedded::validate_resource(fields));
    }
    if findings.is_empty() {
        values(schema, default, path, out);
    } else {
        extend(findings, path, out);
    }
}

fn values(schema: &Node, default: &Value, path: &FieldPath, out: &mut Collector) {
    let findings = value_validation::validate_default(schema, default);
    if !findings.is_empty() {
        extend(findings, path, out);
        return;
    }
    let mut findings = cel_rules::validate_unchanged(schema, default);
    if findings.is_empty() {
        findings = cel_rules::validate(schema, default);
    }
    for finding in &mut findings {
        finding.field = path.clone().join(&finding.field);
    }
    out.findings.extend(findings);
}

/// Adds findings about a default, with paths below it. The API server appends their text: an item is `default.[0]`.
fn extend(findings: Vec<Finding>, path: &FieldPath, out: &mut Collector) {
    for mut finding in findings {
        let is_root = finding.field == FieldPath::default();
        finding.field = if is_root {
            path.clone()
        } else {
            path.clone().named(finding.field.to_string())
        };
        out.findings.push(finding);
    }
}

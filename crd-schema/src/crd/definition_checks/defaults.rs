//! Defaults of a definition: pruned, and valid by their own schemas.

use super::collector::Collector;
use crate::crd::node::Node;
use crate::crd::{cel_rules, embedded, pruning, value_validation};
use crate::finding::Finding;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Validates the defaults of a schema.
pub(super) fn validate(root: &Node, path: &FieldPath, out: &mut Collector) {
    visit(root, false, true, path, out);
}

fn visit(
    schema: &Node,
    is_inside_metadata: bool,
    is_root: bool,
    path: &FieldPath,
    out: &mut Collector,
) {
    let is_inside_metadata = is_inside_metadata && !schema.is_embedded;
    if let Some(default) = &schema.default {
        let path = path.clone().field("default");
        if !is_inside_metadata {
            let mut pruned = default.clone();
            pruning::prune_value(&mut pruned, schema, schema.is_embedded || is_root);
            if pruned != *default {
                out.invalid(path.clone(), "must not have unknown fields");
            }
        }
        value(schema, default, &path, out);
    }
    if let Some(items) = &schema.items {
        visit(
            items,
            is_inside_metadata,
            false,
            &path.clone().field("items"),
            out,
        );
    }
    let is_resource = schema.is_embedded || is_root;
    for (name, property) in &schema.properties {
        let is_meta = is_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        let path = path.clone().field("properties").key(name.as_str());
        visit(property, is_inside_metadata || is_meta, false, &path, out);
    }
}

fn value(schema: &Node, default: &Value, path: &FieldPath, out: &mut Collector) {
    let mut coerced = default.clone();
    if let Err(reason) = embedded::coerce(&mut coerced, Some(schema), path, &mut Vec::new()) {
        out.invalid(path.clone(), reason);
        return;
    }
    let metadata = embedded::validate(schema, default);
    if !metadata.is_empty() {
        extend(metadata, path, out);
        return;
    }
    let findings = value_validation::validate(schema, default);
    if !findings.is_empty() {
        extend(findings, path, out);
        return;
    }
    let findings = cel_rules::validate_unchanged(schema, default);
    if findings.is_empty() {
        extend(cel_rules::validate(schema, default), path, out);
    } else {
        extend(findings, path, out);
    }
}

/// Adds findings about a default, with paths below it.
fn extend(findings: Vec<Finding>, path: &FieldPath, out: &mut Collector) {
    for mut finding in findings {
        let below = finding.field.to_string();
        let is_root = finding.field == FieldPath::default();
        finding.field = if is_root {
            path.clone()
        } else {
            path.clone().named(below)
        };
        out.findings.push(finding);
    }
}

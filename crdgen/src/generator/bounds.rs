//! Nodes of a schema without a bound.

use crate::diff::SchemaPath;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// A controller writes the status, which has no CEL rules for users; the API server validates metadata.
const UNCHECKED_FIELDS: [&str; 2] = ["metadata", "status"];

pub(super) fn unbounded(definition: &CustomResourceDefinition) -> Vec<(String, SchemaPath)> {
    let mut all = Vec::new();
    for version in &definition.spec.versions {
        let schema = version.schema.as_ref();
        let Some(schema) = schema.and_then(|it| it.open_api_v3_schema.as_ref()) else {
            continue;
        };
        let mut paths = Vec::new();
        for (name, child) in schema.properties.iter().flatten() {
            let is_own = !matches!(name.as_str(), "apiVersion" | "kind");
            if is_own && !UNCHECKED_FIELDS.contains(&name.as_str()) {
                visit(child, &SchemaPath::default().field(name), &mut paths);
            }
        }
        all.extend(paths.into_iter().map(|path| (version.name.clone(), path)));
    }
    all
}

fn visit(schema: &JSONSchemaProps, at: &SchemaPath, out: &mut Vec<SchemaPath>) {
    let additional = match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => None,
    };
    let is_text = schema.type_.as_deref() == Some("string")
        || schema.x_kubernetes_int_or_string == Some(true);
    // Formats imply a length, or are strings that have no bound in practice.
    let is_free_text = is_text && schema.enum_.is_none() && schema.format.is_none();
    let is_unbounded = (is_free_text && schema.max_length.is_none())
        || (schema.type_.as_deref() == Some("array") && schema.max_items.is_none())
        || (additional.is_some() && schema.max_properties.is_none());
    if is_unbounded {
        out.push(at.clone());
    }
    for (name, child) in schema.properties.iter().flatten() {
        visit(child, &at.field(name), out);
    }
    if let Some(child) = additional {
        visit(child, &at.entries(), out);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        visit(items, &at.items(), out);
    }
}

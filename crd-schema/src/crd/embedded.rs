//! Embedded resources (`x-kubernetes-embedded-resource`): decodes and validates their metadata.

use super::meta_validation::{self, MetaFindings};
use super::names;
use super::node::Node;
use super::object_meta;
use crate::finding::{ErrorKind, Finding};
use crate::structural::path::{PathStack, PathStep};
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};

/// Decodes the type and metadata of embedded resources, removes unknown metadata, and returns the paths of it.
///
/// # Errors
///
/// The path and the reason if a value has the wrong type.
pub(super) fn coerce(
    value: &mut Value,
    schema: Option<&Node>,
    path: &FieldPath,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let Some(schema) = schema else {
        return Ok(());
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if schema.is_embedded && matches!(name.as_str(), "apiVersion" | "kind") {
                    if !value.is_string() {
                        return Err(format!("{path}.{name}: must be a string"));
                    }
                    continue;
                }
                if schema.is_embedded && name == "metadata" {
                    let decoded = object_meta::decode(value)
                        .map_err(|it| format!("{path}.metadata: {it}"))?;
                    let prefix = path.clone().field("metadata");
                    unknown.extend(decoded.unknown.iter().map(|it| format!("{prefix}.{it}")));
                    *value = Value::Object(decoded.fields);
                }
                if let Some(property) = schema.properties.get(name) {
                    coerce(
                        value,
                        Some(property),
                        &path.clone().named(name.as_str()),
                        unknown,
                    )?;
                } else if let Some(additional) = schema.additional.as_deref() {
                    coerce(
                        value,
                        Some(additional),
                        &path.clone().key(name.as_str()),
                        unknown,
                    )?;
                }
            }
        }
        Value::Array(items) => {
            for (position, item) in items.iter_mut().enumerate() {
                coerce(
                    item,
                    schema.items.as_deref(),
                    &path.clone().index(position),
                    unknown,
                )?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Validates the type and metadata of embedded resources.
pub(super) fn validate(root: &Node, object: &Value) -> Vec<Finding> {
    let mut out = MetaFindings(Vec::new());
    visit(root, object, &mut PathStack::default(), &mut out);
    out.0
}

/// Validates the type and metadata of a resource that its schema does not mark as one.
pub(super) fn validate_resource(fields: &Map<String, Value>) -> Vec<Finding> {
    let mut out = MetaFindings(Vec::new());
    resource(fields, &FieldPath::default(), &mut out);
    out.0
}

fn visit<'a>(schema: &'a Node, value: &'a Value, way: &mut PathStack<'a>, out: &mut MetaFindings) {
    match value {
        Value::Object(fields) => {
            if schema.is_embedded {
                resource(fields, &way.keyed_path(), out);
            }
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    way.with_step(PathStep::Field(name), |way| {
                        visit(property, value, way, out);
                    });
                } else if let Some(additional) = schema.additional.as_deref() {
                    way.with_step(PathStep::Entry(name), |way| {
                        visit(additional, value, way, out);
                    });
                }
            }
        }
        Value::Array(items) => {
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

fn resource(fields: &Map<String, Value>, path: &FieldPath, out: &mut MetaFindings) {
    for name in ["apiVersion", "kind"] {
        let field = path.clone().named(name);
        let Some(value) = fields.get(name) else {
            out.push(field, ErrorKind::Required, None, "");
            continue;
        };
        let Some(text) = value.as_str() else {
            out.push(field, ErrorKind::Invalid, None, "must be a string");
            continue;
        };
        if text.is_empty() {
            out.push(field, ErrorKind::Invalid, Some(text), "must not be empty");
        } else if name == "apiVersion" && names::parse_group_version(text).is_none() {
            out.push(
                field,
                ErrorKind::Invalid,
                Some(text),
                "must be <group>/<version> or <version>",
            );
        } else if name == "kind" {
            let reasons = names::dns1035_label(&text.to_lowercase());
            if !reasons.is_empty() {
                out.push(field, ErrorKind::Invalid, Some(text), reasons.join(", "));
            }
        }
    }
    let Some(metadata) = fields.get("metadata") else {
        return;
    };
    let field = path.clone().field("metadata");
    match object_meta::decode(metadata) {
        Ok(mut decoded) => {
            let metadata = &mut decoded.fields;
            // A missing name is accepted.
            metadata.entry("name").or_insert_with(|| "fakename".into());
            let is_namespaced = metadata.contains_key("namespace");
            out.0.extend(meta_validation::validate_new(
                metadata,
                is_namespaced,
                names::path_segment,
                &field,
            ));
        }
        Err(reason) => out.push(field, ErrorKind::Invalid, None, reason),
    }
}

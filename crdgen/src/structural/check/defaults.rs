//! Checks that each default is valid by the schema of its node, and has no unknown fields.

use super::findings::FindingCollector;
use super::properties::OBJECT_META_FIELDS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::{ErrorKind, Finding};
use lockkeeper_policies::schema::StructuralSchema;
use serde_json::json;

pub(super) fn check(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    check_node(schema, true, at, found);
}

fn check_node(
    schema: &JSONSchemaProps,
    is_object: bool,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    check_own_default(schema, at, found);
    let is_object = is_object || schema.x_kubernetes_embedded_resource == Some(true);
    for (name, child) in schema.properties.iter().flatten() {
        if !(is_object && OBJECT_META_FIELDS.contains(&name.as_str())) {
            let at = at.clone().field("properties").key(name.as_str());
            check_node(child, false, &at, found);
        }
    }
    // Not `additionalProperties`: the API server does not follow it here either.
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        check_node(items, false, &at.clone().field("items"), found);
    }
}

fn check_own_default(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    let Some(default) = &schema.default else {
        return;
    };
    // Nested by one level: the root of a schema would be a whole object with metadata.
    let bare = without_defaults(schema);
    let around = json!({"type": "object", "properties": {"default": bare}});
    let value = json!({"default": default});
    let Ok(structure) = StructuralSchema::new(&around) else {
        return;
    };
    let mut pruned = value.clone();
    let unknown = structure.prune(&mut pruned);
    let wrong = structure.check(&value, None);
    for problem in unknown {
        let detail = format!("must not have unknown fields, such as {}", problem.field);
        let field = at.clone().field("default");
        found.report(field, ErrorKind::Invalid, None, detail);
    }
    for problem in wrong {
        found.push(Finding {
            field: at.clone().named(problem.field.text()),
            ..problem
        });
    }
}

/// The schema without defaults: the API server validates a default without defaulting its fields.
fn without_defaults(schema: &JSONSchemaProps) -> JSONSchemaProps {
    let mut schema = schema.clone();
    schema.default = None;
    for child in schema.properties.iter_mut().flat_map(|it| it.values_mut()) {
        *child = without_defaults(child);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        **items = without_defaults(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(child)) = &mut schema.additional_properties {
        **child = without_defaults(child);
    }
    schema
}

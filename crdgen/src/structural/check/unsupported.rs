//! Keywords and types that no part of a schema may have.

use super::findings::FindingCollector;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::ErrorKind;

/// The JSON types that a schema may have.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Reports keywords and types that the API server supports in no part of a schema.
pub(super) fn check_unsupported(
    schema: &JSONSchemaProps,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    let keywords = [
        (schema.id.is_some(), "id", "id is not supported"),
        (
            schema.schema.is_some(),
            "$schema",
            "$schema is not supported",
        ),
        (schema.ref_path.is_some(), "$ref", "$ref is not supported"),
        (
            schema.definitions.is_some(),
            "definitions",
            "definitions is not supported",
        ),
        (
            schema.dependencies.is_some(),
            "dependencies",
            "dependencies is not supported",
        ),
        (
            schema.pattern_properties.is_some(),
            "patternProperties",
            "patternProperties is not supported",
        ),
        (
            schema.additional_items.is_some(),
            "additionalItems",
            "additionalItems is not supported",
        ),
        (
            matches!(schema.items, Some(JSONSchemaPropsOrArray::Schemas(_))),
            "items",
            "items must be a schema object and not an array",
        ),
        (
            schema.unique_items == Some(true),
            "uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
    ];
    for (_, name, detail) in keywords
        .into_iter()
        .filter(|(is_present, _, _)| *is_present)
    {
        found.forbidden(at.clone().field(name), detail);
    }
    if schema.x_kubernetes_preserve_unknown_fields == Some(false) {
        let field = at.clone().field("x-kubernetes-preserve-unknown-fields");
        found.report(field, ErrorKind::Invalid, None, "must be true or undefined");
    }
    match schema.type_.as_deref() {
        Some("null") => found.forbidden(
            at.clone().field("type"),
            "type cannot be set to null, use nullable as an alternative",
        ),
        Some(name) if !name.is_empty() && !TYPES.contains(&name) => {
            let detail = format!("supported values: {}", TYPES.join(", "));
            let field = at.clone().field("type");
            found.report(field, ErrorKind::NotSupported, Some(name), detail);
        }
        _ => {}
    }
}

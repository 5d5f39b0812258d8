//! The values that a schema node accepts.

use super::cursor::{entries, preserves_unknown_fields, property};
use crate::diff::Effect;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use lockkeeper_policies::schema::{StructuralSchema, is_string_format};
use serde_json::json;

/// Whether an object of this schema can have the field.
pub(super) fn accepts_field(schema: &JSONSchemaProps, name: &str) -> bool {
    property(schema, name).is_some()
        || entries(schema).is_some()
        || preserves_unknown_fields(schema)
}

/// Whether the old node is a list of values, all of which the new node accepts. Its expressions are not evaluated.
pub(super) fn accepts_former_enum(old: &JSONSchemaProps, new: &JSONSchemaProps) -> bool {
    let Some(values) = old.enum_.as_ref().filter(|it| !it.is_empty()) else {
        return false;
    };
    let field = JSONSchemaProps {
        x_kubernetes_validations: None,
        default: None,
        ..new.clone()
    };
    let around = json!({"type": "object", "properties": {"field": field}});
    StructuralSchema::new(&around).is_ok_and(|structure| {
        let mut objects = values.iter().map(|it| json!({"field": it}));
        objects.all(|object| structure.check(&object, None).is_empty())
    })
}

/// Whether the node accepts any value and prunes nothing.
pub(super) fn accepts_anything(schema: &JSONSchemaProps) -> bool {
    // Clears the documentation and the two keywords that the next expression requires.
    let rest = JSONSchemaProps {
        description: None,
        title: None,
        example: None,
        external_docs: None,
        nullable: None,
        x_kubernetes_preserve_unknown_fields: None,
        ..schema.clone()
    };
    preserves_unknown_fields(schema)
        && rest == JSONSchemaProps::default()
        && schema.nullable == Some(true)
}

/// The effect of a changed format.
pub(super) fn format_effect(old: &JSONSchemaProps, new: &JSONSchemaProps) -> Effect {
    match (validated_format(old), validated_format(new)) {
        (before, after) if before == after => Effect::Same,
        // A format that the API server does not validate counts as none.
        (_, None) => Effect::Wider,
        (None, Some(_)) => Effect::Narrower,
        (Some(before), Some(after)) if before == "int32" && after == "int64" => Effect::Wider,
        (Some(_), Some(_)) => Effect::Unclear,
    }
}

/// The format, if the API server validates it for this type.
fn validated_format(schema: &JSONSchemaProps) -> Option<String> {
    // The API server ignores hyphens: `date-time` is `datetime`.
    let format = schema.format.as_deref()?.replace('-', "");
    let is_integer = matches!(format.as_str(), "int32" | "int64");
    let is_validated = match schema.type_.as_deref() {
        Some("integer") => is_integer,
        Some("number") => matches!(format.as_str(), "float" | "double"),
        Some("string") => is_string_format(&format),
        None | Some("") => is_integer || is_string_format(&format),
        Some(_) => false,
    };
    is_validated.then_some(format)
}

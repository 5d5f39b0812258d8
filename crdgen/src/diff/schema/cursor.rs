//! The position of a schema comparison, and accessors of schema nodes.

use crate::diff::{SchemaPath, StoredObjectsEffect, junctors};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The position of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    pub(super) path: SchemaPath,
    /// The outermost list above whose items cannot be correlated with the stored ones: a change of
    /// one item counts as a change of the whole list.
    pub(super) list: Option<SchemaPath>,
    /// Whether a validation above covers all values below.
    pub(super) has_outer_constraint: bool,
}

impl Cursor {
    pub(super) fn child(&self, path: SchemaPath, parent: &JSONSchemaProps) -> Self {
        Self {
            path,
            list: self.list.clone(),
            has_outer_constraint: self.has_outer_constraint || constrains_children(parent),
        }
    }

    /// The part that must stay unchanged for an invalid stored object to pass.
    pub(super) fn stored_until(&self) -> StoredObjectsEffect {
        StoredObjectsEffect::Until(self.list.clone().unwrap_or_else(|| self.path.clone()))
    }
}

/// Whether a node has validations of the values below it that a new value may violate.
pub(super) fn constrains_children(schema: &JSONSchemaProps) -> bool {
    let has_rules = schema
        .x_kubernetes_validations
        .as_ref()
        .is_some_and(|it| !it.is_empty());
    schema.enum_.is_some() || has_rules || junctors::has_any(schema)
}

/// Whether the node is an embedded resource.
pub(super) fn is_embedded(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_embedded_resource == Some(true)
}

/// The schema of a field.
pub(super) fn property<'a>(schema: &'a JSONSchemaProps, name: &str) -> Option<&'a JSONSchemaProps> {
    schema.properties.as_ref().and_then(|it| it.get(name))
}

/// The schema of entries of any name.
pub(super) fn entries(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => None,
    }
}

/// Whether unknown fields are preserved.
pub(super) fn preserves_unknown_fields(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_preserve_unknown_fields == Some(true)
        || schema.additional_properties == Some(JSONSchemaPropsOrBool::Bool(true))
}

pub(super) fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(items),
        _ => None,
    }
}

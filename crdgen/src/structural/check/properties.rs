//! Checks of each node of the structural part: all of a schema except the branches of `allOf`,
//! `anyOf`, `oneOf` and `not`.

use super::findings::FindingCollector;
use super::nested;
use super::unsupported::check_unsupported;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::ErrorKind;
use std::collections::BTreeMap;

/// The fields of every object, which the API server validates itself.
pub(super) const OBJECT_META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The position of a node in its schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

impl Level {
    const fn without_type(self) -> &'static str {
        match self {
            Self::Root => "must not be empty at the root",
            Self::Item => "must not be empty for specified array items",
            Self::Field => "must not be empty for specified object fields",
        }
    }
}

pub(super) fn check_root(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    check_node(schema, Level::Root, at, found);
}

fn check_node(
    schema: &JSONSchemaProps,
    level: Level,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    check_unsupported(schema, at, found);
    check_children(schema, level, at, found);
    check_extensions(schema, at, found);
    nested::check_junctors(schema, at, found);
    check_types(schema, level, at, found);
    check_object_keywords(schema, level, at, found);
}

fn check_children(
    schema: &JSONSchemaProps,
    level: Level,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    if schema.type_.as_deref() == Some("array") && schema.items.is_none() {
        found.required(at.clone().field("items"), "must be specified");
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        check_node(items, Level::Item, &at.clone().field("items"), found);
    }
    for (name, child) in schema.properties.iter().flatten() {
        let at = at.clone().field("properties").key(name.as_str());
        check_node(child, Level::Field, &at, found);
    }
    let Some(additional) = &schema.additional_properties else {
        return;
    };
    let at = at.clone().field("additionalProperties");
    if level == Level::Root {
        found.forbidden(at.clone(), "must not be used at the root");
    }
    let has_properties = schema.properties.as_ref().is_some_and(|it| !it.is_empty());
    if has_properties && *additional != JSONSchemaPropsOrBool::Bool(true) {
        found.forbidden(
            at.clone(),
            "additionalProperties and properties are mutual exclusive",
        );
    }
    if let JSONSchemaPropsOrBool::Schema(child) = additional {
        check_node(child, Level::Field, &at, found);
    }
}

fn check_extensions(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    if schema.x_kubernetes_int_or_string != Some(true) {
        return;
    }
    let extensions = [
        (
            schema.x_kubernetes_preserve_unknown_fields,
            "x-kubernetes-preserve-unknown-fields",
        ),
        (
            schema.x_kubernetes_embedded_resource,
            "x-kubernetes-embedded-resource",
        ),
    ];
    for (_, name) in extensions.into_iter().filter(|(it, _)| *it == Some(true)) {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        found.report(at.clone().field(name), ErrorKind::Invalid, None, detail);
    }
}

fn check_types(
    schema: &JSONSchemaProps,
    level: Level,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    let field = at.clone().field("type");
    let name = schema.type_.as_deref().unwrap_or_default();
    let is_embedded = schema.x_kubernetes_embedded_resource == Some(true);
    // Both extensions allow values of several types, so the node needs no type.
    let is_free = schema.x_kubernetes_int_or_string == Some(true)
        || schema.x_kubernetes_preserve_unknown_fields == Some(true);
    if is_embedded && name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        if name.is_empty() {
            found.required(field.clone(), detail);
        } else {
            found.invalid(field.clone(), name, detail);
        }
    } else if name.is_empty() && !is_free {
        found.required(field.clone(), level.without_type());
    }
    if level == Level::Root && !name.is_empty() && name != "object" {
        found.invalid(field, name, "must be object at the root");
    }
    if is_embedded && schema.additional_properties.is_some() {
        found.forbidden(
            at.clone().field("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        );
    }
    let keeps = schema.x_kubernetes_preserve_unknown_fields == Some(true);
    let is_empty = schema.properties.as_ref().is_none_or(BTreeMap::is_empty);
    if is_embedded && !keeps && is_empty {
        found.required(
            at.clone().field("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        );
    }
}

/// Checks the fields of every object, at the root and in embedded resources.
fn check_object_keywords(
    schema: &JSONSchemaProps,
    level: Level,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    let is_object = level == Level::Root || schema.x_kubernetes_embedded_resource == Some(true);
    if !is_object {
        return;
    }
    let types = [
        ("kind", "string"),
        ("apiVersion", "string"),
        ("metadata", "object"),
    ];
    for (name, expected) in types {
        let Some(child) = schema.properties.as_ref().and_then(|it| it.get(name)) else {
            continue;
        };
        let at = at.clone().field("properties").key(name);
        let actual = child.type_.as_deref().unwrap_or_default();
        if actual != expected {
            found.invalid(
                at.clone().field("type"),
                actual,
                format!("must be {expected}"),
            );
        }
        if level == Level::Root && child.default.is_some() {
            let detail = "must not be set in a field that every object has";
            found.forbidden(at.clone().field("default"), detail);
        }
        if level == Level::Root && name == "metadata" && !restricts_only_names(child) {
            found.forbidden(
                at,
                "must not specify anything other than name and generateName, but metadata is implicitly \
                 specified",
            );
        }
    }
}

fn restricts_only_names(metadata: &JSONSchemaProps) -> bool {
    let names = metadata.properties.iter().flat_map(|it| it.keys());
    let mut others = names.filter(|it| !matches!(it.as_str(), "name" | "generateName"));
    // The caller reports a wrong type and a default.
    let rest = JSONSchemaProps {
        type_: None,
        default: None,
        properties: None,
        ..metadata.clone()
    };
    others.next().is_none() && rest == JSONSchemaProps::default()
}

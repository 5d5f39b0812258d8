//! Checks of list types, map types and the messages of CEL rules.

use super::findings::FindingCollector;
use super::properties::OBJECT_META_FIELDS;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::ErrorKind;
use std::collections::BTreeSet;

/// The values that the API server accepts in the `reason` of a CEL rule.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

pub(super) fn check(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    check_node(schema, true, at, found);
}

fn check_node(
    schema: &JSONSchemaProps,
    is_root: bool,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    check_list_type(schema, at, found);
    check_map_type(schema, at, found);
    check_rule_messages(schema, at, found);
    for (name, child) in schema.properties.iter().flatten() {
        let at = at.clone().field("properties").key(name.as_str());
        // The API server validates these fields of the root itself.
        if !(is_root && OBJECT_META_FIELDS.contains(&name.as_str())) {
            check_node(child, false, &at, found);
        }
    }
    if let Some(JSONSchemaPropsOrBool::Schema(child)) = &schema.additional_properties {
        check_node(
            child,
            false,
            &at.clone().field("additionalProperties"),
            found,
        );
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        check_node(items, false, &at.clone().field("items"), found);
    }
}

fn check_list_type(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    let keys = schema
        .x_kubernetes_list_map_keys
        .as_deref()
        .unwrap_or_default();
    let field = at.clone().field("x-kubernetes-list-type");
    let list_type = schema.x_kubernetes_list_type.as_deref();
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        found.report(field.clone(), ErrorKind::Required, None, detail);
    }
    let Some(list_type) = list_type else {
        return;
    };
    if schema.type_.as_deref() != Some("array") {
        let actual = schema.type_.as_deref().unwrap_or_default();
        let detail = "must be array if x-kubernetes-list-type is specified";
        found.invalid(at.clone().field("type"), actual, detail);
    }
    let items = match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(&**items),
        _ => None,
    };
    let has_null = items.is_some_and(|it| it.nullable == Some(true));
    let below = at.clone().field("items");
    match list_type {
        // Items of an atomic list are never merged, so they may be nullable.
        "atomic" => return,
        "set" => check_set(items, &below, found),
        "map" => check_map(items, keys, at, found),
        other => {
            let detail = "supported values: atomic, set, map";
            found.report(field, ErrorKind::NotSupported, Some(other), detail);
            return;
        }
    }
    if has_null {
        let detail = "items of a list of type set or map cannot be nullable";
        found.forbidden(below.field("nullable"), detail);
    }
}

fn check_set(items: Option<&JSONSchemaProps>, at: &FieldPath, found: &mut FindingCollector) {
    let Some(items) = items else {
        return;
    };
    // Unset means atomic for a list, and granular for a map.
    let (field, actual) = match items.type_.as_deref() {
        Some("array") => (
            "x-kubernetes-list-type",
            items.x_kubernetes_list_type.as_deref().unwrap_or("atomic"),
        ),
        Some("object") => (
            "x-kubernetes-map-type",
            items.x_kubernetes_map_type.as_deref().unwrap_or_default(),
        ),
        _ => return,
    };
    if actual != "atomic" {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        found.invalid(at.clone().field(field), actual, detail);
    }
}

fn check_map(
    items: Option<&JSONSchemaProps>,
    keys: &[String],
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    let of_keys = || at.clone().field("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        found.required(
            of_keys(),
            "must not be empty if x-kubernetes-list-type is map",
        );
    }
    if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() {
        found.invalid(
            of_keys(),
            &keys.join(", "),
            "must not contain duplicate entries",
        );
    }
    let at = at.clone().field("items");
    let Some(items) = items else {
        found.required(at, "must have a schema if x-kubernetes-list-type is map");
        return;
    };
    if items.type_.as_deref() != Some("object") {
        let actual = items.type_.as_deref().unwrap_or_default();
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        found.invalid(at.field("type"), actual, detail);
        return;
    }
    for key in keys {
        let Some(child) = items.properties.as_ref().and_then(|it| it.get(key)) else {
            let detail = "entries must all be names of item properties";
            found.invalid(of_keys(), key, detail);
            continue;
        };
        map_key(items, key, child, &at, found);
    }
}

fn map_key(
    items: &JSONSchemaProps,
    key: &str,
    child: &JSONSchemaProps,
    at: &FieldPath,
    found: &mut FindingCollector,
) {
    let at = at.clone().field("properties").key(key);
    if let Some(name @ ("array" | "object")) = child.type_.as_deref() {
        let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        found.invalid(at.clone().field("type"), name, detail);
    }
    let is_required = items.required.iter().flatten().any(|it| it == key);
    // Items are merged by this key, so every item must have a value for it.
    if !is_required && child.default.is_none() {
        found.required(
            at.clone().field("default"),
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        );
    }
    if child.nullable == Some(true) {
        let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        found.forbidden(at.field("nullable"), detail);
    }
}

fn check_map_type(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    let Some(map_type) = schema.x_kubernetes_map_type.as_deref() else {
        return;
    };
    if schema.type_.as_deref() != Some("object") {
        let actual = schema.type_.as_deref().unwrap_or_default();
        let detail = "must be object if x-kubernetes-map-type is specified";
        found.invalid(at.clone().field("type"), actual, detail);
    }
    if !matches!(map_type, "atomic" | "granular") {
        let field = at.clone().field("x-kubernetes-map-type");
        let detail = "supported values: atomic, granular";
        found.report(field, ErrorKind::NotSupported, Some(map_type), detail);
    }
}

/// Checks the texts of CEL rules.
fn check_rule_messages(schema: &JSONSchemaProps, at: &FieldPath, found: &mut FindingCollector) {
    for (index, rule) in schema.x_kubernetes_validations.iter().flatten().enumerate() {
        let at = at.clone().field("x-kubernetes-validations").index(index);
        let message = rule.message.as_deref().map(str::trim);
        let has_break = |text: &str| text.contains(['\n', '\r']);
        // An empty message counts as unset; a message of blanks does not.
        if rule.rule.trim().is_empty() {
            found.required(at.clone().field("rule"), "rule is not specified");
        } else if message == Some("") && rule.message.as_deref() != Some("") {
            found.invalid(
                at.clone().field("message"),
                "",
                "must be non-empty if specified",
            );
        } else if message.is_some_and(has_break) {
            let text = message.unwrap_or_default();
            found.invalid(
                at.clone().field("message"),
                text,
                "must not contain line breaks",
            );
        } else if has_break(rule.rule.trim()) && message.is_none_or(str::is_empty) {
            let detail = "message must be specified if rule contains line breaks";
            found.required(at.clone().field("message"), detail);
        }
        if let Some(reason) = rule.reason.as_deref().filter(|it| !REASONS.contains(it)) {
            let detail = format!("supported values: {}", REASONS.join(", "));
            let field = at.clone().field("reason");
            found.report(field, ErrorKind::NotSupported, Some(reason), detail);
        }
    }
}

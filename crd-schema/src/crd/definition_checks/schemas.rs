//! The rules for each schema of a definition besides structurality: supported keywords, list types, map types, CEL.

use super::cel;
use super::cel_types::Type;
use super::collector::{Collector, entries, is_set, object, text};
use super::cost::{Costs, cardinality_below};
use crate::crd::node::Node;
use crate::crd::values::{array_at, flag_at, texts_at};
use crate::finding::ErrorKind;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The types of schemas.
pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

const LIST_TYPES: [&str; 3] = ["atomic", "set", "map"];

const MAP_TYPES: [&str; 2] = ["atomic", "granular"];

/// What applies to a schema because of the schemas above it.
#[derive(Clone, Copy)]
struct Context<'a> {
    allows_defaults: bool,
    is_inside_metadata: bool,
    /// Whether stored values of the place cannot be found: `oldSelf` is not available.
    is_uncorrelatable: bool,
    /// The compiled schema, for CEL rules. `None` in branches, where they are not compiled.
    node: Option<&'a Node>,
    /// The largest number of values in an object, if the schemas above limit it.
    cardinality: Option<u64>,
}

/// Findings about schemas, and about CEL rules.
struct Findings {
    schemas: Collector,
    cel: Collector,
    costs: Costs,
}

/// Validates a schema. `node` is the compiled schema; without it CEL rules are not compiled. The costs of single rules
/// of an unchanged schema are not limited.
pub(super) fn validate(
    schema: &Value,
    node: Option<&Node>,
    is_unchanged: bool,
    path: &FieldPath,
    out: &mut Collector,
) {
    let context = Context {
        allows_defaults: true,
        is_inside_metadata: false,
        is_uncorrelatable: false,
        node,
        cardinality: Some(1),
    };
    let mut findings = Findings {
        schemas: Collector::default(),
        cel: Collector::default(),
        costs: Costs::new(is_unchanged),
    };
    visit(schema, context, true, path, &mut findings);
    out.findings.extend(findings.schemas.findings);
    out.findings.extend(findings.cel.findings);
    findings.costs.check_sum(path, out);
}

fn visit(
    schema: &Value,
    context: Context<'_>,
    is_root: bool,
    path: &FieldPath,
    out: &mut Findings,
) {
    let before = out.schemas.findings.len();
    keywords(schema, context, path, &mut out.schemas);
    children(schema, context, is_root, path, out);
    list_and_map_types(schema, path, &mut out.schemas);
    map_keys(schema, path, &mut out.schemas);
    let rules = array_at(schema, "x-kubernetes-validations");
    for (position, rule) in rules.iter().enumerate() {
        let path = path
            .clone()
            .field("x-kubernetes-validations")
            .index(position);
        cel::validate_texts(rule, schema, &path, &mut out.schemas);
    }
    if let Some(node) = context
        .node
        .filter(|_| out.schemas.findings.len() == before)
    {
        let is_resource = is_root || node.is_embedded;
        if !rules.is_empty() && Type::of_schema(node, is_resource).is_none() {
            let field = path.clone().field("x-kubernetes-validations");
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            out.cel.push(field, ErrorKind::Internal, None, detail);
        }
        for (position, rule) in rules.iter().enumerate() {
            let path = path
                .clone()
                .field("x-kubernetes-validations")
                .index(position);
            let place = cel::Place {
                node,
                is_resource,
                is_uncorrelatable: context.is_uncorrelatable,
                cardinality: context.cardinality,
            };
            let (costs, cel) = (&mut out.costs, &mut out.cel);
            cel::validate_expressions(rule, &place, &path, costs, cel);
        }
    }
}

fn keywords(schema: &Value, context: Context<'_>, path: &FieldPath, out: &mut Collector) {
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        out.not_supported(path.clone().field("type"), kind, &TYPES);
    }
    if is_set(schema, "default") && !context.allows_defaults {
        out.forbidden(path.clone().field("default"), "must not be set");
    }
    for key in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        let is_empty = match (key, schema.get(key)) {
            ("id", Some(id)) => id.as_str() == Some(""),
            ("patternProperties" | "definitions", Some(Value::Object(schemas))) => {
                schemas.is_empty()
            }
            _ => false,
        };
        if is_set(schema, key) && !is_empty {
            out.forbidden(path.clone().named(key), format!("{key} is not supported"));
        }
    }
    if kind == "null" {
        out.forbidden(
            path.clone().field("type"),
            "type cannot be set to null, use nullable as an alternative",
        );
    }
    if schema
        .get("items")
        .and_then(Value::as_array)
        .is_some_and(|it| !it.is_empty())
    {
        out.forbidden(
            path.clone().field("items"),
            "items must be a schema object and not an array",
        );
    }
    if context.is_inside_metadata && flag_at(schema, "x-kubernetes-embedded-resource") {
        let field = path.clone().field("x-kubernetes-embedded-resource");
        out.forbidden(field, "must not be used inside of resource meta");
    }
    if flag_at(schema, "uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        out.forbidden(path.clone().field("uniqueItems"), detail);
    }
    let additional = schema
        .get("additionalProperties")
        .filter(|it| !it.is_null());
    let is_restrictive = additional.is_some_and(|it| it != &Value::Bool(true));
    if is_restrictive && entries(schema, "properties").next().is_some() {
        let detail = "additionalProperties and properties are mutual exclusive";
        out.forbidden(path.clone().field("additionalProperties"), detail);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = path.clone().field("x-kubernetes-preserve-unknown-fields");
        out.invalid(field, "must be true or undefined");
    }
}

fn children(
    schema: &Value,
    context: Context<'_>,
    is_root: bool,
    path: &FieldPath,
    out: &mut Findings,
) {
    let context = Context {
        cardinality: cardinality_below(schema, context.cardinality),
        ..context
    };
    if let Some(additional) = object(schema, "additionalProperties") {
        let context = Context {
            allows_defaults: context.allows_defaults && !context.is_inside_metadata,
            node: context.node.and_then(|it| it.additional.as_deref()),
            ..context
        };
        visit(
            additional,
            context,
            false,
            &path.clone().field("additionalProperties"),
            out,
        );
    }
    let is_resource = is_root || flag_at(schema, "x-kubernetes-embedded-resource");
    for (name, property) in entries(schema, "properties") {
        let is_meta = is_resource && matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
        let context = Context {
            is_inside_metadata: context.is_inside_metadata || is_meta,
            allows_defaults: context.allows_defaults && !(is_meta && is_root),
            node: context.node.and_then(|it| it.properties.get(name)),
            ..context
        };
        visit(
            property,
            context,
            false,
            &path.clone().field("properties").key(name.as_str()),
            out,
        );
    }
    branches(schema, context, path, out);
    let items = Context {
        is_uncorrelatable: context.is_uncorrelatable
            || text(schema, "x-kubernetes-list-type") != "map",
        node: context.node.and_then(|it| it.items.as_deref()),
        ..context
    };
    let items_path = path.clone().field("items");
    if let Some(schema) = object(schema, "items") {
        visit(schema, items, false, &items_path, out);
    }
    for (position, schema) in array_at(schema, "items").iter().enumerate() {
        visit(
            schema,
            items,
            false,
            &items_path.clone().index(position),
            out,
        );
    }
}

/// The branches of value validations, in which CEL rules are not compiled.
fn branches(schema: &Value, context: Context<'_>, path: &FieldPath, out: &mut Findings) {
    let branch = Context {
        node: None,
        ..context
    };
    if let Some(not) = object(schema, "not") {
        visit(not, branch, false, &path.clone().field("not"), out);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (position, schema) in array_at(schema, key).iter().enumerate() {
            visit(
                schema,
                branch,
                false,
                &path.clone().named(key).index(position),
                out,
            );
        }
    }
    for key in ["definitions", "dependencies"] {
        for (name, schema) in entries(schema, key).filter(|it| it.1.is_object()) {
            visit(
                schema,
                branch,
                false,
                &path.clone().named(key).key(name.as_str()),
                out,
            );
        }
    }
}

/// Reports that the type of a schema must be another one.
fn wrong_type(
    schema: &Value,
    expected: &str,
    keyword: &str,
    path: &FieldPath,
    out: &mut Collector,
) {
    let field = path.clone().field("type");
    let detail = format!("must be {expected} if {keyword} is specified");
    if text(schema, "type").is_empty() {
        out.required(field, detail);
    } else {
        out.invalid(field, detail);
    }
}

fn list_and_map_types(schema: &Value, path: &FieldPath, out: &mut Collector) {
    let kind = text(schema, "type");
    if is_set(schema, "x-kubernetes-map-type") {
        let map_type = text(schema, "x-kubernetes-map-type");
        if kind != "object" {
            wrong_type(schema, "object", "x-kubernetes-map-type", path, out);
        }
        if !MAP_TYPES.contains(&map_type) {
            let field = path.clone().field("x-kubernetes-map-type");
            out.not_supported(field, map_type, &MAP_TYPES);
        }
    }
    if !is_set(schema, "x-kubernetes-list-type") {
        return;
    }
    let list_type = text(schema, "x-kubernetes-list-type");
    if kind != "array" {
        wrong_type(schema, "array", "x-kubernetes-list-type", path, out);
    } else if list_type == "set"
        && let Some(items) = object(schema, "items")
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let field = path.clone().field("items");
        let nested = text(items, "x-kubernetes-list-type");
        match text(items, "type") {
            "array" if is_set(items, "x-kubernetes-list-type") && nested != "atomic" => {
                out.invalid(field.field("x-kubernetes-list-type"), detail);
            }
            "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
                out.invalid(field.field("x-kubernetes-map-type"), detail);
            }
            _ => {}
        }
    }
    if !LIST_TYPES.contains(&list_type) {
        let field = path.clone().field("x-kubernetes-list-type");
        out.not_supported(field, list_type, &LIST_TYPES);
    }
}

fn map_keys(schema: &Value, path: &FieldPath, out: &mut Collector) {
    let keys = texts_at(schema, "x-kubernetes-list-map-keys");
    let list_type = text(schema, "x-kubernetes-list-type");
    let keys_path = path.clone().field("x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != "map" {
        let field = path.clone().field("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        if is_set(schema, "x-kubernetes-list-type") {
            out.invalid(field, detail);
        } else {
            out.required(field, detail);
        }
    }
    let items = object(schema, "items");
    let items_path = path.clone().field("items");
    if list_type == "map" {
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            out.required(keys_path.clone(), detail);
        }
        match (items, is_set(schema, "items")) {
            (None, false) => {
                out.required(
                    items_path.clone(),
                    "must have a schema if x-kubernetes-list-type is map",
                );
            }
            (None, true) => {
                out.invalid(
                    items_path.clone(),
                    "must only have a single schema if x-kubernetes-list-type is map",
                );
            }
            (Some(items), _) if text(items, "type") != "object" => {
                let field = items_path.clone().field("type");
                out.invalid(
                    field,
                    "must be object if parent array's x-kubernetes-list-type is map",
                );
            }
            (Some(items), _) => key_properties(&keys, items, path, out),
        }
    }
    let Some(items) = items.filter(|_| matches!(list_type, "map" | "set")) else {
        return;
    };
    if flag_at(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        out.forbidden(items_path.clone().field("nullable"), detail);
    }
    if list_type == "map" {
        let required = texts_at(items, "required");
        for key in &keys {
            let Some((_, property)) = entries(items, "properties").find(|it| it.0 == key) else {
                continue;
            };
            let field = items_path.clone().field("properties").key(key.as_str());
            if !required.contains(key) && !is_set(property, "default") {
                out.required(field.clone().field("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
            }
            if flag_at(property, "nullable") {
                out.forbidden(
                    field.field("nullable"),
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
                );
            }
        }
    }
}

fn key_properties(keys: &[String], items: &Value, path: &FieldPath, out: &mut Collector) {
    let keys_path = path.clone().field("x-kubernetes-list-map-keys");
    for (position, key) in keys.iter().enumerate() {
        match entries(items, "properties").find(|it| it.0 == key) {
            Some((_, property)) if matches!(text(property, "type"), "array" | "object") => {
                let field = path
                    .clone()
                    .field("items")
                    .field("properties")
                    .key(key.as_str());
                out.invalid(
                    field.field("type"),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                );
            }
            Some(_) => {}
            None => out.invalid(
                keys_path.clone(),
                "entries must all be names of item properties",
            ),
        }
        if keys.iter().take(position).any(|it| it == key) {
            out.invalid(keys_path.clone(), "must not contain duplicate entries");
        }
    }
}

//! The spec of a definition.

use super::collector::{Collector, is_set, object, text};
use super::sum_types::record_sum_types;
use super::{cel, conversion, defaults, encoding, names, schemas, structural, versions};
use crate::crd::names::{dns1035_label, dns1123_subdomain};
use crate::crd::node::Node;
use crate::crd::values::{array_at, flag_at};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::borrow::Cow;

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

/// The keywords that the root of a schema may have if the subresource `status` is enabled.
const ROOT_KEYWORDS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Fields of versions that the internal type has once, if they are equal in all versions.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each field of a version is shared by itself"
)]
struct SharedFields {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable_fields: bool,
    /// Whether a version has the subresource `status`.
    has_any_status: bool,
}

impl SharedFields {
    fn new(versions: &[Value]) -> Self {
        // The API server compares the types, in which an empty value is a missing one.
        let plain: Vec<Value> = versions.iter().map(without_empty).collect();
        let is_shared = |key: &str| {
            let first = plain.first().and_then(|it| it.get(key));
            !plain.is_empty() && plain.iter().all(|it| it.get(key) == first)
        };
        Self {
            schema: is_shared("schema"),
            subresources: is_shared("subresources"),
            columns: is_shared("additionalPrinterColumns"),
            selectable_fields: is_shared("selectableFields"),
            has_any_status: versions
                .iter()
                .any(|it| object(it, "subresources").is_some_and(|it| is_set(it, "status"))),
        }
    }
}

fn without_empty(value: &Value) -> Value {
    let mut value = value.clone();
    encoding::omit_empty(&mut value);
    value
}

/// Validates the spec. `old` is the stored spec.
pub(super) fn validate(spec: &Value, old: Option<&Value>, path: &FieldPath, out: &mut Collector) {
    group(spec, path, out);
    let scope = text(spec, "scope");
    let scope_path = path.clone().field("scope");
    if scope.is_empty() {
        out.required(scope_path, "");
    } else if !SCOPES.contains(&scope) {
        out.not_supported(scope_path, scope, &SCOPES);
    }
    let all = array_at(spec, "versions");
    let shared = SharedFields::new(all);
    let first = all.first().unwrap_or(&Value::Null);
    version_schemas(all, &shared, path, out);
    let preserves = flag_at(spec, "preserveUnknownFields");
    if preserves && all.iter().filter_map(schema_of).any(has_defaults) {
        let field = path.clone().field("preserveUnknownFields");
        out.invalid(
            field,
            "must be false in order to use defaults in the schema",
        );
    }
    version_names(all, path, out);
    for (position, version) in all.iter().enumerate() {
        let path = path.clone().field("versions").index(position);
        versions::deprecation(version, &path, out);
        parts(version, &shared, true, old, &path, out);
    }
    let version_name = text(first, "name");
    if !version_name.is_empty() {
        out.reasons(
            path.clone().field("version"),
            version_name,
            &dns1035_label(version_name),
        );
    }
    let spec_names = object(spec, "names").unwrap_or(&Value::Null);
    let names_path = path.clone().field("names");
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(spec_names, key).is_empty() {
            out.required(names_path.clone().named(key), "");
        }
    }
    names::validate(spec_names, &names_path, out);
    parts(first, &shared, false, old, path, out);
    if let Some(settings) = object(spec, "conversion") {
        let path = path.clone().field("conversion");
        if preserves && text(settings, "strategy") != "None" {
            let detail = "must be None if spec.preserveUnknownFields is true";
            out.invalid(path.clone().field("strategy"), detail);
        }
        conversion::validate(settings, &path, out);
    }
}

fn group(spec: &Value, path: &FieldPath, out: &mut Collector) {
    let group = text(spec, "group");
    let field = path.clone().field("group");
    let reasons = dns1123_subdomain(group);
    if group.is_empty() {
        out.required(field, "");
    } else if !reasons.is_empty() {
        out.reasons(field, group, &reasons);
    } else if !group.contains('.') {
        out.invalid(field, "should be a domain with at least one dot");
    }
}

/// The schema of a version.
fn schema_of(version: &Value) -> Option<&Value> {
    object(object(version, "schema")?, "openAPIV3Schema")
}

/// Whether a schema or one below it has a default.
fn has_defaults(schema: &Value) -> bool {
    is_set(schema, "default") || structural::below(schema).into_iter().any(has_defaults)
}

/// Every version needs a schema.
fn version_schemas(all: &[Value], shared: &SharedFields, path: &FieldPath, out: &mut Collector) {
    let schema = |it: &Value| schema_of(it).is_some();
    let is_global = shared.schema && all.first().is_some_and(schema);
    if is_global {
        return;
    }
    for (position, version) in all.iter().enumerate() {
        if shared.schema || !schema(version) {
            let path = path.clone().field("versions").index(position);
            out.required(path.field("schema").field("openAPIV3Schema"), "");
        }
    }
}

fn version_names(all: &[Value], path: &FieldPath, out: &mut Collector) {
    let versions_path = path.clone().field("versions");
    let mut names: Vec<&str> = Vec::new();
    let mut is_unique = true;
    for (position, version) in all.iter().enumerate() {
        let name = text(version, "name");
        is_unique &= !names.contains(&name);
        names.push(name);
        let field = versions_path.clone().index(position).field("name");
        out.reasons(field, name, &dns1035_label(name));
    }
    if !is_unique {
        out.invalid(versions_path.clone(), "must contain unique version names");
    }
    if all.iter().filter(|it| flag_at(it, "storage")).count() != 1 {
        out.invalid(
            versions_path,
            "must have exactly one version marked as storage version",
        );
    }
}

/// Validates the parts of a version that are shared by all versions, or those that are not.
fn parts(
    version: &Value,
    shared: &SharedFields,
    is_version: bool,
    old: Option<&Value>,
    path: &FieldPath,
    out: &mut Collector,
) {
    let schema = schema_of(version);
    let subresources = object(version, "subresources").unwrap_or(&Value::Null);
    if shared.schema != is_version
        && let Some(schema) = schema
    {
        let name = if is_version { "schema" } else { "validation" };
        let path = path.clone().named(name).field("openAPIV3Schema");
        let is_unchanged = stored_schema(old, text(version, "name")).map(without_empty)
            == Some(without_empty(schema));
        let has_status = if is_version {
            is_set(subresources, "status")
        } else {
            shared.has_any_status
        };
        root_schema(schema, has_status, is_unchanged, &path, out);
    }
    if shared.subresources != is_version {
        versions::subresources(subresources, &path.clone().field("subresources"), out);
    }
    if shared.columns != is_version {
        let path = path.clone().field("additionalPrinterColumns");
        versions::columns(versions::columns_of(version), &path, out);
    }
    let fields = array_at(version, "selectableFields");
    if shared.selectable_fields != is_version && !fields.is_empty() {
        let path_of_schema = path.clone();
        let path = path.clone().field("selectableFields");
        match schema {
            // A shared schema is not part of the version any more.
            Some(schema)
                if shared.schema != is_version && structural::has_unsupported_keywords(schema) =>
            {
                let path = path_of_schema.named("schema.openAPIV3Schema");
                out.invalid(path, "a keyword is not supported");
            }
            Some(schema) if shared.schema != is_version => {
                versions::selectable_fields(fields, schema, &path, out);
            }
            _ => out.invalid(path, "may only be set when a schema is included"),
        }
    }
}

/// The stored schema of a version.
fn stored_schema<'a>(old: Option<&'a Value>, version: &str) -> Option<&'a Value> {
    let versions = array_at(old?, "versions");
    schema_of(versions.iter().find(|it| text(it, "name") == version)?)
}

fn root_schema(
    schema: &Value,
    has_status: bool,
    is_unchanged: bool,
    path: &FieldPath,
    out: &mut Collector,
) {
    if has_status {
        let kind = text(schema, "type");
        let has_wrong_type = !kind.is_empty() && kind != "object";
        // The API server stops at the first of these, in the order of the fields of its type.
        let is_before_type = |it: &str| matches!(it, "id" | "$schema" | "$ref");
        let mut others = entries_of(schema).filter(|it| !ROOT_KEYWORDS.contains(it));
        let has_other = others.any(|it| !has_wrong_type || is_before_type(it));
        if has_other {
            out.invalid(path.clone(), "the root of the schema has fields that are not allowed if the status subresource is enabled");
        } else if has_wrong_type {
            out.invalid(path.clone().field("type"), "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled");
        }
    }
    if flag_at(schema, "nullable") {
        out.forbidden(
            path.clone().field("nullable"),
            "nullable cannot be true at the root",
        );
    }
    let before = out.findings.len();
    let is_supported = !structural::has_unsupported_keywords(schema);
    let mut root = None;
    if is_supported {
        structural::validate(schema, path, out);
        root = Node::from_schema(&with_known_types(schema))
            .ok()
            .filter(|_| out.findings.len() == before);
        if let Some(root) = &mut root {
            cel::record_compile_errors(root, true);
            record_sum_types(root, true);
            defaults::validate(root, path, out);
        }
    }
    let root = root.filter(|_| out.findings.len() == before);
    schemas::validate(schema, root.as_ref(), is_unchanged, path, out);
    if !is_supported && out.findings.len() == before {
        out.invalid(path.clone(), "a keyword is not supported");
    }
}

/// A schema without types that do not exist: they are findings of their own, and do not keep the API server from checking
/// defaults and CEL rules.
fn with_known_types(schema: &Value) -> Cow<'_, Value> {
    if !has_unknown_types(schema) {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    remove_unknown_types(&mut schema);
    Cow::Owned(schema)
}

fn has_unknown_types(schema: &Value) -> bool {
    let kind = text(schema, "type");
    let is_unknown = !kind.is_empty() && !schemas::TYPES.contains(&kind);
    is_unknown || structural::below(schema).into_iter().any(has_unknown_types)
}

fn remove_unknown_types(schema: &mut Value) {
    let kind = text(schema, "type");
    let is_unknown = !kind.is_empty() && !schemas::TYPES.contains(&kind);
    let Value::Object(fields) = schema else {
        return;
    };
    if is_unknown {
        fields.remove("type");
    }
    for (keyword, value) in fields.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(schemas)) => {
                schemas.values_mut().for_each(remove_unknown_types);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(remove_unknown_types);
            }
            ("items" | "additionalProperties" | "not", schema) => remove_unknown_types(schema),
            _ => {}
        }
    }
}

/// The keywords of a schema that are not empty.
fn entries_of(schema: &Value) -> impl Iterator<Item = &str> {
    let fields = schema.as_object().into_iter().flatten();
    let is_zero = |it: &Value| match it {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    fields
        .filter(move |it| !is_zero(it.1))
        .map(|it| it.0.as_str())
}

/// The names of the versions that are stored.
pub(super) fn storage_versions(spec: &Value) -> Vec<Value> {
    let stored = array_at(spec, "versions")
        .iter()
        .filter(|it| flag_at(it, "storage"));
    stored.map(|it| text(it, "name").into()).collect()
}

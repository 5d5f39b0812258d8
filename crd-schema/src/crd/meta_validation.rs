//! Validates `metadata` as `k8s.io/apimachinery/pkg/api/validation`.

use super::names;
use super::unicode::is_printable;
use super::values::{array_at, text_at};
use crate::finding::{ErrorKind, Finding};
use crate::rule_ids::SCHEMA_VIOLATION;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The size limit of all annotations, in bytes.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

/// The longest name of a field manager, in bytes.
const MANAGER_MAX_BYTES: usize = 128;

/// The longest name of a subresource of a managed field, in bytes.
const SUBRESOURCE_MAX_BYTES: usize = 256;

const FINALIZER_ORPHAN: &str = "orphan";
const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

/// A name check: the reasons why a name, or the prefix of a name, is not accepted.
pub(crate) type NameCheck = fn(&str, bool) -> Vec<String>;

/// Collects findings about metadata.
pub(crate) struct MetaFindings(pub(crate) Vec<Finding>);

impl MetaFindings {
    pub(crate) fn push(
        &mut self,
        field: FieldPath,
        kind: ErrorKind,
        value: Option<&str>,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.0.push(Finding {
            rule: Cow::Borrowed(SCHEMA_VIOLATION),
            field,
            kind,
            value: value.map(crate::finding::quoted),
            detail: detail.into(),
        });
    }

    fn reasons(&mut self, field: &FieldPath, value: &str, reasons: Vec<String>) {
        for reason in reasons {
            self.push(field.clone(), ErrorKind::Invalid, Some(value), reason);
        }
    }
}

/// Validates the decoded metadata of a new object below `base`.
pub(crate) fn validate_new(
    metadata: &Map<String, Value>,
    is_namespaced: bool,
    name_check: NameCheck,
    base: &FieldPath,
) -> Vec<Finding> {
    let mut out = MetaFindings(Vec::new());
    let text = |key: &str| {
        metadata
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let generated = text("generateName");
    if !generated.is_empty() {
        let field = base.clone().field("generateName");
        out.reasons(&field, generated, name_check(generated, true));
    }
    let name_field = base.clone().field("name");
    if text("name").is_empty() {
        out.push(
            name_field,
            ErrorKind::Required,
            None,
            "name or generateName is required",
        );
    } else {
        out.reasons(&name_field, text("name"), name_check(text("name"), false));
    }
    let namespace_field = base.clone().field("namespace");
    if is_namespaced {
        let namespace = text("namespace");
        if namespace.is_empty() {
            out.push(namespace_field, ErrorKind::Required, None, "");
        } else {
            out.reasons(&namespace_field, namespace, names::dns1123_label(namespace));
        }
    } else if !text("namespace").is_empty() {
        out.push(
            namespace_field,
            ErrorKind::Forbidden,
            None,
            "not allowed on this type",
        );
    }
    generation(metadata, base, &mut out);
    labels(metadata, base, &mut out);
    annotations(metadata, base, &mut out);
    owners(metadata, base, &mut out);
    finalizers(metadata, base, &mut out);
    managed_fields(metadata, base, &mut out);
    out.0
}

/// Validates the decoded metadata of an update.
pub(crate) fn validate_change(
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    base: &FieldPath,
) -> Vec<Finding> {
    let mut out = MetaFindings(Vec::new());
    if old.contains_key("deletionTimestamp") {
        let stored = texts(old, "finalizers");
        if texts(new, "finalizers")
            .iter()
            .any(|it| !stored.contains(it))
        {
            let detail = "no new finalizers can be added if the object is being deleted";
            let field = base.clone().field("finalizers");
            out.push(field, ErrorKind::Forbidden, None, detail);
        }
    }
    generation(new, base, &mut out);
    // Every update checks the prefix of a name, whatever the names of the kind may be.
    let prefix = new.get("generateName").and_then(Value::as_str);
    if let Some(prefix) = prefix.filter(|it| !it.is_empty()) {
        let field = base.clone().field("generateName");
        out.reasons(&field, prefix, names::path_segment(prefix, true));
    }
    for name in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if new.get(name) != old.get(name) {
            let field = base.clone().named(name);
            out.push(field, ErrorKind::Invalid, None, "field is immutable");
        }
    }
    labels(new, base, &mut out);
    annotations(new, base, &mut out);
    owners(new, base, &mut out);
    finalizers(new, base, &mut out);
    managed_fields(new, base, &mut out);
    out.0
}

fn texts<'a>(metadata: &'a Map<String, Value>, key: &str) -> Vec<&'a str> {
    let items = metadata.get(key).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn generation(metadata: &Map<String, Value>, base: &FieldPath, out: &mut MetaFindings) {
    let generation = metadata.get("generation").and_then(Value::as_i64);
    if generation.is_some_and(|it| it < 0) {
        let field = base.clone().field("generation");
        out.push(
            field,
            ErrorKind::Invalid,
            None,
            "must be greater than or equal to 0",
        );
    }
}

fn entries<'a>(
    metadata: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = metadata.get(key).and_then(Value::as_object);
    let entries = entries.into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn labels(metadata: &Map<String, Value>, base: &FieldPath, out: &mut MetaFindings) {
    let field = base.clone().field("labels");
    for (key, value) in entries(metadata, "labels") {
        out.reasons(&field, key, names::qualified_name(key));
        out.reasons(&field, value, names::label_value(value));
    }
}

fn annotations(metadata: &Map<String, Value>, base: &FieldPath, out: &mut MetaFindings) {
    let field = base.clone().field("annotations");
    let mut size: usize = 0;
    for (key, value) in entries(metadata, "annotations") {
        out.reasons(&field, key, names::qualified_name(&key.to_lowercase()));
        size = size.saturating_add(key.len()).saturating_add(value.len());
    }
    if size > ANNOTATIONS_MAX_BYTES {
        let detail = format!("may not be more than {ANNOTATIONS_MAX_BYTES} bytes");
        out.push(field, ErrorKind::TooLong, None, detail);
    }
}

fn owners(metadata: &Map<String, Value>, base: &FieldPath, out: &mut MetaFindings) {
    let field = base.clone().field("ownerReferences");
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let mut controllers: usize = 0;
    for (position, owner) in owners.into_iter().flatten().enumerate() {
        let item = field.clone().index(position);
        let text = |key: &str| text_at(owner, key).unwrap_or_default();
        let version = text("apiVersion");
        let parsed = names::parse_group_version(version);
        if !version.is_empty() && parsed.is_none_or(|(_, version)| version.is_empty()) {
            let field = item.clone().field("apiVersion");
            let detail = "must be <group>/<version> or <version>";
            out.push(field, ErrorKind::Invalid, Some(version), detail);
        }
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(key).is_empty() {
                let field = item.clone().named(key);
                out.push(field, ErrorKind::Required, None, "must not be empty");
            }
        }
        if parsed == Some(("", "v1")) && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            out.push(item, ErrorKind::Invalid, None, detail);
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            controllers = controllers.saturating_add(1);
            if controllers > 1 {
                let detail = "only one reference can have controller set to true";
                out.push(field.clone(), ErrorKind::Invalid, None, detail);
            }
        }
    }
}

fn finalizers(metadata: &Map<String, Value>, base: &FieldPath, out: &mut MetaFindings) {
    let field = base.clone().field("finalizers");
    let finalizers = texts(metadata, "finalizers");
    for finalizer in &finalizers {
        out.reasons(&field, finalizer, names::qualified_name(finalizer));
    }
    if finalizers.contains(&FINALIZER_ORPHAN) && finalizers.contains(&FINALIZER_FOREGROUND) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        out.push(field, ErrorKind::Invalid, None, detail);
    }
}

fn managed_fields(metadata: &Map<String, Value>, base: &FieldPath, out: &mut MetaFindings) {
    let field = base.clone().field("managedFields");
    let entries = metadata.get("managedFields").cloned().unwrap_or_default();
    let all = serde_json::json!({ "all": entries });
    for (position, entry) in array_at(&all, "all").iter().enumerate() {
        let item = field.clone().index(position);
        let text = |key: &str| text_at(entry, key).unwrap_or_default();
        let operation_field = item.clone().field("operation");
        match text("operation") {
            "Apply" | "Update" => {}
            "" => out.push(
                operation_field,
                ErrorKind::Required,
                None,
                "must not be empty",
            ),
            other => {
                let detail = "supported values: Apply, Update";
                out.push(
                    operation_field,
                    ErrorKind::NotSupported,
                    Some(other),
                    detail,
                );
            }
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            let field = item.clone().field("fieldsType");
            out.push(
                field,
                ErrorKind::Invalid,
                Some(text("fieldsType")),
                "must be `FieldsV1`",
            );
        }
        let manager = text("manager");
        let manager_field = item.clone().field("manager");
        too_long(manager, MANAGER_MAX_BYTES, &manager_field, out);
        let signs = manager
            .chars()
            .map(|it| it.encode_utf8(&mut [0; 4]).to_owned());
        for sign in signs.filter(|it| !is_printable(it)) {
            let detail = format!("invalid character {}", sign.escape_default());
            let field = manager_field.clone();
            out.push(field, ErrorKind::Invalid, Some(manager), detail);
        }
        let field = item.field("subresource");
        too_long(text("subresource"), SUBRESOURCE_MAX_BYTES, &field, out);
    }
}

fn too_long(value: &str, max: usize, field: &FieldPath, out: &mut MetaFindings) {
    if value.len() > max {
        let detail = format!("may not be more than {max} bytes");
        out.push(field.clone(), ErrorKind::TooLong, None, detail);
    }
}

/// Warnings about finalizers that are not in `stored`.
pub(crate) fn finalizer_warnings(
    metadata: &Map<String, Value>,
    stored: &Map<String, Value>,
) -> Vec<String> {
    const STANDARD: [&str; 3] = [FINALIZER_ORPHAN, FINALIZER_FOREGROUND, "kubernetes"];
    let stored = texts(stored, "finalizers");
    let mut added = texts(metadata, "finalizers");
    added.retain(|it| !stored.contains(it));
    added.sort_unstable();
    added.dedup();
    let mut out = Vec::new();
    for finalizer in added {
        for reason in names::qualified_name(finalizer) {
            out.push(format!("metadata.finalizers: {finalizer:?}: {reason}"));
        }
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
            let path = if finalizer.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            out.push(format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Finding, validate_change, validate_new};
    use crate::crd::names::path_segment;
    use lockkeeper_api::field_path::FieldPath;
    use serde_json::{Value, json};

    fn shown(findings: &[Finding]) -> Vec<String> {
        let text = |it: &Finding| format!("{} {}", it.field, it.kind.reason());
        findings.iter().map(text).collect()
    }

    #[test]
    fn managed_fields_are_validated_as_by_the_api_server() {
        let long = "a".repeat(257);
        for (entry, expected) in [
            (json!({"operation": "Apply"}), &[][..]),
            (json!({}), &["operation FieldValueRequired"]),
            (
                json!({"operation": "Delete"}),
                &["operation FieldValueNotSupported"],
            ),
            (
                json!({"operation": "Update", "fieldsType": "A"}),
                &["fieldsType FieldValueInvalid"],
            ),
            (
                json!({"operation": "Update", "manager": "a\u{200b}b\n"}),
                &["manager FieldValueInvalid", "manager FieldValueInvalid"],
            ),
            (
                json!({"operation": "Update", "manager": long}),
                &["manager FieldValueTooLong"],
            ),
            (
                json!({"operation": "Update", "subresource": long}),
                &["subresource FieldValueTooLong"],
            ),
        ] {
            let metadata = json!({"name": "a", "managedFields": [entry]});
            let Value::Object(metadata) = metadata else {
                panic!("no object");
            };
            let base = FieldPath::new("metadata");
            let found = shown(&validate_new(&metadata, false, path_segment, &base));
            let expected: Vec<String> = expected
                .iter()
                .map(|it| format!("metadata.managedFields[0].{it}"))
                .collect();
            assert_eq!(found, expected, "{entry}");
        }
    }

    #[test]
    fn prefix_of_name_is_validated_in_updates() {
        for (prefix, expected) in [
            ("", &[][..]),
            ("A_", &[]),
            ("a/b", &["metadata.generateName FieldValueInvalid"]),
        ] {
            let old = json!({"name": "a"});
            let new = json!({"name": "a", "generateName": prefix});
            let (Value::Object(old), Value::Object(new)) = (old, new) else {
                panic!("no objects");
            };
            let found = shown(&validate_change(&new, &old, &FieldPath::new("metadata")));
            assert_eq!(found, expected, "{prefix}");
        }
    }
}

//! The metadata of definitions: names, what the API server sets, and the approval of protected groups.

use super::collector::{Collector, object, text};
use crate::crd::meta_validation;
use crate::crd::system_fields::set_system_fields;
use crate::crd::values::metadata_of;
use crate::finding::ErrorKind;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Groups that need the approval of the Kubernetes project.
const PROTECTED_GROUPS: [&str; 2] = ["k8s.io", "kubernetes.io"];

const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

fn required_name(spec: &Value) -> String {
    let plural = object(spec, "names").map_or("", |it| text(it, "plural"));
    format!("{plural}.{}", text(spec, "group"))
}

/// Sets and validates the metadata of a new definition.
pub(super) fn new_metadata(definition: &mut Value, base: &FieldPath, out: &mut Collector) {
    let spec = definition.get("spec").cloned().unwrap_or_default();
    let required = required_name(&spec);
    if let Some(Value::Object(metadata)) = definition.get_mut("metadata") {
        metadata.remove("namespace");
        set_system_fields(metadata);
    }
    let metadata = metadata_of(definition);
    out.findings.extend(meta_validation::validate_new(
        metadata,
        false,
        crate::crd::names::resource_name,
        base,
    ));
    for key in ["name", "generateName"] {
        let name = metadata
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !name.is_empty() && name != required {
            let field = base.clone().named(key);
            out.push(
                field,
                ErrorKind::Invalid,
                Some(&name.into()),
                "must be spec.names.plural+\".\"+spec.group",
            );
        }
    }
}

/// Sets and validates the metadata of a changed definition.
pub(super) fn changed_metadata(
    definition: &mut Value,
    old: &Value,
    base: &FieldPath,
    out: &mut Collector,
) {
    let stored = metadata_of(old).clone();
    if let Some(Value::Object(metadata)) = definition.get_mut("metadata") {
        metadata.remove("managedFields");
        metadata.remove("namespace");
        for name in ["generation", "creationTimestamp"] {
            match stored.get(name) {
                Some(value) => metadata.insert(name.to_owned(), value.clone()),
                None => metadata.remove(name),
            };
        }
        for name in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            if let Some(value) = stored.get(name) {
                metadata.entry(name).or_insert_with(|| value.clone());
            }
        }
    }
    out.findings.extend(meta_validation::validate_change(
        metadata_of(definition),
        &stored,
        base,
    ));
}

/// Protected groups need an annotation with the URL of the approval.
pub(super) fn approval(definition: &Value, spec: &Value, old: Option<&Value>, out: &mut Collector) {
    let group = text(spec, "group");
    let is_protected = PROTECTED_GROUPS
        .iter()
        .any(|it| group == *it || group.strip_suffix(it).is_some_and(|it| it.ends_with('.')));
    let annotation = |it: &Value| {
        let annotations = metadata_of(it)
            .get("annotations")
            .and_then(Value::as_object);
        annotations
            .and_then(|it| it.get(APPROVAL_ANNOTATION))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let value = annotation(definition);
    if !is_protected || old.is_some_and(|it| annotation(it) == value) {
        return;
    }
    let field = FieldPath::new("metadata.annotations").key(APPROVAL_ANNOTATION);
    match value.as_deref() {
        None | Some("") => out.required(field, "protected groups must have approval annotation"),
        Some(text) if text.starts_with("unapproved") => {}
        Some(text) => {
            let uri = crate::crd::formats::uri::Uri::parse(text);
            if uri.is_none_or(|it| it.host.is_empty() || it.scheme.is_empty()) {
                out.invalid(field, "protected groups must have approval annotation with either a URL or a reason starting with \"unapproved\"");
            }
        }
    }
}

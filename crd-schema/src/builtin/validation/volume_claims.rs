//! `PersistentVolumeClaim`s.

use super::causes::Causes;
use super::fields::{
    annotation, entries, is_equal, is_set, optional_text, set, text, text_or, value,
};
use super::pod_spec::claim_spec;
use super::quantities::nano;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Whether the API server keeps a source of data that only the older field has.
fn is_known_source(source: &Value) -> bool {
    let group = text(source, "apiGroup");
    matches!(
        (group, text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

/// The spec with the sources of data as the API server stores them: either field sets the other.
fn prepared(spec: &Value, old: Option<&Value>) -> Value {
    let mut fields = spec.as_object().cloned().unwrap_or_default();
    let old = old.unwrap_or(&Value::Null);
    let has_namespace = |it: &Value| !text(it, "namespace").is_empty();
    if set(spec, "dataSourceRef").is_some_and(has_namespace) && !is_set(old, "dataSourceRef") {
        fields.remove("dataSourceRef");
    }
    let (source, reference) = ("dataSource", "dataSourceRef");
    let get = |fields: &Map<String, Value>, key: &str| {
        fields.get(key).filter(|it| !it.is_null()).cloned()
    };
    let was_used = is_set(old, source) || is_set(old, reference);
    match (get(&fields, source), get(&fields, reference)) {
        (Some(it), None) if was_used || is_known_source(&it) => {
            fields.insert(reference.to_owned(), it);
        }
        (Some(_), None) => {
            fields.remove(source);
        }
        (None, Some(it)) if !has_namespace(&it) => {
            fields.insert(source.to_owned(), it);
        }
        _ => {}
    }
    Value::Object(fields)
}

/// Validates a `PersistentVolumeClaim`.
pub(super) fn validate(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let old_spec = old.map(|it| value(it, "spec"));
    let spec = prepared(value(object, "spec"), old_spec);
    claim_spec(&spec, old_spec, &FieldPath::new("spec"), out);
    if let Some(old) = old {
        claim_update(object, &spec, old, out);
    }
}

fn claim_update(object: &Value, spec: &Value, old: &Value, out: &mut Causes) {
    let stored = value(old, "spec");
    let stored = &prepared(stored, Some(stored));
    let mut new = spec.as_object().cloned().unwrap_or_default();
    let mut previous = stored.as_object().cloned().unwrap_or_default();
    if text(stored, "volumeName").is_empty() {
        previous.insert("volumeName".to_owned(), value(spec, "volumeName").clone());
    }
    if !is_set(spec, "volumeMode") {
        new.insert("volumeMode".to_owned(), "Filesystem".into());
    }
    let (class, old_class) = (
        optional_text(spec, "storageClassName"),
        optional_text(stored, "storageClassName"),
    );
    let annotations = (
        annotation(object, CLASS_ANNOTATION),
        annotation(old, CLASS_ANNOTATION),
    );
    let is_upgrade = class.is_some() && old_class.is_none();
    let from_annotation = is_upgrade
        && annotations.1.is_some()
        && class == annotations.1
        && (annotations.0.is_none() || annotations.0 == annotations.1);
    if from_annotation {
        new.remove("storageClassName");
    } else {
        if annotations.0.unwrap_or_default() != annotations.1.unwrap_or_default() {
            let field = FieldPath::new("metadata.annotations").named(CLASS_ANNOTATION);
            out.invalid(field, "field is immutable");
        }
        if is_upgrade && (annotations.1.is_none() || class == annotations.1) {
            new.remove("storageClassName");
        }
    }
    let is_bound = text(value(old, "status"), "phase") == "Bound";
    if is_bound {
        for key in ["resources", "volumeAttributesClassName"] {
            new.insert(key.to_owned(), value(stored, key).clone());
        }
    }
    let storage = |it: &Value| nano(value(value(value(it, "resources"), "requests"), "storage"));
    let (size, old_size) = (storage(spec), storage(stored));
    if !is_same_claim(&Value::Object(new), &Value::Object(previous)) {
        out.forbidden(
            FieldPath::new("spec"),
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
    }
    let capacity = nano(value(value(value(old, "status"), "capacity"), "storage"));
    if size < old_size && size <= capacity {
        let field = FieldPath::new("spec.resources.requests.storage");
        out.forbidden(field, "field can not be less than status.capacity");
    }
    let mode = |it| text_or(it, "volumeMode", "Filesystem");
    if mode(spec) != mode(stored) {
        out.invalid(FieldPath::new("volumeMode"), "field is immutable");
    }
}

/// Whether specs of claims are equal; amounts are compared by value.
fn is_same_claim(new: &Value, old: &Value) -> bool {
    let rest = |it: &Value| {
        let mut fields = it.as_object().cloned().unwrap_or_default();
        fields.remove("resources");
        Value::Object(fields)
    };
    let amounts = |it: &Value, key: &str| {
        let resources = value(it, "resources").clone();
        let mut all: Vec<(String, i128)> = entries(&resources, key)
            .map(|(name, it)| (name.to_owned(), nano(it)))
            .collect();
        all.sort();
        all
    };
    is_equal(&rest(new), &rest(old))
        && ["limits", "requests"]
            .iter()
            .all(|key| amounts(new, key) == amounts(old, key))
        && set(value(new, "resources"), "claims") == set(value(old, "resources"), "claims")
}

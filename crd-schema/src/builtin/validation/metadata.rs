//! The metadata of built-in kinds.

use super::causes::{Below, Causes};
use super::fields::{texts, value};
use crate::crd::meta_validation::{self, NameCheck};
use crate::crd::names;
use crate::crd::values::metadata_of;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};

/// Finalizers without a domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// The characters of a prefix that a generated name keeps.
const PREFIX_MAX: usize = 58;

/// The length of the text that is appended to a prefix.
const GENERATED: &str = "aaaaa";

/// The scope of a kind, and the format of its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetaRules {
    /// Whether objects are in namespaces.
    pub(super) is_namespaced: bool,
    /// The check of names.
    pub(super) name: NameCheck,
    /// Whether finalizers without a domain are standard ones.
    pub(super) checks_finalizers: bool,
}

/// Names that are subdomains.
pub(super) fn subdomain(text: &str, is_prefix: bool) -> Vec<String> {
    names::dns1123_subdomain(&names::masked(text, is_prefix))
}

/// Names that are labels of DNS.
pub(super) fn label(text: &str, is_prefix: bool) -> Vec<String> {
    names::dns1123_label(&names::masked(text, is_prefix))
}

/// Names that are segments of a path.
pub(super) fn path_segment(text: &str, _is_prefix: bool) -> Vec<String> {
    names::path_segment(text, false)
}

/// The metadata as the API server completes it before validation: the namespace and a generated name.
fn completed(metadata: &Map<String, Value>, is_namespaced: bool) -> Map<String, Value> {
    let mut out = metadata.clone();
    let is_empty = |map: &Map<String, Value>, key: &str| {
        map.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
    };
    if is_namespaced && is_empty(&out, "namespace") {
        out.insert("namespace".to_owned(), "default".into());
    }
    if is_empty(&out, "name")
        && let Some(prefix) = out.get("generateName").and_then(Value::as_str)
        && !prefix.is_empty()
    {
        let prefix: String = prefix.chars().take(PREFIX_MAX).collect();
        out.insert("name".to_owned(), format!("{prefix}{GENERATED}").into());
    }
    // The API server sets these itself.
    for key in [
        "managedFields",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        out.remove(key);
    }
    out
}

/// Validates the metadata of a new object.
pub(super) fn validate_new(object: &Value, rules: MetaRules, out: &mut Causes) {
    let metadata = completed(metadata_of(object), rules.is_namespaced);
    let path = FieldPath::new("metadata");
    out.extend(meta_validation::validate_new(
        &metadata,
        rules.is_namespaced,
        rules.name,
        &path,
    ));
    if rules.checks_finalizers {
        finalizer_domains(object, &path, out);
    }
}

/// Validates the metadata of an update.
pub(super) fn validate_change(object: &Value, old: &Value, rules: MetaRules, out: &mut Causes) {
    let (mut new, mut stored) = (metadata_of(object).clone(), metadata_of(old).clone());
    for key in [
        "namespace",
        "uid",
        "creationTimestamp",
        "name",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        // An update without these fields keeps them.
        if !new.contains_key(key) || !stored.contains_key(key) {
            new.remove(key);
            stored.remove(key);
        }
    }
    new.remove("managedFields");
    new.remove("generation");
    let path = FieldPath::new("metadata");
    out.extend(meta_validation::validate_change(&new, &stored, &path));
    if rules.checks_finalizers {
        finalizer_domains(object, &path, out);
    }
}

/// Validates annotations.
pub(super) fn validate_annotations(object: &Value, path: &FieldPath, out: &mut Causes) {
    let mut metadata = Map::new();
    let annotations = value(object, "annotations");
    metadata.insert("annotations".to_owned(), annotations.clone());
    metadata.insert("name".to_owned(), "a".into());
    let findings = meta_validation::validate_new(&metadata, false, subdomain, path);
    out.extend(findings);
}

fn finalizer_domains(object: &Value, path: &FieldPath, out: &mut Causes) {
    let finalizers = texts(value(object, "metadata"), "finalizers");
    for (position, finalizer) in finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            out.invalid(path.child("finalizers").at(position), detail);
        }
    }
}

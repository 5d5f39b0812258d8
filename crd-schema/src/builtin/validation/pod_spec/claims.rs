//! Claims of volumes, and of devices.

use super::resources::amount;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    entries, is_equal, list, optional_text, set, text, texts, value,
};
use crate::builtin::validation::labels::{self, LabelValues, validate_selector};
use crate::builtin::validation::metadata::validate_annotations;
use crate::builtin::validation::quantities::nano;
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Validates the template of the claim of an ephemeral volume.
pub(super) fn claim_template(template: &Value, path: &FieldPath, out: &mut Causes) {
    let metadata = value(template, "metadata");
    let metadata_path = path.child("metadata");
    validate_annotations(metadata, &metadata_path, out);
    labels::validate(metadata, "labels", &metadata_path, out);
    for (key, _) in entries(template, "metadata") {
        if !matches!(key, "labels" | "annotations") && !is_equal(value(metadata, key), &Value::Null)
        {
            out.forbidden(metadata_path.clone().named(key), "cannot be set");
        }
    }
    claim_spec(value(template, "spec"), None, &path.child("spec"), out);
}

/// Validates the spec of a claim. The stored spec permits values that are not valid.
pub(in super::super) fn claim_spec(
    spec: &Value,
    old: Option<&Value>,
    path: &FieldPath,
    out: &mut Causes,
) {
    let modes_path = path.child("accessModes");
    let modes = texts(spec, "accessModes");
    if modes.is_empty() {
        out.required(modes_path.clone(), "at least 1 access mode is required");
    }
    let accepts_values = old.is_some_and(|it| !labels::is_valid_selector(value(it, "selector")));
    let values = if accepts_values {
        LabelValues::AnyAccepted
    } else {
        LabelValues::Validated
    };
    validate_selector(
        value(spec, "selector"),
        values,
        &path.child("selector"),
        out,
    );
    for mode in &modes {
        out.one_of(modes_path.clone(), mode, ACCESS_MODES);
    }
    let is_single = |it: &&str| *it == "ReadWriteOncePod";
    let is_other = |it: &&str| !is_single(it) && ACCESS_MODES.contains(it);
    if modes.iter().any(is_single) && modes.iter().any(is_other) {
        out.forbidden(
            modes_path,
            "may not use ReadWriteOncePod with other access modes",
        );
    }
    let storage_path = path.child("resources").entry("storage");
    match set(value(value(spec, "resources"), "requests"), "storage") {
        None => out.required(storage_path, ""),
        Some(storage) if nano(storage) <= 0 => {
            out.invalid(storage_path, "must be greater than zero");
        }
        Some(storage) => amount("storage", storage, &storage_path, out),
    }
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, key);
        if !class.is_empty() {
            out.reasons(&path.child(key), class, names::dns1123_subdomain(class));
        }
    }
    let mode = optional_text(spec, "volumeMode");
    out.optional(path.child("volumeMode"), mode, &["Block", "Filesystem"]);
    data_sources(spec, old, path, out);
}

fn data_sources(spec: &Value, old: Option<&Value>, path: &FieldPath, out: &mut Causes) {
    let accepts_groups = old.is_some_and(|old| {
        let mut sources = ["dataSource", "dataSourceRef"].iter();
        sources.any(|it| set(value(old, it), "apiGroup").is_some())
    });
    for key in ["dataSource", "dataSourceRef"] {
        let Some(source) = set(spec, key) else {
            continue;
        };
        let path = path.child(key);
        out.not_empty(path.child("name"), text(source, "name"));
        out.not_empty(path.child("kind"), text(source, "kind"));
        let group = text(source, "apiGroup");
        if group.is_empty() && text(source, "kind") != "PersistentVolumeClaim" {
            out.invalid(
                path,
                "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
            );
        } else if !group.is_empty() && !accepts_groups {
            out.reasons(
                &path.child("apiGroup"),
                group,
                names::dns1123_subdomain(group),
            );
        }
    }
    let (source, reference) = (set(spec, "dataSource"), set(spec, "dataSourceRef"));
    if let (Some(source), Some(reference)) = (source, reference) {
        let is_same = ["apiGroup", "kind", "name"]
            .iter()
            .all(|it| is_equal(value(source, it), value(reference, it)));
        if !is_same {
            out.invalid(path.clone(), "must match dataSourceRef");
        }
    }
}

/// Validates the claims of devices of a pod.
pub(super) fn resource_claims(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let mut seen: Vec<&str> = Vec::new();
    for (position, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let path = path.child("resourceClaims").at(position);
        let name = text(claim, "name");
        if name.is_empty() {
            out.required(path.child("name"), "");
        } else if seen.contains(&name) {
            out.duplicate(path.child("name"), name);
        } else {
            out.reasons(&path.child("name"), name, names::dns1123_label(name));
            seen.push(name);
        }
        let keys = ["resourceClaimName", "resourceClaimTemplateName"];
        let references = keys.map(|it| optional_text(claim, it));
        if references.iter().flatten().count() != 1 {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            out.invalid(path.clone(), detail);
        }
        for (key, name) in keys.into_iter().zip(references) {
            if let Some(name) = name {
                out.reasons(&path.child(key), name, names::dns1123_subdomain(name));
            }
        }
    }
}

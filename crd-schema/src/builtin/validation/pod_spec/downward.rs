//! Files of volumes that hold keys of objects or fields of pods.

use super::environment::{FILE_FIELDS, field_reference, resource_reference};
use super::paths;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{integer, list, set, text};
use crate::builtin::validation::formats::FILE_MODE_MAX;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Validates the mode of a file.
pub(super) fn mode(source: &Value, key: &'static str, path: &FieldPath, out: &mut Causes) {
    if integer(source, key).is_some_and(|it| !(0..=FILE_MODE_MAX).contains(&it)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        out.invalid(path.child(key), detail);
    }
}

/// Validates the keys that become files.
pub(super) fn key_paths(source: &Value, path: &FieldPath, out: &mut Causes) {
    for (position, item) in list(source, "items").iter().enumerate() {
        let path = path.child("items").at(position);
        out.not_empty(path.child("key"), text(item, "key"));
        file_path(item, &path, out);
        mode(item, "mode", &path, out);
    }
}

fn file_path(item: &Value, path: &FieldPath, out: &mut Causes) {
    let file = text(item, "path");
    out.not_empty(path.child("path"), file);
    out.reasons(&path.child("path"), file, paths::non_reserved(file));
}

/// Validates the fields that become files. The causes name the source, not the item.
pub(super) fn files(source: &Value, path: &FieldPath, out: &mut Causes) {
    for item in list(source, "items") {
        file_path(item, path, out);
        let resource = set(item, "resourceFieldRef");
        match (set(item, "fieldRef"), resource) {
            (Some(field), _) => {
                field_reference(field, FILE_FIELDS, &path.child("fieldRef"), out);
                if resource.is_some() {
                    let detail =
                        "fieldRef and resourceFieldRef can not be specified simultaneously";
                    out.invalid(path.clone(), detail);
                }
            }
            (None, Some(resource)) => {
                resource_reference(resource, true, &path.child("resourceFieldRef"), out);
            }
            (None, None) => {
                let detail = "one of fieldRef and resourceFieldRef is required";
                out.required(path.clone(), detail);
            }
        }
        mode(item, "mode", path, out);
    }
}

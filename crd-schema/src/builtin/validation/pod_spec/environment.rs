//! Environment variables, and references to fields of pods.

use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{list, set, text, text_or, value};
use crate::builtin::validation::formats::{config_key, environment_variable};
use crate::builtin::validation::quantities;
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

use super::paths;

/// Fields that a variable can have.
const VARIABLE_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields that a file can have.
pub(super) const FILE_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Fields of pods that have labels.
const POD_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const CONTAINER_RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Validates the variables of a container.
pub(super) fn validate(container: &Value, path: &FieldPath, out: &mut Causes) {
    for (position, variable) in list(container, "env").iter().enumerate() {
        let path = path.child("env").at(position);
        let name = text(variable, "name");
        if name.is_empty() {
            out.required(path.child("name"), "");
        } else {
            out.reasons(&path.child("name"), name, environment_variable(name));
        }
        if let Some(source) = set(variable, "valueFrom") {
            let has_value = !text(variable, "value").is_empty();
            validate_source(source, has_value, &path.child("valueFrom"), out);
        }
    }
    let path = path.child("envFrom");
    for (position, source) in list(container, "envFrom").iter().enumerate() {
        let item = path.at(position);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            out.reasons(&item.child("prefix"), prefix, environment_variable(prefix));
        }
        let mut count: usize = 0;
        for key in ["configMapRef", "secretRef"] {
            let Some(reference) = set(source, key) else {
                continue;
            };
            count = count.saturating_add(1);
            let field = item.child(key).child("name");
            let name = text(reference, "name");
            if name.is_empty() {
                out.required(field, "");
            } else {
                out.reasons(&field, name, names::resource_name(name, true));
            }
        }
        if count == 0 {
            out.invalid(
                path.clone(),
                "must specify one of: `configMapRef` or `secretRef`",
            );
        } else if count > 1 {
            out.invalid(
                path.clone(),
                "may not have more than one field specified at a time",
            );
        }
    }
}

fn validate_source(source: &Value, has_value: bool, path: &FieldPath, out: &mut Causes) {
    let mut count: usize = 0;
    let mut add = |key: &'static str| {
        let reference = set(source, key)?;
        count = count.saturating_add(1);
        Some((reference, path.child(key)))
    };
    if let Some((reference, path)) = add("fieldRef") {
        field_reference(reference, VARIABLE_FIELDS, &path, out);
    }
    if let Some((reference, path)) = add("resourceFieldRef") {
        resource_reference(reference, false, &path, out);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if let Some((reference, path)) = add(key) {
            let name = text(reference, "name");
            out.reasons(&path.child("name"), name, names::dns1123_subdomain(name));
            let key = text(reference, "key");
            if key.is_empty() {
                out.required(path.child("key"), "");
            } else {
                out.reasons(&path.child("key"), key, config_key(key));
            }
        }
    }
    if let Some((reference, path)) = add("fileKeyRef") {
        file_reference(reference, &path, out);
    }
    let detail = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if has_value {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    out.invalid(path.clone(), detail);
}

/// The reasons why a text is not accepted.
type Check = fn(&str) -> Vec<String>;

fn file_reference(reference: &Value, path: &FieldPath, out: &mut Causes) {
    let checks: [(&'static str, Check); 3] = [
        ("key", environment_variable),
        ("volumeName", names::dns1123_label),
        ("path", paths::no_backsteps),
    ];
    for (key, reasons) in checks {
        let value = text(reference, key);
        if value.is_empty() {
            out.required(path.child(key), "");
        } else {
            out.reasons(&path.child(key), value, reasons(value));
        }
    }
}

/// Validates a reference to a field of the pod.
pub(super) fn field_reference(
    reference: &Value,
    accepted: &[&str],
    path: &FieldPath,
    out: &mut Causes,
) {
    let field = text(reference, "fieldPath");
    let field_path = path.child("fieldPath");
    if field.is_empty() {
        out.required(field_path, "");
        return;
    }
    let subscripted = field
        .strip_suffix("']")
        .and_then(|it| it.split_once("['"))
        .filter(|it| !it.0.is_empty());
    let is_known = text_or(reference, "apiVersion", "v1") == "v1"
        && match subscripted {
            Some((name, _)) => matches!(name, "metadata.annotations" | "metadata.labels"),
            None => field == "spec.host" || POD_FIELDS.contains(&field),
        };
    if !is_known {
        out.invalid(
            field_path,
            "error converting fieldPath: field label not supported",
        );
        return;
    }
    match subscripted {
        Some(("metadata.annotations", key)) => {
            out.reasons(path, key, names::qualified_name(&key.to_lowercase()));
        }
        Some((_, key)) => out.reasons(path, key, names::qualified_name(key)),
        None => {
            let field = if field == "spec.host" {
                "spec.nodeName"
            } else {
                field
            };
            out.one_of(field_path, field, accepted);
        }
    }
}

/// Validates a reference to a resource of a container.
pub(super) fn resource_reference(
    reference: &Value,
    is_file: bool,
    path: &FieldPath,
    out: &mut Causes,
) {
    let resource = text(reference, "resource");
    let is_huge_page =
        resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if is_file && text(reference, "containerName").is_empty() {
        out.required(path.child("containerName"), "");
    } else if resource.is_empty() {
        out.required(path.child("resource"), "");
    } else if !is_huge_page {
        out.one_of(path.child("resource"), resource, CONTAINER_RESOURCES);
    }
    let Some(divisor) = quantities::parse(value(reference, "divisor")) else {
        return;
    };
    if divisor.is_zero() {
        return;
    }
    let units: &[&str] = match resource {
        "limits.cpu" | "requests.cpu" => &["1m", "1"],
        _ if is_huge_page || CONTAINER_RESOURCES.contains(&resource) => &[
            "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
        ],
        _ => return,
    };
    if !units.contains(&divisor.to_string().as_str()) {
        let detail = format!("only the values {} are supported", units.join(", "));
        out.invalid(path.child("divisor"), detail);
    }
}

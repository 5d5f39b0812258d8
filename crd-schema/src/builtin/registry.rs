//! What an API server sets in objects of built-in kinds, whatever the request has: the status, values of allocators, and
//! what its admission plugins add.
//!
//! Source: `k8s.io/kubernetes` v1.37, `pkg/registry/*/*/strategy.go` and `plugin/pkg/admission`. Addresses, ports and
//! uids are not known without a cluster, and are left out.

mod pods;
mod services;

use super::decode::zero;
use super::json::{is_unset, items_mut, object_at, object_mut, text};
use super::table::{Table, TypeId};
use crate::crd::base64;
use crate::crd::system_fields::reset_system_fields;
use serde_json::{Map, Value, json};

/// The types with a status that only the subresource sets.
const WITH_STATUS: &[&str] = &[
    "apps/v1.DaemonSet",
    "apps/v1.Deployment",
    "apps/v1.ReplicaSet",
    "apps/v1.StatefulSet",
    "autoscaling/v2.HorizontalPodAutoscaler",
    "batch/v1.CronJob",
    "batch/v1.Job",
    "core/v1.PersistentVolumeClaim",
    "core/v1.Pod",
    "core/v1.Service",
    "networking/v1.Ingress",
    "policy/v1.PodDisruptionBudget",
];

/// Sets the fields of a defaulted object that the API server sets.
pub(super) fn prepare(
    table: &Table,
    of: TypeId,
    type_name: &str,
    object: &mut Value,
    old: Option<&Value>,
) {
    let Value::Object(fields) = object else {
        return;
    };
    if old.is_none()
        && let Some(metadata) = object_mut(fields, "metadata")
    {
        reset_system_fields(metadata);
    }
    if WITH_STATUS.contains(&type_name) {
        let stored = old.and_then(|it| it.get("status")).cloned();
        let empty = || {
            table
                .field(of, "status")
                .map(|it| zero(table, &it.value_type))
        };
        if let Some(status) = stored.or_else(empty) {
            fields.insert("status".to_owned(), status);
        }
    }
    match type_name {
        "core/v1.Pod" => pods::prepare(fields, old),
        "core/v1.Service" => services::prepare(fields, old),
        "core/v1.Secret" => merge_string_data(fields),
        "core/v1.ServiceAccount" => keep_names_of_secrets(fields),
        "core/v1.PersistentVolumeClaim" => prepare_claim(fields, old),
        "apps/v1.DaemonSet" => add_template_generation(fields, old),
        "batch/v1.Job" if old.is_none() => add_job_selector(fields),
        _ => {}
    }
}

/// Source: `pkg/apis/core/v1/conversion.go`.
fn merge_string_data(fields: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = fields.remove("stringData") else {
        return;
    };
    let data = fields
        .entry("data")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(data) = data {
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            data.insert(key, base64::encode(text.as_bytes()).into());
        }
    }
}

fn keep_names_of_secrets(fields: &mut Map<String, Value>) {
    for secret in items_mut(fields, "secrets") {
        secret.retain(|name, _| name == "name");
    }
}

/// The finalizer comes from the admission plugin `StorageObjectInUseProtection`.
fn prepare_claim(fields: &mut Map<String, Value>, old: Option<&Value>) {
    const FINALIZER: &str = "kubernetes.io/pvc-protection";
    if old.is_none()
        && let Some(metadata) = object_mut(fields, "metadata")
        && let Value::Array(finalizers) = metadata.entry("finalizers").or_insert_with(|| json!([]))
        && !finalizers.contains(&FINALIZER.into())
    {
        finalizers.push(FINALIZER.into());
    }
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    // Each of the two fields is a copy of the other one.
    for (from, to) in [
        ("dataSource", "dataSourceRef"),
        ("dataSourceRef", "dataSource"),
    ] {
        let is_local = object_at(spec, from).is_none_or(|it| is_unset(it, "namespace"));
        if is_unset(spec, to)
            && is_local
            && let Some(source) = spec.get(from).cloned()
        {
            spec.insert(to.to_owned(), source);
        }
    }
}

/// The API server stores the generation of the template in an annotation.
fn add_template_generation(fields: &mut Map<String, Value>, old: Option<&Value>) {
    const ANNOTATION: &str = "deprecated.daemonset.template.generation";
    let stored = old
        .and_then(|it| it.get("metadata"))
        .and_then(Value::as_object);
    let stored = stored.and_then(|it| object_at(it, "annotations"));
    let before = stored.map_or("", |it| text(it, ANNOTATION));
    let Some(metadata) = object_mut(fields, "metadata") else {
        return;
    };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        let given = text(annotations, ANNOTATION)
            .parse::<i64>()
            .unwrap_or_default();
        let number = match before.parse::<i64>() {
            Ok(number) => number,
            Err(_) => given.max(1),
        };
        annotations.insert(ANNOTATION.to_owned(), number.to_string().into());
    }
}

/// Source: `generateSelector` in `pkg/registry/batch/job/strategy.go`, without the labels with the uid.
fn add_job_selector(fields: &mut Map<String, Value>) {
    let name = fields
        .get("metadata")
        .and_then(|it| it.get("name"))
        .cloned();
    let name = name.unwrap_or_else(|| "".into());
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let selector = spec.entry("selector").or_insert_with(|| json!({}));
    if let Value::Object(selector) = selector {
        selector.entry("matchLabels").or_insert_with(|| json!({}));
    }
    let template = object_mut(spec, "template").and_then(|it| object_mut(it, "metadata"));
    let Some(metadata) = template else {
        return;
    };
    if let Value::Object(labels) = metadata.entry("labels").or_insert_with(|| json!({})) {
        for label in ["job-name", "batch.kubernetes.io/job-name"] {
            labels.entry(label).or_insert_with(|| name.clone());
        }
    }
}

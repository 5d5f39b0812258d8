//! Sets what the API server sets in the spec and status of an object, after its defaults and before its validation.

mod pod;
mod qos;
mod service;
mod workloads;

use super::fields::{ensure, items, set, text};
use super::kind::BuiltInKind;
use serde_json::{Map, Value, json};

/// The finalizer that keeps a claim while a pod uses it.
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The kinds of which only the subresource `status` changes the status.
const KINDS_WITH_STATUS: [&str; 10] = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "Service",
];

/// The remaining ones.
const MORE_KINDS_WITH_STATUS: [&str; 3] = ["ReplicaSet", "ReplicationController", "StatefulSet"];

/// Prepares an object as the strategy of its kind (`pkg/registry`) and the default admission plugins do.
pub(super) fn prepare(kind: BuiltInKind, object: &mut Value, old: Option<&Value>) {
    let name = kind.name();
    if KINDS_WITH_STATUS.contains(&name) || MORE_KINDS_WITH_STATUS.contains(&name) {
        let stored = old.and_then(|it| it.get("status")).cloned();
        set(object, "status", stored.unwrap_or_else(|| json!({})));
    }
    match name {
        "Pod" => pod::prepare(object, old),
        "Job" if old.is_none() => workloads::generate_selector(object),
        "DaemonSet" => workloads::set_template_generation(object, old),
        "PersistentVolumeClaim" => prepare_claim(object, old),
        "Service" => service::prepare(object, old),
        "Secret" => prepare_secret(object),
        "ServiceAccount" => {
            for secret in items(object, "secrets") {
                *secret = match text(secret, "name") {
                    "" => json!({}),
                    name => json!({ "name": name }),
                };
            }
        }
        _ => {}
    }
}

fn prepare_claim(object: &mut Value, old: Option<&Value>) {
    if old.is_none()
        && let Some(metadata) = ensure(object, "metadata")
    {
        let mut finalizers = metadata.get("finalizers").cloned().unwrap_or_default();
        if finalizers.is_null() {
            finalizers = json!([]);
        }
        if let Value::Array(finalizers) = &mut finalizers
            && !finalizers.iter().any(|it| it == CLAIM_PROTECTION)
        {
            finalizers.push(CLAIM_PROTECTION.into());
        }
        set(metadata, "finalizers", finalizers);
    }
    let is_used = old.is_some_and(|it| {
        ["dataSource", "dataSourceRef"]
            .iter()
            .any(|key| it.pointer(&format!("/spec/{key}")).is_some())
    });
    if let Some(spec) = ensure(object, "spec") {
        normalize_sources(spec, is_used);
    }
}

/// Copies `dataSource` to `dataSourceRef` or back. A source that is neither a claim nor a snapshot is dropped.
fn normalize_sources(spec: &mut Value, is_used: bool) {
    let source = spec.get("dataSource").cloned();
    let reference = spec.get("dataSourceRef").cloned();
    match (source, reference) {
        (Some(source), None) => {
            let is_known = matches!(
                (text(&source, "apiGroup"), text(&source, "kind")),
                ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
            );
            if is_known || is_used {
                set(spec, "dataSourceRef", source);
            } else {
                super::fields::remove(spec, "dataSource");
            }
        }
        (None, Some(reference)) if text(&reference, "namespace").is_empty() => {
            let mut source = reference;
            super::fields::remove(&mut source, "namespace");
            set(spec, "dataSource", source);
        }
        _ => {}
    }
}

/// `stringData` is merged into `data`.
fn prepare_secret(object: &mut Value) {
    let Some(Value::Object(texts)) = super::fields::remove(object, "stringData") else {
        return;
    };
    if texts.is_empty() {
        return;
    }
    if let Some(data) = ensure(object, "data") {
        for (key, value) in texts {
            let bytes = value.as_str().unwrap_or_default().as_bytes();
            set(data, &key, crate::crd::base64::encode(bytes));
        }
    }
}

/// Completes the stored form, where the types of the API server differ from those of its requests.
pub(super) fn complete(kind: BuiltInKind, object: &mut Value) {
    if kind.name() == "Job"
        && object.pointer("/spec/manualSelector") != Some(&Value::Bool(true))
        && let Some(spec) = ensure(object, "spec")
        && let Some(selector) = ensure(spec, "selector")
    {
        // The label with the uid, which the API server chooses, is in this map.
        super::fields::default(selector, "matchLabels", Map::new());
    }
}

//! Conversion of objects into the core, and of decisions into objects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod admission_status;
mod class_events;
mod event_cluster;
mod event_order;
mod events;
mod fields;
mod good_examples;
mod pod_defaults;
mod preemption_fields;
mod quotas;
mod recorded_eligibility;
mod tenant_names;
mod test_cluster;
mod workloads;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// By a `Value`, whose decoders the crates contain: those of a YAML parser for pods take a minute to compile.
fn yaml<T: DeserializeOwned>(text: &str) -> T {
    let value: Value = serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    object(&value)
}

fn object<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}:\n{value}"))
}

/// An object of one of lockkeeper's kinds.
fn lockkeeper_object(kind: &str, namespace: Option<&str>, name: &str, spec: &Value) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

//! A new pod with the queue label waits with the scheduling gate of the controller.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use k8s_openapi::api::core::v1::Pod;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Context, Operation};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Value, json};

/// The gates of a pod after its defaults were applied.
fn gates(pod: &Value, is_new: bool) -> Value {
    let context = Context {
        cluster: &Index::default(),
        settings: &Settings::default(),
    };
    let mut out = pod.clone();
    let object: Pod = serde_json::from_value(pod.clone()).unwrap();
    let old = (!is_new).then_some(&object);
    for it in Pod::defaults(&object, old, &context).items() {
        it.apply(&mut out);
    }
    out["spec"]["schedulingGates"].clone()
}

fn pod(labels: &Value, gates: &Value) -> Value {
    json!({"metadata": {"labels": labels}, "spec": {"containers": [], "schedulingGates": gates}})
}

#[test]
fn new_pod_with_queue_label_gets_gate() {
    let ours = json!({"name": "lockkeeper.dev/admission"});
    let other = json!({"name": "example.com/other"});
    let queued = json!({"lockkeeper.dev/queue-name": "q"});
    let empty = json!({"lockkeeper.dev/queue-name": ""});
    for (labels, before, is_new, after) in [
        (&queued, json!([]), true, json!([ours])),
        (&empty, json!([]), true, json!([ours])),
        (&queued, json!([other]), true, json!([other, ours])),
        (&queued, json!([ours, other]), true, json!([ours, other])),
        // The controller has removed the gate.
        (&queued, json!([]), false, json!([])),
        (&json!({"app": "a"}), json!([]), true, json!([])),
    ] {
        let pod = pod(labels, &before);
        assert_eq!(gates(&pod, is_new), after, "{pod}");
    }
}

#[test]
fn pods_are_registered_by_either_label_and_defaulted_by_queue_label() {
    let registrations = registry::known_registrations();
    let found = registrations.iter().find(|it| it.kind == "Pod").unwrap();
    let queue = "lockkeeper.dev/queue-name";
    assert_eq!(
        found.selected_by,
        ["pod-group.scheduling.sigs.k8s.io", queue]
    );
    assert_eq!(found.defaults_selected_by, [queue]);
    assert_eq!(found.defaulted_on, [Operation::Create].into());
}

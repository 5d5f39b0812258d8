#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::super::evaluation::{OPERATOR, denials, shipped};
use super::*;
use lockkeeper_crd_schema::admission_policy::Resource;
use serde_json::{Value, json};

const NOT_BY_LOCKKEEPER: &str = "request.userInfo.username != 'lockkeeper'";

/// An account of the tenant.
const OWN_ACCOUNT: &str = "system:serviceaccount:team:default";

fn owner(version: &str, kind: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": "train", "uid": "u", "controller": true})
}

/// The `RayCluster` of a `RayJob`.
fn child() -> Value {
    json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {"replicas": 1}, "metadata": {
        "name": "train-x", "namespace": "team", "labels": {"ray.io/originated-from-cr-name": "train"},
        "ownerReferences": [owner("ray.io/v1", "RayJob")]}})
}

fn changed(object: &Value, change: &Value) -> Value {
    let mut out = object.clone();
    json_patch::merge(&mut out, change);
    out
}

#[test]
fn tenants_do_not_change_children() {
    let guard = children_guard(&shipped("rayjobs"), NOT_BY_LOCKKEEPER).unwrap();
    let clusters = Resource::new("ray.io", "v1", "RayCluster", "rayclusters");
    let denied =
        |old: Option<&Value>, new: &Value, name: &str| denials(&guard, &clusters, old, new, name);
    let child = child();
    for (change, message) in [
        (json!({"spec": {"replicas": 9}}), "spec: only"),
        (json!({"spec": null}), "spec: only"),
        (
            json!({"metadata": {"labels": {"ray.io/originated-from-cr-name": null}}}),
            "metadata.labels: only",
        ),
        (
            json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "main"}}}),
            "metadata.labels: only",
        ),
        (
            json!({"metadata": {"ownerReferences": null}}),
            "metadata.ownerReferences: only",
        ),
        (
            json!({"metadata": {"finalizers": ["orphan"]}}),
            "metadata.finalizers: only",
        ),
    ] {
        let after = changed(&child, &change);
        for name in ["tenant", OWN_ACCOUNT] {
            let found = denied(Some(&child), &after, name);
            assert_eq!(found.len(), 1, "{change}: {found:?}");
            assert!(found.iter().all(|it| it.starts_with(message)), "{found:?}");
        }
        for name in ["lockkeeper", OPERATOR] {
            assert_eq!(denied(Some(&child), &after, name), [""; 0], "{change}");
        }
    }
    // One that becomes a child.
    let free = changed(&child, &json!({"metadata": {"ownerReferences": null}}));
    assert_eq!(denied(Some(&free), &child, "tenant").len(), 1);
    assert_eq!(denied(None, &child, "tenant").len(), 1);
    assert_eq!(denied(None, &child, OPERATOR), [""; 0]);
    let other = changed(&child, &json!({"metadata": {"labels": {"team": "a"}}}));
    assert_eq!(denied(Some(&child), &other, "tenant"), [""; 0]);
    // Its own cluster is not concerned.
    assert_eq!(denied(None, &free, "tenant"), [""; 0]);
    let scaled = changed(&free, &json!({"spec": {"replicas": 9}}));
    assert_eq!(denied(Some(&free), &scaled, "tenant"), [""; 0]);
    assert!(children_guard(&shipped("mpijobs"), NOT_BY_LOCKKEEPER).is_none());
}

#[test]
fn pods_keep_labels_and_owner() {
    let pods = Resource::new("", "v1", "Pod", "pods");
    for (plural, version, kind, label) in [
        ("rayjobs", "ray.io/v1", "RayCluster", "ray.io/cluster"),
        (
            "mpijobs",
            "kubeflow.org/v2beta1",
            "MPIJob",
            "training.kubeflow.org/job-name",
        ),
        (
            "sparkapplications",
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            "sparkoperator.k8s.io/app-name",
        ),
    ] {
        let guard = pods_guard(&shipped(plural), NOT_BY_LOCKKEEPER);
        let denied =
            |old: &Value, new: &Value, name: &str| denials(&guard, &pods, Some(old), new, name);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "p", "namespace": "team", "labels": {label: "train"},
            "ownerReferences": [owner(version, kind)]}});
        let without_owner = changed(&pod, &json!({"metadata": {"ownerReferences": null}}));
        let without_label = changed(&pod, &json!({"metadata": {"labels": {label: null}}}));
        for (old, new, message) in [
            (&pod, &without_label, "metadata.labels: only"),
            (&pod, &without_owner, "metadata.ownerReferences: only"),
            (&without_label, &pod, "metadata.labels: only"),
            // Spark's driver owns the executors: only the label names the application.
            (&without_owner, &pod, "metadata.ownerReferences: only"),
        ] {
            let found = denied(old, new, "tenant");
            assert_eq!(found.len(), 1, "{plural}: {found:?}");
            assert!(found.iter().all(|it| it.starts_with(message)), "{found:?}");
            assert_eq!(denied(old, new, OPERATOR), [""; 0], "{plural}");
        }
        let other = changed(&pod, &json!({"metadata": {"labels": {"team": "a"}}}));
        assert_eq!(denied(&pod, &other, "tenant"), [""; 0]);
        let free = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}});
        let labelled = changed(&free, &json!({"metadata": {"labels": {label: "other"}}}));
        assert_eq!(denied(&free, &labelled, "tenant"), [""; 0], "{plural}");
    }
}

#[test]
fn queued_jobs_get_no_orphan_finalizer() {
    let kind = shipped("rayjobs");
    let guard = deletion_guard(&kind);
    let jobs = Resource::new("ray.io", "v1", "RayJob", "rayjobs");
    let job = |labels: &Value, finalizers: &Value| {
        json!({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {
            "name": "train", "namespace": "team", "labels": labels, "finalizers": finalizers}})
    };
    let (queued, free) = (json!({"lockkeeper.dev/queue-name": "main"}), json!({}));
    for (labels, old, new, denied) in [
        (&queued, json!([]), json!(["orphan"]), 1),
        (&queued, json!(["orphan"]), json!(["orphan", "a"]), 0),
        (&queued, json!([]), json!(["a"]), 0),
        (&free, json!([]), json!(["orphan"]), 0),
    ] {
        let (before, after) = (job(labels, &old), job(labels, &new));
        let found = denials(&guard, &jobs, Some(&before), &after, "tenant");
        assert_eq!(found.len(), denied, "{labels} {old} {new}: {found:?}");
    }
}

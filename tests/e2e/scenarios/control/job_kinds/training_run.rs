//! A kind of jobs with its definition and its declaration.

use super::super::fixture::{self, ControllerFixture};
use super::shipped::pod;
use serde_json::{Value, json};

/// A kind with conditions of the usual form and a list of pod templates.
pub(super) fn definition() -> Value {
    let template = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let role = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "replicas": {"type": "integer"}, "least": {"type": "integer"},
        "template": template,
    }});
    let condition = json!({"type": "object", "properties": {
        "type": {"type": "string"}, "status": {"type": "string"}, "message": {"type": "string"},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "trainingruns.training.example.com"},
        "spec": {
            "group": "training.example.com", "scope": "Namespaced",
            "names": {"kind": "TrainingRun", "plural": "trainingruns", "singular": "trainingrun"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "suspend": {"type": "boolean"}, "state": {"type": "string"},
                        "manager": {"type": "string"}, "priority": {"type": "string"},
                        "attempt": {"type": "string"},
                        "roles": {"type": "array", "items": role},
                    }},
                    "status": {"type": "object", "properties": {
                        "done": {"type": "integer"},
                        "children": {"type": "array", "items": {"type": "string"}},
                        "conditions": {"type": "array", "items": condition},
                    }},
                }}},
            }],
        },
    })
}

/// The declaration, and the rights of the controller on the kind.
pub(super) fn declaration(count: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "JobKind",
            "metadata": {"name": "trainingruns.training.example.com"},
            "spec": {
                "version": "v1", "kind": "TrainingRun",
                "podSets": [{"forEach": "spec.roles", "template": "template", "count": count}],
            },
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {
                "name": "lockkeeper-job-kind-trainingruns",
                "labels": {"rbac.lockkeeper.dev/job-kinds": "true"},
            },
            "rules": [
                {"apiGroups": ["training.example.com"], "resources": ["trainingruns"],
                    "verbs": ["get", "list", "watch", "patch"]},
                {"apiGroups": ["training.example.com"], "resources": ["trainingruns/finalizers"],
                    "verbs": ["update"]},
            ],
        },
    ]})
}

pub(super) fn run(name: &str, suspend: bool) -> Value {
    let role = |name: &str, replicas: u32| json!({"name": name, "replicas": replicas, "template": pod("1")});
    json!({
        "apiVersion": "training.example.com/v1", "kind": "TrainingRun",
        "metadata": {"name": name, "namespace": "default", "labels": {
            "lockkeeper.dev/queue-name": "q", "lockkeeper.dev/priority-class": "low",
        }},
        "spec": {"suspend": suspend, "roles": [role("leader", 1), role("workers", 3)]},
    })
}

pub(super) fn conditions(all: &[(&str, &str)]) -> Value {
    let all = all
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status, "message": "done"}));
    json!({"status": {"conditions": all.collect::<Vec<_>>()}})
}

#[track_caller]
pub(super) fn install(site: &mut ControllerFixture<'_>, definition: &Value) {
    let folder = site.stage.cluster().folder().join("job-kind.json");
    std::fs::write(&folder, definition.to_string()).unwrap();
    site.stage.cluster().kubectl().install_crds(&folder);
}

#[track_caller]
pub(super) fn apply(site: &mut ControllerFixture<'_>, manifests: &str) {
    let kubectl = site.stage.cluster().kubectl();
    kubectl.apply(manifests, &[]).expect_accepted();
}

/// A queue of 4 CPUs and 16 GiB on spot nodes.
#[track_caller]
pub(super) fn spot_queue(site: &ControllerFixture<'_>) {
    site.classes();
    let spec = json!({
        "nodeLabels": {"test.lockkeeper.dev/kind": "spot"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    });
    site.objects.create(&fixture::flavor("default", &spec));
    site.queue(
        "q",
        4,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}, "resourceGroups": [{
            "coveredResources": ["cpu", "memory"],
            "flavors": [{"name": "default", "resources": [
                {"name": "cpu", "nominalQuota": 4}, {"name": "memory", "nominalQuota": "16Gi"},
            ]}],
        }]}),
    );
}

#[track_caller]
pub(super) fn wait_for_start(site: &ControllerFixture<'_>, name: &str) -> Value {
    site.objects
        .wait_until("TrainingRun", name, |it| it["spec"]["suspend"] == false)
}

/// Removes the objects of a kind and its declaration.
#[track_caller]
pub(super) fn remove(site: &ControllerFixture<'_>, kind: &str, declaration: &str) {
    for object in site.objects.list(kind) {
        let name = object["metadata"]["name"].as_str().unwrap();
        site.objects.delete(kind, name);
        site.objects.wait_until_gone(kind, name);
    }
    if site.objects.find("JobKind", declaration).is_some() {
        site.objects.delete("JobKind", declaration);
        site.objects.wait_until_gone("JobKind", declaration);
    }
}

//! Objects for tests of adoptions.

use super::objects::{ClusterObjects, ListedJob};
use super::plan::Plan;
use super::report::json_report;
use lockkeeper_api::JobKind;
use lockkeeper_controller::job_adapters::JobKinds;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) fn typed<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

/// A queue of this many CPUs of each flavor, for the LocalQueue `q` in the namespace `team`.
pub(super) fn cluster(flavors: &[(&str, Value, u32)]) -> ClusterObjects {
    let quotas: Vec<Value> = flavors
        .iter()
        .map(|(name, _, cpu)| {
            json!({"name": name, "resources": [{"name": "cpu", "nominalQuota": cpu}]})
        })
        .collect();
    ClusterObjects {
        cluster_queues: vec![typed(json!({
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue",
            "metadata": {"name": "main"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": quotas}],
                "preemption": {"withinClusterQueue": "LowerPriority"},
            },
        }))],
        flavors: flavors
            .iter()
            .map(|(name, spec, _)| {
                typed(json!({
                    "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ResourceFlavor",
                    "metadata": {"name": name}, "spec": spec,
                }))
            })
            .collect(),
        local_queues: vec![typed(json!({
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "LocalQueue",
            "metadata": {"name": "q", "namespace": "team"},
            "spec": {"clusterQueue": "main"},
        }))],
        namespaces: vec![typed(json!({"metadata": {"name": "team"}}))],
        ..ClusterObjects::default()
    }
}

pub(super) fn plain(cpu: u32) -> ClusterObjects {
    cluster(&[("default", json!({}), cpu)])
}

/// A running Job of one pod, created at this minute.
pub(super) fn job(name: &str, cpu: u32, minute: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": "team", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
        },
        "spec": {"parallelism": 1, "completions": 1, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "a", "image": "registry.example.com/a:1", "resources": {"requests": {"cpu": cpu}}}],
        }}},
        "status": {"active": 1, "startTime": "2026-01-01T01:00:00Z"},
    })
}

pub(super) fn with(mut object: Value, change: &Value) -> Value {
    merge(&mut object, change);
    object
}

/// Applies a merge patch (RFC 7386).
pub(super) fn merge(object: &mut Value, change: &Value) {
    let Some(changes) = change.as_object() else {
        *object = change.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in changes {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut object[key.as_str()], value);
        }
    }
}

/// The kinds of jobs with a declared one, `Run`.
pub(super) fn run_kinds() -> JobKinds {
    let mut kinds = JobKinds::default();
    let declaration: JobKind = typed(json!({
        "metadata": {"name": "runs.example.com"},
        "spec": {
            "version": "v1", "kind": "Run",
            "managedBy": {"path": "spec.manager", "controller": "example.com/operator"},
            "podSets": [{"name": "main", "template": "spec.template", "count": "self.spec.pods"}],
        },
    }));
    kinds.declare_object(&declaration).unwrap();
    kinds
}

/// Jobs, JobSets and runs, as they are listed.
pub(super) fn listed(jobs: Vec<Value>) -> Vec<ListedJob> {
    let kinds = run_kinds();
    let kind_of = |object: &Value| {
        let mut all = 0..kinds.count();
        all.find(|it| object["kind"] == kinds.name(*it)).unwrap()
    };
    let listed = jobs.into_iter().map(|object| ListedJob {
        kind: kind_of(&object),
        object,
    });
    listed.collect()
}

/// Name, result and reason of each Job.
pub(super) fn results(plan: &Plan) -> Vec<String> {
    let report: Value = serde_json::from_str(&json_report(plan, false).unwrap()).unwrap();
    let jobs = report["jobs"].as_array().unwrap().iter();
    jobs.map(|it| {
        let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let line = [text("name"), text("result"), text("reason")].join(" ");
        line.trim_end().to_owned()
    })
    .collect()
}

//! Defaulted fields, as a patch.

use super::{create, queue, request, review, server, workload};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// Applies the patch of a response.
pub(crate) fn patched(object: &Value, answer: &Value) -> Value {
    let mut out = object.clone();
    if let Some(patch) = answer["patch"].as_str() {
        assert_eq!(answer["patchType"], "JSONPatch");
        let patch: json_patch::Patch =
            serde_json::from_slice(&BASE64_STANDARD.decode(patch).unwrap()).unwrap();
        json_patch::patch(&mut out, &patch).unwrap();
    }
    out
}

/// Returns the mutated object. Checks that a second mutation has no patch.
async fn mutated(object: &Value) -> Value {
    let server = server();
    let once = patched(object, &review(&server, "/mutate", &create(object)).await);
    let again = review(&server, "/mutate", &create(&once)).await;
    assert!(
        again["patch"].is_null(),
        "mutating twice gives a second patch"
    );
    once
}

#[tokio::test]
async fn workload_is_defaulted() {
    let object = workload(&json!({
        "podSets": [{"template": {"spec": {"containers": []}}}, {"name": "b", "count": 2, "template": {}}],
        "podGroups": [{"name": "g"}],
    }));
    let expected = json!({
        "podSets": [
            {"name": "main", "count": 1, "template": {"spec": {"containers": []}}},
            {"name": "b", "count": 2, "template": {}},
        ],
        "podGroups": [{"name": "g", "replicas": 1, "disruptionMode": "Pod"}],
        "priorityClassName": "standard", "preemptionPriorityClassName": "standard",
        "active": true,
    });
    assert_eq!(mutated(&object).await["spec"], expected);
}

#[tokio::test]
async fn preemption_class_defaults_to_scheduling_class() {
    let object = workload(&json!({"podSets": [], "priorityClassName": "high", "active": false}));
    let spec = mutated(&object).await["spec"].clone();
    assert_eq!(spec["preemptionPriorityClassName"], "high");
    assert_eq!(spec["active"], false);
}

#[tokio::test]
async fn updated_workload_keeps_classes_without_defaults() {
    for class in [Some("low"), None] {
        let old = workload(&json!({"podSets": [], "active": true, "priorityClassName": class}));
        let new = workload(&json!({"podSets": [], "active": true}));
        let objects = json!({"object": new, "oldObject": old});
        let update = request("lockkeeper.dev", "v1alpha1", "Workload", "UPDATE", &objects);
        let after = patched(&new, &review(&server(), "/mutate", &update).await);
        assert_eq!(after["spec"]["priorityClassName"].as_str(), class);
    }
}

#[tokio::test]
async fn cluster_queue_is_defaulted() {
    let never = json!({
        "withinClusterQueue": "Never", "reclaimWithinCohort": "Never",
        "borrowWithinCohort": {"policy": "Never"},
    });
    let lower = json!({
        "withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority",
        "borrowWithinCohort": {"policy": "Never"},
    });
    let any = json!({
        "withinClusterQueue": "Never", "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "Never", "maxPriorityThreshold": 5},
    });
    let given =
        json!({"reclaimWithinCohort": "Any", "borrowWithinCohort": {"maxPriorityThreshold": 5}});
    for (spec, expected) in [
        (json!({}), never),
        (json!({"elastic": {}}), lower),
        (json!({"preemption": given}), any),
    ] {
        let after = mutated(&queue(&spec)).await;
        assert_eq!(after["spec"]["preemption"], expected);
        assert_eq!(after["spec"]["queueingStrategy"], "BestEffortFIFO");
        assert_eq!(
            after["metadata"]["finalizers"],
            json!(["lockkeeper.dev/resource-in-use"])
        );
    }
}

#[tokio::test]
async fn job_with_queue_name_is_suspended() {
    let server = server();
    for (group, version, kind) in [
        ("batch", "v1", "Job"),
        ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    ] {
        let review_of = |labels: &Value, suspend: &Value, operation: &str| {
            let job = json!({
                "apiVersion": format!("{group}/{version}"), "kind": kind,
                "metadata": {"name": "example", "namespace": "team", "labels": labels},
                "spec": {
                    "suspend": suspend, "replicatedJobs": [{"name": "a", "template": {}}],
                    "template": {"spec": {"containers": []}},
                },
            });
            let objects = json!({"object": job, "oldObject": job});
            (job, request(group, version, kind, operation, &objects))
        };
        let queued = json!({"lockkeeper.dev/queue-name": "main"});
        for suspend in [json!(null), json!(false)] {
            let (job, sent) = review_of(&queued, &suspend, "CREATE");
            let mut expected = job.clone();
            expected["spec"]["suspend"] = true.into();
            let answer = review(&server, "/mutate", &sent).await;
            assert_eq!(patched(&job, &answer), expected);
        }
        for (labels, suspend, operation) in [
            (&queued, json!(true), "CREATE"),
            (&json!({"app": "a"}), json!(false), "CREATE"),
            (&queued, json!(false), "UPDATE"),
        ] {
            let (_, sent) = review_of(labels, &suspend, operation);
            let answer = review(&server, "/mutate", &sent).await;
            let unchanged = json!({"uid": sent["request"]["uid"], "allowed": true});
            assert_eq!(answer, unchanged);
        }
        // No rule uses them yet.
        let (_, sent) = review_of(&queued, &json!(false), "CREATE");
        let answer = review(&server, "/validate", &sent).await;
        assert_eq!(answer["allowed"], true);
    }
}

#[tokio::test]
async fn removed_finalizer_is_restored_until_deletion() {
    let old = mutated(&queue(&json!({}))).await;
    for (deleted, is_restored) in [(Value::Null, true), ("2026-01-01T00:00:00Z".into(), false)] {
        let mut old = old.clone();
        old["metadata"]["deletionTimestamp"] = deleted;
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!([]);
        let objects = json!({"object": new, "oldObject": old});
        let update = request(
            "lockkeeper.dev",
            "v1alpha1",
            "ClusterQueue",
            "UPDATE",
            &objects,
        );
        let answer = review(&server(), "/mutate", &update).await;
        assert_eq!(!answer["patch"].is_null(), is_restored);
    }
}

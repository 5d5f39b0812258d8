#![allow(
    clippy::needless_pass_by_value,
    reason = "the values are written in place"
)]

use super::{KueueConversion, convert};
use crate::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod leaves;

const OWN: &str = "lockkeeper.dev/v1alpha1";

fn kueue(version: &str, kind: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": format!("kueue.x-k8s.io/{version}"), "kind": kind, "metadata": {"name": "a"}});
    for (name, value) in rest.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

fn lost(converted: &KueueConversion) -> Vec<String> {
    let all = converted.dropped.iter().map(|it| it.field.to_string());
    all.collect()
}

/// The dropped fields of an object, and the converted object without its metadata.
#[track_caller]
fn check(version: &str, kind: &str, rest: Value, expected: &Value, missing: &[&str]) {
    let converted = convert(&kueue(version, kind, rest)).unwrap();
    assert_eq!(lost(&converted), missing);
    let mut object = converted.object.unwrap();
    object.as_object_mut().unwrap().remove("metadata");
    assert_eq!(object, *expected);
}

fn own(kind: &str, spec: Value) -> Value {
    json!({"apiVersion": OWN, "kind": kind, "spec": spec})
}

#[test]
fn shared_fields_are_copied() {
    for version in ["v1beta1", "v1beta2"] {
        let groups = json!([{"coveredResources": ["cpu"], "flavors": [{"name": "spot", "resources":
            [{"name": "cpu", "nominalQuota": 4, "borrowingLimit": "1", "lendingLimit": 0}]}]}]);
        let spec = json!({
            "resourceGroups": groups, "queueingStrategy": "StrictFIFO", "namespaceSelector": {},
            "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "preference": "BorrowingOverPreemption"},
            "preemption": {"withinClusterQueue": "LowerPriority", "borrowWithinCohort": {"policy": "Never"}},
            "stopPolicy": "Hold", "fairSharing": {"weight": "2"},
        });
        check(
            version,
            "ClusterQueue",
            json!({"spec": spec}),
            &own("ClusterQueue", spec.clone()),
            &[],
        );
        let spec =
            json!({"parentName": "b", "resourceGroups": groups, "fairSharing": {"weight": 2}});
        check(
            version,
            "Cohort",
            json!({"spec": spec}),
            &own("Cohort", spec.clone()),
            &[],
        );
        let spec = json!({"clusterQueue": "b", "stopPolicy": "Hold"});
        check(
            version,
            "LocalQueue",
            json!({"spec": spec}),
            &own("LocalQueue", spec.clone()),
            &[],
        );
        let spec = json!({"nodeLabels": {"a": "b"}, "nodeTaints": [{"key": "a", "effect": "NoSchedule"}],
                          "tolerations": [{"operator": "Exists"}]});
        check(
            version,
            "ResourceFlavor",
            json!({"spec": spec}),
            &own("ResourceFlavor", spec.clone()),
            &[],
        );
        let spec = json!({"queueName": "b", "active": false, "maximumExecutionTimeSeconds": 9,
                          "podSets": [{"name": "main", "count": 2, "minCount": 1, "template": {"spec": {"containers": []}}}]});
        check(
            version,
            "Workload",
            json!({"spec": spec}),
            &own("Workload", spec.clone()),
            &[],
        );
    }
}

#[test]
fn renamed_fields_are_mapped() {
    let class = |spec| own("Workload", spec);
    for (version, spec, expected, missing) in [
        (
            "v1beta2",
            json!({"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "b"}}),
            json!({"priorityClassName": "b"}),
            None,
        ),
        (
            "v1beta2",
            json!({"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "b"}}),
            json!({"priorityClassName": "b"}),
            None,
        ),
        (
            "v1beta2",
            json!({"priorityClassRef": {"group": "scheduling.k8s.io"}}),
            json!({}),
            Some("spec.priorityClassRef"),
        ),
        (
            "v1beta1",
            json!({"priorityClassSource": "scheduling.k8s.io/priorityclass", "priorityClassName": "b"}),
            json!({"priorityClassName": "b"}),
            None,
        ),
        (
            "v1beta1",
            json!({"priorityClassSource": "", "priorityClassName": "b"}),
            json!({}),
            Some("spec.priorityClassName"),
        ),
    ] {
        let missing: Vec<&str> = missing.into_iter().collect();
        check(
            version,
            "Workload",
            json!({"spec": spec}),
            &class(expected),
            &missing,
        );
    }
    let old = kueue(
        "v1beta1",
        "ClusterQueue",
        json!({"spec": {"cohort": "b", "flavorFungibility": {"whenCanBorrow": "Borrow"}}}),
    );
    let converted = convert(&old).unwrap();
    let spec = &converted.object.as_ref().unwrap()["spec"];
    assert_eq!(
        *spec,
        json!({"cohortName": "b", "flavorFungibility": {"whenCanBorrow": "MayStopSearch"}})
    );
    let field = crate::field_path::FieldPath::new("spec.cohortName");
    assert_eq!(converted.origin(&field).to_string(), "spec.cohort");
    let class = kueue(
        "v1beta2",
        "WorkloadPriorityClass",
        json!({"value": -3, "description": "b"}),
    );
    let object = convert(&class).unwrap().object.unwrap();
    let expected = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "a"},
                          "value": -3, "description": "b"});
    assert_eq!(object, expected);
}

#[test]
fn dropped_fields_are_reported() {
    for (kind, spec, field) in [
        (
            "ClusterQueue",
            json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "b"}]}}),
            "spec.admissionChecksStrategy",
        ),
        (
            "ClusterQueue",
            json!({"admissionScope": {"admissionMode": "b"}}),
            "spec.admissionScope",
        ),
        (
            "ClusterQueue",
            json!({"concurrentAdmissionPolicy": {"migration": {"mode": "b"}}}),
            "spec.concurrentAdmissionPolicy",
        ),
        (
            "LocalQueue",
            json!({"fairSharing": {"weight": 2}}),
            "spec.fairSharing",
        ),
        (
            "ResourceFlavor",
            json!({"topologyName": "b"}),
            "spec.topologyName",
        ),
        (
            "Workload",
            json!({"podSets": [{}, {"topologyRequest": {"required": "b"}}]}),
            "spec.podSets[1].topologyRequest",
        ),
        (
            "Workload",
            json!({"preemptionGates": [{"name": "b"}]}),
            "spec.preemptionGates",
        ),
        ("Workload", json!({"priority": 3}), "spec.priority"),
    ] {
        for version in ["v1beta1", "v1beta2"] {
            let converted = convert(&kueue(version, kind, json!({"spec": spec}))).unwrap();
            assert_eq!(lost(&converted), [field]);
        }
    }
    let old = kueue(
        "v1beta1",
        "ClusterQueue",
        json!({"spec": {"admissionChecks": ["b"]}}),
    );
    assert_eq!(lost(&convert(&old).unwrap()), ["spec.admissionChecks"]);
    // Empty values are not reported as dropped.
    let empty = kueue(
        "v1beta2",
        "ClusterQueue",
        json!({"spec": {"admissionChecksStrategy": {"admissionChecks": []}}, "status": {}}),
    );
    assert_eq!(lost(&convert(&empty).unwrap()), [""; 0]);
}

#[test]
fn server_written_fields_are_dropped() {
    let object = kueue(
        "v1beta2",
        "LocalQueue",
        json!({"metadata": {
        "name": "a", "namespace": "b", "uid": "1", "resourceVersion": "2", "creationTimestamp": null, "generation": 1,
        "finalizers": ["kueue.x-k8s.io/resource-in-use", "c"],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "d": "e"},
        "labels": {"kueue.x-k8s.io/f": "g"},
    }, "spec": {"clusterQueue": "h"}, "status": {"pendingWorkloads": 1}}),
    );
    let converted = convert(&object).unwrap();
    assert_eq!(
        lost(&converted),
        [
            "status",
            "metadata.generation",
            "metadata.resourceVersion",
            "metadata.uid",
            "metadata.labels[kueue.x-k8s.io/f]",
            "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
        ]
    );
    let expected = json!({"name": "a", "namespace": "b", "finalizers": ["lockkeeper.dev/resource-in-use", "c"],
                          "annotations": {"d": "e"}});
    assert_eq!(converted.object.unwrap()["metadata"], expected);
}

#[test]
fn unconvertible_objects_are_reported() {
    for (object, field) in [
        (kueue("v1beta2", "AdmissionCheck", json!({})), "kind"),
        (kueue("v1beta2", "Topology", json!({})), "kind"),
        (kueue("v1beta2", "Gadget", json!({})), "kind"),
        (kueue("v1alpha1", "Cohort", json!({})), "apiVersion"),
        (
            kueue(
                "v1beta2",
                "WorkloadPriorityClass",
                json!({"value": 1_000_000_001}),
            ),
            "value",
        ),
        (
            kueue(
                "v1beta2",
                "WorkloadPriorityClass",
                json!({"metadata": {"name": "system-a"}, "value": 1}),
            ),
            "metadata.name",
        ),
        (
            json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "a"}}}),
            "metadata.labels[kueue.x-k8s.io/queue-name]",
        ),
    ] {
        let converted = convert(&object).unwrap();
        assert_eq!(converted.object, None);
        assert_eq!(lost(&converted), [field], "{object}");
    }
    for object in [
        json!(null),
        json!({"apiVersion": 3}),
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"kueue.x-k8s.io/managed": "a"}}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"labels": {"lockkeeper.dev/queue-name": "a"}}}),
        json!({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}),
    ] {
        assert_eq!(convert(&object), None, "{object}");
    }
}

#[test]
fn job_labels_become_lockkeeper_labels() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {
        "labels": {"kueue.x-k8s.io/queue-name": "a", "kueue.x-k8s.io/priority-class": "b", "app": "c",
                   "kueue.x-k8s.io/max-exec-time-seconds": "3", "kueue.x-k8s.io/prebuilt-workload-name": "d"},
        "annotations": {"kueue.x-k8s.io/job-min-parallelism": "2"},
    }, "spec": {"template": {"metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}, "spec": {}}}});
    let converted = convert(&job).unwrap();
    assert_eq!(
        lost(&converted),
        [
            "metadata.labels[kueue.x-k8s.io/prebuilt-workload-name]",
            "spec.template.metadata.annotations[kueue.x-k8s.io/podset-required-topology]",
        ]
    );
    let label = crate::field_path::FieldPath::new("metadata.labels").key(crate::labels::QUEUE_NAME);
    assert_eq!(
        converted.origin(&label).to_string(),
        "metadata.labels[kueue.x-k8s.io/queue-name]"
    );
    let expected = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {
        "labels": {"lockkeeper.dev/queue-name": "a", "lockkeeper.dev/priority-class": "b", "app": "c",
                   "lockkeeper.dev/max-exec-time-seconds": "3"},
        "annotations": {"lockkeeper.dev/job-min-parallelism": "2"},
    }, "spec": {"template": {"metadata": {}, "spec": {}}}});
    assert_eq!(converted.object.unwrap(), expected);
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"metadata": {"labels":
        {"kueue.x-k8s.io/queue-name": "a"}}}}});
    let object = convert(&cron).unwrap().object.unwrap();
    assert_eq!(
        object["spec"]["jobTemplate"]["metadata"]["labels"],
        json!({"lockkeeper.dev/queue-name": "a"})
    );
    // An object with both fields states which one applies.
    let both = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels":
        {"kueue.x-k8s.io/queue-name": "a", "lockkeeper.dev/queue-name": "b"}}});
    let converted = convert(&both).unwrap();
    assert_eq!(
        lost(&converted),
        ["metadata.labels[kueue.x-k8s.io/queue-name]"]
    );
    assert_eq!(
        converted.object.unwrap()["metadata"]["labels"],
        json!({"lockkeeper.dev/queue-name": "b"})
    );
}

/// The conversion equals the manifest written by hand.
#[test]
fn converted_object_equals_handwritten() {
    fn same<T: DeserializeOwned + PartialEq + std::fmt::Debug>(
        kind: &str,
        given: Value,
        written: Value,
    ) {
        let converted = convert(&kueue("v1beta2", kind, given)).unwrap();
        assert_eq!(converted.dropped, []);
        let read = |it| serde_json::from_value::<T>(it).unwrap();
        let mut hand = json!({"apiVersion": OWN, "kind": kind, "metadata": {"name": "a"}});
        for (name, value) in written.as_object().unwrap() {
            hand[name] = value.clone();
        }
        assert_eq!(read(converted.object.unwrap()), read(hand));
    }
    let quota = json!({"spec": {"cohortName": "b", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "spot",
        "resources": [{"name": "cpu", "nominalQuota": 4}]}]}]}});
    same::<ClusterQueue>("ClusterQueue", quota.clone(), quota);
    let parent = json!({"spec": {"parentName": "b"}});
    same::<Cohort>("Cohort", parent.clone(), parent);
    let queue = json!({"spec": {"clusterQueue": "b"}});
    same::<LocalQueue>("LocalQueue", queue.clone(), queue);
    let flavor = json!({"spec": {"nodeLabels": {"b": "c"}}});
    same::<ResourceFlavor>("ResourceFlavor", flavor.clone(), flavor);
    let pods = json!([{"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "b", "image": "c"}]}}}]);
    same::<Workload>(
        "Workload",
        json!({"spec": {"queueName": "b", "podSets": pods, "priorityClassRef":
            {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}}),
        json!({"spec": {"queueName": "b", "podSets": pods, "priorityClassName": "high"}}),
    );
    let class = kueue("v1beta2", "WorkloadPriorityClass", json!({"value": 3}));
    let class: PriorityClass =
        serde_json::from_value(convert(&class).unwrap().object.unwrap()).unwrap();
    assert_eq!((class.value, class.preemption_policy), (Some(3), None));
}

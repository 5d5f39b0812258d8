//! The last eviction of a workload: by which preemptor, for which reason, along which paths, and when it is requeued.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and build objects from literals"
)]

use lockkeeper_explain::{
    Answer, Eviction, EvictionCount, Preemption, Project, Requeue, Situation, WorldBuilder,
    WorldSettings, explain, write_answer,
};
use serde_json::{Value, json};

const LOCKKEEPER: &str = "lockkeeper.dev/v1alpha1";

/// The message that lockkeeper and recent versions of Kueue write.
const PREEMPTED: &str = "Preempted to accommodate a workload (UID: p, JobUID: j) due to reclamation within the cohort; preemptor path: /lab/a; preemptee path: /lab/b";

fn object(api: &str, kind: &str, name: &str, spec: Value) -> Value {
    let mut object =
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if matches!(kind, "Workload" | "LocalQueue") {
        object["metadata"]["namespace"] = json!("ns");
    }
    object
}

/// A workload of the queue `b`, with its conditions as (type, status, reason, message).
fn workload(api: &str, name: &str, conditions: &[(&str, &str, &str, &str)]) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "2"}}});
    let template = json!({"spec": {"containers": [container]}});
    let spec =
        json!({"queueName": "b", "podSets": [{"name": "main", "count": 1, "template": template}]});
    let mut workload = object(api, "Workload", name, spec);
    workload["metadata"]["uid"] = json!(name);
    workload["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let conditions = conditions.iter().map(|(of, status, reason, message)| {
        json!({"type": of, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T01:00:00Z"})
    });
    workload["status"] = json!({"conditions": conditions.collect::<Vec<Value>>()});
    workload
}

/// The preemptor: a workload with the uid `p` of a job with the uid `j`, admitted in the queue `a`.
fn preemptor(api: &str) -> Value {
    let mut workload = workload(api, "p", &[("Admitted", "True", "Admitted", "")]);
    workload["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "j", "controller": true}]);
    workload["spec"]["queueName"] = json!("a");
    workload["status"]["admission"] = assignment("a");
    workload
}

fn assignment(queue: &str) -> Value {
    json!({"clusterQueue": queue, "podSetAssignments": [
        {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "2"}}]})
}

/// The answer about the workload `evicted`, beside its preemptor, in two ClusterQueues of 2 cpu in the cohort `lab`.
fn answer(api: &str, evicted: Value, has_preemptor: bool) -> Answer {
    let mut builder = WorldBuilder::new();
    builder.add(object(api, "ResourceFlavor", "default", json!({})));
    for name in ["a", "b"] {
        let flavor =
            json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "2"}]});
        let mut spec = json!({"cohortName": "lab", "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]});
        if api == "kueue.x-k8s.io/v1beta1" {
            let cohort = spec.as_object_mut().unwrap().remove("cohortName").unwrap();
            spec["cohort"] = cohort;
        }
        builder.add(object(api, "ClusterQueue", name, spec));
        builder.add(object(
            api,
            "LocalQueue",
            name,
            json!({"clusterQueue": name}),
        ));
    }
    if has_preemptor {
        builder.add(preemptor(api));
    }
    builder.add(evicted);
    let world = builder.build(WorldSettings::default());
    assert_eq!(world.unreadable(), []);
    let project = if api == LOCKKEEPER {
        Project::Lockkeeper
    } else {
        Project::Kueue
    };
    assert_eq!(world.project(), project);
    explain(&world, "ns/evicted").unwrap()
}

fn preempted(api: &str) -> Value {
    let conditions = [
        ("QuotaReserved", "False", "Pending", ""),
        ("Evicted", "True", "Preempted", PREEMPTED),
        ("Preempted", "True", "InCohortReclamation", PREEMPTED),
    ];
    let mut workload = workload(api, "evicted", &conditions);
    workload["status"]["schedulingStats"] = json!({"evictions": [
        {"reason": "Preempted", "underlyingCause": "", "count": 3},
        {"reason": "Deactivated", "underlyingCause": "RequeuingLimitExceeded", "count": 1}]});
    workload
}

#[test]
fn preemption_names_preemptor_reason_and_paths() {
    for api in [
        LOCKKEEPER,
        "kueue.x-k8s.io/v1beta1",
        "kueue.x-k8s.io/v1beta2",
    ] {
        let answer = answer(api, preempted(api), true);
        let eviction = answer.eviction.clone().unwrap();
        let text = |it: &str| Some(it.to_owned());
        let expected = Preemption {
            reason: text("InCohortReclamation"),
            preemptor: text("ns/p"),
            preemptor_job: text("Job/web"),
            preemptor_cluster_queue: text("a"),
            preemptor_priority: Some(0),
            preemptor_uid: text("p"),
            preemptor_path: text("/lab/a"),
            path: text("/lab/b"),
        };
        assert_eq!(eviction.preemption, Some(expected), "{api}");
        let count = |reason: &str, cause: &str, count| EvictionCount {
            reason: reason.to_owned(),
            underlying_cause: cause.to_owned(),
            count,
        };
        let counts = [
            count("Preempted", "", 3),
            count("Deactivated", "RequeuingLimitExceeded", 1),
        ];
        assert_eq!(eviction.counts, counts, "{api}");
        assert_eq!(eviction.requeue, Requeue::Queued, "{api}");
    }
}

#[test]
fn preemption_is_printed() {
    let answer = answer(LOCKKEEPER, preempted(LOCKKEEPER), true);
    let mut text = String::new();
    write_answer(&mut text, &answer).unwrap();
    insta::assert_snapshot!(text);
}

/// The message of an early version has the uid of a Workload at most, or that of the job of one that was created again.
#[test]
fn preemption_without_paths_takes_them_from_the_objects() {
    let old =
        "Preempted to accommodate a workload (UID: p) due to prioritization in the ClusterQueue";
    let again = "Preempted to accommodate a workload (UID: before, JobUID: j) due to x";
    for message in [old, again] {
        let conditions = [("Evicted", "True", "Preempted", message)];
        let evicted = workload(LOCKKEEPER, "evicted", &conditions);
        let eviction = answer(LOCKKEEPER, evicted, true).eviction.unwrap();
        let preemption = eviction.preemption.unwrap();
        assert_eq!(preemption.reason, None);
        assert_eq!(preemption.preemptor.as_deref(), Some("ns/p"));
        assert_eq!(preemption.preemptor_path.as_deref(), Some("/lab/a"));
        assert_eq!(preemption.path.as_deref(), Some("/lab/b"));
    }
}

#[test]
fn preemptor_that_is_not_in_the_input_is_named_by_its_uid() {
    let answer = answer(LOCKKEEPER, preempted(LOCKKEEPER), false);
    let mut text = String::new();
    write_answer(&mut text, &answer).unwrap();
    let line = "  preemptor      the workload with uid p, which is not in the input\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("  preemptor path /lab/a\n"), "{text}");
}

/// The eviction, and the situation, of a workload with these changes to a workload that was evicted for a reason.
#[track_caller]
fn check(reason: &str, changes: Value, situation: Situation, requeue: Requeue) -> Eviction {
    let evicted = ("Evicted", "True", reason, "the message");
    let not_requeued = ("Requeued", "False", reason, "");
    let mut workload = workload(LOCKKEEPER, "evicted", &[evicted, not_requeued]);
    for (pointer, value) in changes.as_object().unwrap() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        workload.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    let answer = answer(LOCKKEEPER, workload, true);
    let eviction = answer.eviction.unwrap();
    assert_eq!((answer.situation, &eviction.requeue), (situation, &requeue));
    assert_eq!(
        (eviction.reason.as_str(), &eviction.preemption),
        (reason, &None)
    );
    assert_eq!(eviction.message, "the message");
    eviction
}

#[test]
fn requeue_depends_on_the_reason() {
    let at = "2026-01-01T01:10:00Z";
    let in_backoff = json!({"/status/requeueState": {"count": 2, "requeueAt": at}});
    let until = Requeue::At {
        time: at.to_owned(),
    };
    let eviction = check("PodsReadyTimeout", in_backoff, Situation::BackingOff, until);
    assert_eq!(eviction.requeue_count, 2);
    check(
        "PodsReadyTimeout",
        json!({"/status/admission": assignment("b")}),
        Situation::Evicting,
        Requeue::AfterRelease,
    );
    check(
        "DeactivatedDueToRequeuingLimitExceeded",
        json!({"/spec/active": false}),
        Situation::NotQueued,
        Requeue::AfterActivation,
    );
    check(
        "ClusterQueueStopped",
        json!({}),
        Situation::BackingOff,
        Requeue::AfterResume,
    );
    check(
        "AdmissionCheck",
        json!({}),
        Situation::BackingOff,
        Requeue::NotQueued,
    );
    check(
        "LocalQueueStopped",
        json!({"/spec/queueName": "gone"}),
        Situation::NotQueued,
        Requeue::NotQueued,
    );
}

#[test]
fn workloads_with_quota_again_have_no_eviction() {
    let conditions = [("Evicted", "False", "QuotaReserved", "")];
    let mut workload = workload(LOCKKEEPER, "evicted", &conditions);
    workload["status"]["admission"] = assignment("b");
    assert_eq!(answer(LOCKKEEPER, workload, true).eviction, None);
}

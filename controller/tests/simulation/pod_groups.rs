//! Groups of pods: they start together, are evicted together, and replace pods that have failed.

use crate::fields::{condition, list, text};
use crate::fixture::Fixture;
use crate::objects::NAMESPACE;
use crate::queued_pods::{POD, is_gated};
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, WritePurpose, WriteRequest};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// A queue of this many CPUs that admits pods.
fn stage(cpu: u32) -> Fixture {
    let pods = |settings: &mut lockkeeper_controller::Settings| settings.job_kinds = vec![0, 1, 2];
    Fixture::with_settings(RequeueSettings::default(), cpu, pods)
}

/// A pod of one CPU in the group `g` of this many pods; `change` is merged into it.
pub fn pod(name: &str, total: u32, change: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {labels::QUEUE_NAME: "main", labels::POD_GROUP_NAME: "g", labels::PRIORITY_CLASS: "mid"},
            "annotations": {labels::POD_GROUP_TOTAL_COUNT: total.to_string()},
        },
        "spec": {
            "schedulingGates": [{"name": labels::ADMISSION_GATE}],
            "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    });
    crate::api::merge(&mut pod, change);
    pod
}

fn create(stage: &mut Fixture, names: &[&str], total: u32) {
    for name in names {
        stage.api.create(POD, pod(name, total, &json!({}))).unwrap();
    }
}

/// The pods without the gate, with their phase.
fn started(stage: &Fixture) -> Vec<String> {
    let pods = stage.api.all(POD).filter(|(_, it)| !is_gated(it));
    pods.map(|(name, _)| name.name().to_owned()).collect()
}

fn workloads(stage: &Fixture) -> Vec<&Value> {
    stage.api.all(Kind::Workload).map(|(_, it)| &**it).collect()
}

fn workload(stage: &Fixture) -> &Value {
    let all = workloads(stage);
    assert_eq!(all.len(), 1, "{all:#?}");
    all[0]
}

fn is_admitted(stage: &Fixture) -> bool {
    crate::fields::may_run(workload(stage))
}

/// The report of a pod about its group: status, reason and message.
fn report(stage: &Fixture, pod: &str) -> Option<[String; 3]> {
    let pod = stage.get(POD, pod);
    let report = condition(pod, labels::POD_GROUP_CONDITION)?;
    Some(["/status", "/reason", "/message"].map(|field| text(report, field).to_owned()))
}

pub fn reason(stage: &Fixture, pod: &str) -> String {
    report(stage, pod).map_or_else(String::new, |[_, reason, _]| reason)
}

fn run(stage: &mut Fixture, names: &[&str], phase: &str) {
    for name in names {
        let is_ready = if phase == "Running" { "True" } else { "False" };
        let ready = json!([{
            "type": "Ready", "status": is_ready, "reason": "Kubelet", "message": "",
            "lastTransitionTime": crate::fields::time(stage.api.now_ms),
        }]);
        stage.status(POD, name, &json!({"phase": phase}));
        let key = lockkeeper_controller::ObjectKey::new(NAMESPACE, name);
        let uid = crate::fields::uid(stage.get(POD, name)).to_owned();
        let patch = json!({"metadata": {"uid": uid}, "status": {"conditions": ready}});
        stage.api.patch_conditions(POD, &key, &patch).unwrap();
    }
    stage.settle();
}

/// Keeps the object of a deleted pod, as if its node did not respond.
fn keep(stage: &mut Fixture, name: &str) {
    let finalizers = json!({"metadata": {"finalizers": ["example.com/dead-node"]}});
    stage.change(POD, name, &finalizers);
    stage.settle();
}

fn delete(stage: &mut Fixture, name: &str) {
    let key = lockkeeper_controller::ObjectKey::new(NAMESPACE, name);
    stage.api.delete(POD, &key, None, false).unwrap();
    stage.settle();
}

/// A running group of three pods of one CPU on a queue of three.
fn running_group() -> Fixture {
    let mut stage = stage(3);
    create(&mut stage, &["a", "b", "c"], 3);
    stage.settle();
    run(&mut stage, &["a", "b", "c"], "Running");
    stage
}

#[test]
fn pods_start_together_when_all_exist() {
    let mut stage = stage(3);
    create(&mut stage, &["a", "b"], 3);
    stage.settle();
    assert!(workloads(&stage).is_empty());
    assert_eq!(report(&stage, "a"), None, "other pods may be on their way");
    stage.advance(3_000);
    let [status, reason, message] = report(&stage, "a").unwrap();
    assert_eq!([&*status, &*reason], ["False", "PodGroupIncomplete"]);
    assert!(message.contains('3'), "{message}");
    create(&mut stage, &["c"], 3);
    stage.settle();
    assert_eq!(started(&stage), ["a", "b", "c"]);
    let workload = workload(&stage);
    let pod_sets = list(workload, "/spec/podSets");
    assert_eq!(pod_sets.len(), 1, "{pod_sets:#?}");
    assert_eq!(pod_sets[0]["count"], 3);
    assert_eq!(
        text(workload, "/metadata/labels/lockkeeper.dev~1pod-group-name"),
        "g"
    );
    assert!(
        workload["metadata"]["ownerReferences"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
    for pod in ["a", "b"] {
        let [status, reason, _] = report(&stage, pod).unwrap();
        assert_eq!([&*status, &*reason], ["True", "PodGroupComplete"], "{pod}");
    }
    assert_eq!(report(&stage, "c"), None);
    let pod = stage.get(POD, "a");
    assert_eq!(
        pod["metadata"]["annotations"][labels::POD_SET],
        pod_sets_name(&stage)
    );
    run(&mut stage, &["a", "b", "c"], "Running");
    assert!(crate::fields::condition_is_true(
        self::workload(&stage),
        "PodsReady"
    ));
}

fn pod_sets_name(stage: &Fixture) -> Value {
    workload(stage)["spec"]["podSets"][0]["name"].clone()
}

#[test]
fn group_larger_than_the_quota_starts_no_pod() {
    let mut stage = stage(2);
    create(&mut stage, &["a", "b", "c"], 3);
    stage.advance(10_000);
    assert!(started(&stage).is_empty());
    assert!(!is_admitted(&stage));
    let reserved = condition(workload(&stage), "QuotaReserved").unwrap();
    assert_eq!(reserved["reason"], "WaitingForQuota", "{reserved}");
}

#[test]
fn each_shape_is_a_pod_set() {
    let mut stage = stage(8);
    let leader = json!({"spec": {"containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}});
    stage.api.create(POD, pod("leader", 3, &leader)).unwrap();
    create(&mut stage, &["w1", "w2"], 3);
    stage.settle();
    assert_eq!(started(&stage), ["leader", "w1", "w2"]);
    let counts = list(workload(&stage), "/spec/podSets").iter();
    let mut counts: Vec<i64> = counts.map(|it| it["count"].as_i64().unwrap()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn pods_that_do_not_belong_to_the_group_wait_with_a_reason() {
    let mut stage = stage(8);
    let classes = json!({"metadata": {"labels": {labels::PRIORITY_CLASS: "high"}}});
    let total = json!({"metadata": {"annotations": {labels::POD_GROUP_TOTAL_COUNT: "3"}}});
    create(&mut stage, &["a"], 2);
    stage.advance(1_000);
    stage.api.create(POD, pod("b", 2, &classes)).unwrap();
    stage.api.create(POD, pod("c", 2, &total)).unwrap();
    stage.settle();
    assert!(started(&stage).is_empty());
    assert_eq!(reason(&stage, "b"), "PodGroupInvalid");
    assert!(report(&stage, "b").unwrap()[2].contains("priority class"));
    assert!(report(&stage, "c").unwrap()[2].contains("number of pods"));
    create(&mut stage, &["d", "e"], 2);
    stage.settle();
    assert_eq!(started(&stage), ["a", "d"]);
    assert_eq!(reason(&stage, "e"), "PodGroupFull");
}

#[test]
fn group_without_a_number_of_pods_waits_with_a_reason() {
    let mut stage = stage(8);
    let none = json!({"metadata": {"annotations": {labels::POD_GROUP_TOTAL_COUNT: null}}});
    stage.api.create(POD, pod("a", 1, &none)).unwrap();
    stage.settle();
    assert!(started(&stage).is_empty());
    assert_eq!(reason(&stage, "a"), "PodGroupInvalid");
}

#[test]
fn pod_replaces_one_that_has_failed() {
    let mut stage = running_group();
    create(&mut stage, &["d"], 3);
    stage.settle();
    assert_eq!(reason(&stage, "d"), "PodGroupFull");
    run(&mut stage, &["b"], "Failed");
    assert_eq!(started(&stage), ["a", "b", "c", "d"]);
    assert!(is_admitted(&stage));
    let [status, ..] = report(&stage, "d").unwrap();
    assert_eq!(status, "True");
}

#[test]
fn pod_replaces_a_deleted_one_when_that_is_gone() {
    let mut stage = running_group();
    delete(&mut stage, "b");
    create(&mut stage, &["d"], 3);
    stage.settle();
    assert_eq!(started(&stage), ["a", "c", "d"]);
    // A pod on a dead node keeps its place for its grace period and the time of the setting.
    keep(&mut stage, "d");
    delete(&mut stage, "d");
    create(&mut stage, &["e"], 3);
    stage.advance(65_000);
    assert_eq!(started(&stage), ["a", "c", "d"]);
    stage.advance(10_000);
    assert_eq!(started(&stage), ["a", "c", "d", "e"]);
    assert!(is_admitted(&stage));
}

#[test]
fn replacement_of_another_shape_does_not_start() {
    let mut stage = running_group();
    let large = json!({"spec": {"containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}});
    run(&mut stage, &["b"], "Failed");
    stage.api.create(POD, pod("d", 3, &large)).unwrap();
    stage.settle();
    assert_eq!(reason(&stage, "d"), "PodGroupFull");
    assert!(is_gated(stage.get(POD, "d")));
}

#[test]
fn preempted_group_loses_all_pods_and_starts_again() {
    let mut stage = running_group();
    let high = json!({"metadata": {
        "name": "x", "labels": {labels::POD_GROUP_NAME: null, labels::PRIORITY_CLASS: "high"},
        "annotations": {labels::POD_GROUP_TOTAL_COUNT: null},
    }});
    keep(&mut stage, "c");
    stage.api.create(POD, pod("x", 1, &high)).unwrap();
    let lines = stage.settle();
    for pod in ["a", "b", "c"] {
        let stops = lines.iter().filter(|it| **it == format!("stop_pod {pod}"));
        assert_eq!(stops.count(), 2, "{lines:?}");
    }
    assert!(is_gated(stage.get(POD, "x")), "the pods terminate");
    create(&mut stage, &["a2", "b2", "c2"], 3);
    let lines = stage.advance(90_000);
    assert_eq!(started(&stage), ["c", "x"], "{lines:?}");
    delete(&mut stage, "x");
    stage.advance(120_000);
    assert_eq!(started(&stage), ["a2", "b2", "c", "c2"]);
}

#[test]
fn pods_that_succeed_release_their_quota() {
    let mut stage = running_group();
    run(&mut stage, &["a"], "Succeeded");
    let reclaimed = &workload(&stage)["status"]["reclaimablePods"][0]["count"];
    assert_eq!(*reclaimed, 1);
    // Its place is not taken again, even when its object is gone.
    create(&mut stage, &["d"], 3);
    delete(&mut stage, "a");
    assert_eq!(reason(&stage, "d"), "PodGroupFull");
    assert!(is_admitted(&stage));
}

#[test]
fn group_finishes_with_its_pods() {
    let mut stage = running_group();
    run(&mut stage, &["a", "b"], "Succeeded");
    run(&mut stage, &["c"], "Succeeded");
    let finished = condition(workload(&stage), "Finished").unwrap();
    assert_eq!(finished["status"], "True", "{finished}");
    assert_eq!(finished["reason"], "Succeeded", "{finished}");
    create(&mut stage, &["d"], 3);
    stage.settle();
    assert_eq!(reason(&stage, "d"), "PodGroupFinished");
    for pod in ["a", "b", "c", "d"] {
        delete(&mut stage, pod);
    }
    stage.settle();
    assert!(workloads(&stage).is_empty(), "{:#?}", workloads(&stage));
    // The name is free.
    create(&mut stage, &["e", "f", "g"], 3);
    stage.settle();
    assert_eq!(started(&stage), ["e", "f", "g"]);
}

#[test]
fn group_whose_pods_have_failed_keeps_its_quota_for_a_limited_time() {
    let mut stage = running_group();
    run(&mut stage, &["a"], "Succeeded");
    run(&mut stage, &["b", "c"], "Failed");
    assert!(is_admitted(&stage), "its owner may create other pods");
    stage.advance(61_000);
    let finished = condition(workload(&stage), "Finished").unwrap();
    assert_eq!(finished["reason"], "Failed", "{finished}");
}

#[test]
fn quota_of_a_group_without_pods_is_released() {
    let mut stage = running_group();
    for pod in ["a", "b", "c"] {
        delete(&mut stage, pod);
    }
    stage.advance(90_000);
    assert!(workloads(&stage).is_empty(), "{:#?}", workloads(&stage));
}

#[test]
fn pending_group_that_loses_a_pod_leaves_the_queue() {
    let mut stage = stage(2);
    create(&mut stage, &["a", "b", "c"], 3);
    stage.settle();
    delete(&mut stage, "c");
    let quota = json!({"spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
        {"name": "spot", "resources": [{"name": "cpu", "nominalQuota": 3}]}]}]}});
    let key = lockkeeper_controller::ObjectKey::new("", "main");
    stage
        .api
        .patch(Kind::ClusterQueue, &key, &quota, false)
        .unwrap();
    stage.advance(10_000);
    assert!(started(&stage).is_empty());
    let reserved = condition(workload(&stage), "QuotaReserved").unwrap();
    assert_eq!(reserved["reason"], "PodGroupIncomplete", "{reserved}");
    create(&mut stage, &["d"], 3);
    stage.settle();
    assert_eq!(started(&stage), ["a", "b", "d"]);
}

#[test]
fn running_pod_without_admission_is_deleted() {
    let mut stage = stage(2);
    create(&mut stage, &["a", "b"], 3);
    let running = json!({"spec": {"schedulingGates": null}});
    stage.api.create(POD, pod("c", 3, &running)).unwrap();
    let lines = stage.settle();
    assert!(lines.contains(&"stop_pod c".to_owned()), "{lines:?}");
    assert!(started(&stage).is_empty() && workloads(&stage).is_empty());
}

#[test]
fn pod_that_loses_its_label_is_deleted_and_keeps_its_place() {
    let mut stage = running_group();
    keep(&mut stage, "b");
    let none = json!({"metadata": {"labels": {labels::QUEUE_NAME: null}}});
    stage.change(POD, "b", &none);
    create(&mut stage, &["d"], 3);
    let lines = stage.settle();
    assert!(lines.contains(&"read_pod b".to_owned()), "{lines:?}");
    assert!(lines.contains(&"stop_pod b".to_owned()), "{lines:?}");
    assert!(is_gated(stage.get(POD, "d")));
    stage.advance(120_000);
    assert!(!is_gated(stage.get(POD, "d")), "{:?}", started(&stage));
}

#[test]
fn group_is_found_again_after_a_restart() {
    let mut stage = running_group();
    stage.set_leading(false);
    run(&mut stage, &["c"], "Failed");
    create(&mut stage, &["d"], 3);
    stage.set_leading(true);
    stage.settle();
    assert_eq!(started(&stage), ["a", "b", "c", "d"]);
    assert!(is_admitted(&stage));
}

/// The change of a pod to one of a gang of Koordinator with two to three pods.
fn gang() -> Value {
    json!({"metadata": {
        "labels": {labels::POD_GROUP_NAME: null},
        "annotations": {
            labels::POD_GROUP_TOTAL_COUNT: null, labels::GANG_NAME: "k",
            labels::GANG_MIN_AVAILABLE: "2", labels::GANG_TOTAL: "3",
        },
    }})
}

fn create_gang(stage: &mut Fixture, names: &[&str]) {
    for name in names {
        stage.api.create(POD, pod(name, 1, &gang())).unwrap();
    }
    stage.settle();
}

#[test]
fn gang_starts_with_its_least_number_of_pods() {
    let mut stage = stage(8);
    create_gang(&mut stage, &["a"]);
    assert!(started(&stage).is_empty());
    create_gang(&mut stage, &["b"]);
    assert_eq!(started(&stage), ["a", "b"]);
    create_gang(&mut stage, &["c"]);
    assert_eq!(reason(&stage, "c"), "PodGroupFull");
}

#[test]
fn gang_is_admitted_with_up_to_its_total_number_of_pods() {
    let mut stage = stage(8);
    create_gang(&mut stage, &["a", "b", "c", "d"]);
    assert_eq!(started(&stage), ["a", "b", "c"]);
    assert_eq!(reason(&stage, "d"), "PodGroupFull");
}

/// Writes per pod: the start alone.
#[test]
fn large_group_costs_one_write_per_pod() {
    let mut stage = stage(500);
    let names: Vec<String> = (0..500).map(|at| format!("p{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    create(&mut stage, &names, 500);
    let lines = stage.settle();
    assert_eq!(started(&stage).len(), 500);
    let writes = lines.iter().filter(|it| it.starts_with("start_job"));
    assert_eq!(writes.count(), 500);
    assert!(lines.len() < 520, "{}", lines.len());
}

/// Creates a pod without a group.
fn create_other(stage: &mut Fixture) {
    let alone = json!({"metadata": {
        "labels": {labels::POD_GROUP_NAME: null}, "annotations": {labels::POD_GROUP_TOTAL_COUNT: null},
    }});
    stage.api.create(POD, pod("other", 3, &alone)).unwrap();
}

#[test]
fn quota_stays_in_use_while_the_admission_of_an_incomplete_group_is_in_flight() {
    let mut stage = stage(3);
    create(&mut stage, &["a", "b", "c"], 3);
    let is_admission = |it: &WriteRequest| it.purpose == WritePurpose::Admit;
    let writes = stage.poll_until(WritePurpose::Admit);
    let key = lockkeeper_controller::ObjectKey::new(NAMESPACE, "c");
    stage.api.delete(POD, &key, None, false).unwrap();
    create_other(&mut stage);
    for _ in 0..5 {
        let more = stage.poll_writes();
        assert!(!more.iter().any(is_admission), "{more:#?}");
        stage.finish_writes(more);
        stage.api.now_ms += 1_000;
    }
    // The API server stores it: the group is evicted, and the other pod gets its quota.
    stage.finish_writes(writes);
    stage.advance(5_000);
    assert_eq!(started(&stage), ["other"]);
}

#[test]
fn quota_of_a_pod_without_its_label_is_not_released_after_a_restart() {
    let mut stage = running_group();
    // Before a controller starts, `a` loses its label, and the group is evicted.
    let label =
        json!({"metadata": {"labels": {labels::QUEUE_NAME: null, labels::POD_GROUP_NAME: null}}});
    stage.change(POD, "a", &label);
    let name = text(workload(&stage), "/metadata/name").to_owned();
    stage.change(Kind::Workload, &name, &json!({"spec": {"active": false}}));
    stage.restart();
    create_other(&mut stage);
    // Its node does not respond: it is deleted, and is not gone.
    keep(&mut stage, "a");
    stage.advance(5_000);
    let is_deleted = |pod: &Value| pod.pointer("/metadata/deletionTimestamp").is_some();
    assert!(is_deleted(stage.get(POD, "a")));
    assert!(is_gated(stage.get(POD, "other")));
    stage.change(POD, "a", &json!({"metadata": {"finalizers": null}}));
    stage.advance(10_000);
    assert!(!is_gated(stage.get(POD, "other")));
}

//! Groups of pods that name a `PodGroup` of Kubernetes in `spec.schedulingGroup`.

use crate::fields::{condition, text};
use crate::fixture::Fixture;
use crate::objects::NAMESPACE;
use crate::queued_pods::{POD, is_gated};
use lockkeeper_api::labels;
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// A queue of this many CPUs, on a cluster with `PodGroup` objects.
fn stage(cpu: u32) -> Fixture {
    let groups = |settings: &mut lockkeeper_controller::Settings| {
        settings.job_kinds = vec![0, 1, 2];
        settings.has_pod_groups = true;
    };
    Fixture::with_settings(RequeueSettings::default(), cpu, groups)
}

/// Creates pods of one CPU that name the `PodGroup` `g`; `change` is merged into each.
fn create(stage: &mut Fixture, names: &[&str], change: &Value) {
    for name in names {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {labels::QUEUE_NAME: "main"}},
            "spec": {
                "schedulingGates": [{"name": labels::ADMISSION_GATE}],
                "schedulingGroup": {"podGroupName": "g"},
                "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            },
        });
        crate::api::merge(&mut pod, change);
        stage.api.create(POD, pod).unwrap();
    }
    stage.advance(4_000);
}

/// Creates the `PodGroup` `g` with this scheduling policy; `change` is merged into its spec.
fn create_pod_group(stage: &mut Fixture, policy: &Value, change: &Value) {
    let mut group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": policy},
    });
    crate::api::merge(&mut group["spec"], change);
    stage.api.create(Kind::PodGroup, group).unwrap();
    stage.advance(4_000);
}

fn gang(min_count: u32) -> Value {
    json!({"gang": {"minCount": min_count}})
}

fn started(stage: &Fixture) -> Vec<String> {
    let pods = stage.api.all(POD).filter(|(_, it)| !is_gated(it));
    pods.map(|(name, _)| name.name().to_owned()).collect()
}

fn reason(stage: &Fixture, pod: &str) -> String {
    let report = condition(stage.get(POD, pod), labels::POD_GROUP_CONDITION);
    report.map_or_else(String::new, |it| text(it, "/reason").to_owned())
}

fn workloads(stage: &Fixture) -> Vec<&Value> {
    stage.api.all(Kind::Workload).map(|(_, it)| &**it).collect()
}

fn delete_pod_group(stage: &mut Fixture) {
    let key = lockkeeper_controller::ObjectKey::new(NAMESPACE, "g");
    stage.api.delete(Kind::PodGroup, &key, None, false).unwrap();
    stage.settle();
}

#[test]
fn pods_wait_for_their_pod_group_and_start_with_its_least_number() {
    let mut stage = stage(4);
    create(&mut stage, &["a", "b"], &json!({}));
    assert_eq!(reason(&stage, "a"), "PodGroupNotFound");
    create_pod_group(&mut stage, &gang(3), &json!({}));
    assert_eq!(reason(&stage, "a"), "PodGroupIncomplete");
    assert!(workloads(&stage).is_empty());
    create(&mut stage, &["c"], &json!({}));
    assert_eq!(started(&stage), ["a", "b", "c"]);
    assert_eq!(reason(&stage, "a"), "PodGroupComplete");
    assert_eq!(workloads(&stage).len(), 1);
    create(&mut stage, &["d"], &json!({}));
    assert_eq!(reason(&stage, "d"), "PodGroupFull");
}

#[test]
fn annotation_allows_more_pods_than_the_least() {
    let total = json!({"metadata": {"annotations": {labels::POD_GROUP_TOTAL_COUNT: "4"}}});
    let mut stage = stage(8);
    create(&mut stage, &["a", "b", "c", "d"], &total);
    create_pod_group(&mut stage, &gang(2), &json!({}));
    assert_eq!(started(&stage), ["a", "b", "c", "d"]);
}

#[test]
fn least_number_may_change_while_the_pods_wait() {
    let mut stage = stage(4);
    create_pod_group(&mut stage, &gang(3), &json!({}));
    create(&mut stage, &["a", "b"], &json!({}));
    assert!(started(&stage).is_empty());
    let fewer = json!({"spec": {"schedulingPolicy": gang(2)}});
    stage.change(Kind::PodGroup, "g", &fewer);
    stage.settle();
    assert_eq!(started(&stage), ["a", "b"]);
}

#[test]
fn pods_of_the_policy_basic_start_one_by_one() {
    let mut stage = stage(2);
    // Before and after the PodGroup.
    create(&mut stage, &["a", "b"], &json!({}));
    create_pod_group(&mut stage, &json!({"basic": {}}), &json!({}));
    create(&mut stage, &["c"], &json!({}));
    assert_eq!(started(&stage), ["a", "b"]);
    assert_eq!(workloads(&stage).len(), 3);
}

#[test]
fn disruption_mode_is_that_of_the_pod_group() {
    for (mode, label, expected) in [
        (json!({}), json!({}), None),
        (json!({"single": {}}), json!({}), Some("Pod")),
        (json!({"all": {}}), json!({}), Some("PodGroup")),
        (json!({"all": {}}), json!("Pod"), Some("Pod")),
    ] {
        let mut stage = stage(2);
        let change = json!({"disruptionMode": mode});
        create_pod_group(&mut stage, &gang(1), &change);
        let labelled = json!({"metadata": {"labels": {labels::DISRUPTION_MODE: label}}});
        let labelled = if label.is_string() {
            labelled
        } else {
            json!({})
        };
        create(&mut stage, &["a"], &labelled);
        let stored = workloads(&stage)[0];
        let found = stored.pointer("/spec/podGroups/0/disruptionMode");
        assert_eq!(found.and_then(Value::as_str), expected, "{mode} {label}");
    }
}

#[test]
fn pods_run_on_without_their_pod_group() {
    for policy in [gang(2), json!({"basic": {}})] {
        let mut stage = stage(2);
        create_pod_group(&mut stage, &policy, &json!({}));
        create(&mut stage, &["a", "b"], &json!({}));
        assert_eq!(started(&stage), ["a", "b"]);
        delete_pod_group(&mut stage);
        stage.restart();
        stage.advance(120_000);
        assert_eq!(started(&stage), ["a", "b"], "{policy}");
        let deleted = |it: &Value| it.pointer("/metadata/deletionTimestamp").is_some();
        assert!(!stage.api.all(POD).any(|(_, it)| deleted(it)), "{policy}");
        create(&mut stage, &["c"], &json!({}));
        assert_eq!(started(&stage), ["a", "b"], "{policy}");
    }
}

#[test]
fn controller_decides_when_pod_groups_are_listed() {
    let mut stage = stage(2);
    create_pod_group(&mut stage, &gang(2), &json!({}));
    stage.restart();
    create(&mut stage, &["a", "b"], &json!({}));
    assert_eq!(started(&stage), ["a", "b"]);
    assert_eq!(reason(&stage, "a"), "");
}

/// The pods `a` and `b` are not stopped when they change, also after a restart, and have this many workloads.
fn check_that_pods_run_on(stage: &mut Fixture, expected: usize) {
    for restarts in [false, true] {
        if restarts {
            stage.restart();
        }
        for pod in ["a", "b"] {
            stage.status(POD, pod, &json!({"phase": "Running"}));
        }
        stage.advance(10_000);
        assert_eq!(started(stage), ["a", "b"]);
        let deleted = |it: &Value| it.pointer("/metadata/deletionTimestamp").is_some();
        assert!(!stage.api.all(POD).any(|(_, it)| deleted(it)));
        assert_eq!(workloads(stage).len(), expected);
    }
}

#[test]
fn running_group_keeps_its_quota_when_its_pod_group_gets_another_policy() {
    let mut stage = stage(2);
    create_pod_group(&mut stage, &gang(2), &json!({}));
    create(&mut stage, &["a", "b"], &json!({}));
    assert_eq!(started(&stage), ["a", "b"]);
    delete_pod_group(&mut stage);
    create_pod_group(&mut stage, &json!({"basic": {}}), &json!({}));
    check_that_pods_run_on(&mut stage, 1);
    // A pod that is created now is queued alone.
    create(&mut stage, &["c"], &json!({}));
    assert_eq!(started(&stage), ["a", "b"]);
    assert_eq!(workloads(&stage).len(), 2);
}

#[test]
fn pods_that_started_alone_stay_alone() {
    let mut stage = stage(2);
    create_pod_group(&mut stage, &json!({"basic": {}}), &json!({}));
    create(&mut stage, &["a", "b"], &json!({}));
    delete_pod_group(&mut stage);
    create_pod_group(&mut stage, &gang(2), &json!({}));
    check_that_pods_run_on(&mut stage, 2);
}

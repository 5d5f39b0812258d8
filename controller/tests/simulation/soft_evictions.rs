//! Elastic queues on nodes: soft eviction, non-preemptible workloads, and victims for quota and nodes together.

use crate::fields::text;
use crate::fixture::Fixture;
use crate::jobs::JOB;
use crate::objects::NAMESPACE;
use crate::placed_workloads::{
    bind, change_queue, condition_of, create_job, decisive, is_admitted, job, nodes_of, stage, stop,
};
use crate::queued_pods::{POD, is_gated};
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, ObjectKey};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// A queue without quota limits that has its victims marked; its nodes have four CPUs.
fn soft_stage(nodes: &[&str]) -> Fixture {
    let mut stage = stage(nodes);
    change_queue(&mut stage, &json!({"elastic": {}}));
    stage
}

/// The label and the annotation of a pod of another namespace.
fn mark_of(stage: &Fixture, pod: &str) -> [String; 2] {
    let pod = stage.api.get(Kind::BoundPod, &ObjectKey::new("other", pod));
    marks(pod.unwrap())
}

fn marks(pod: &Value) -> [String; 2] {
    let key = labels::SOFT_EVICTION.replace('/', "~1");
    ["labels", "annotations"].map(|it| text(pod, &format!("/metadata/{it}/{key}")).to_owned())
}

/// Deletes a pod, as the component that reacts to the label does.
fn delete(stage: &mut Fixture, pod: &str) {
    let key = ObjectKey::new("other", pod);
    stage.api.delete(Kind::BoundPod, &key, None, false).unwrap();
    stop(stage, pod);
}

fn evictions(writes: &[String]) -> Vec<&String> {
    writes.iter().filter(|it| it.contains("evict")).collect()
}

#[test]
fn victims_on_nodes_are_marked_and_deleted_by_another_component() {
    let mut stage = soft_stage(&["n1", "n2", "n3"]);
    for (pod, node) in [("p1", "n1"), ("p2", "n2"), ("p3", "n3")] {
        bind(&mut stage, pod, node, 3, 10);
    }
    create_job(&mut stage, "a", 2, "mid");
    let writes = stage.settle();
    assert_eq!(
        evictions(&writes),
        ["soft_evict_pod p1", "soft_evict_pod p2"]
    );
    let uid = text(
        stage.get(Kind::Workload, &stage.workload_of("a")),
        "/metadata/uid",
    )
    .to_owned();
    // The preemptor belongs to another tenant.
    let expected = [uid.clone(), format!("{{\"preemptJob\":\"{uid}\"}}")];
    assert_eq!(mark_of(&stage, "p1"), expected);
    let event = "Pod p1 Preempted Preempted; the label scheduling.koordinator.sh/soft-eviction names the preemptor, \
                 and another component deletes the pod";
    assert!(
        stage.events.iter().any(|it| it == event),
        "{:?}",
        stage.events
    );
    // A slow component causes no further victims, also after a restart.
    assert_eq!(decisive(stage.advance(60_000)), [""; 0]);
    stage.restart();
    let writes = stage.advance(60_000);
    assert!(!writes.iter().any(|it| it.ends_with(" p3")), "{writes:?}");
    assert!(!is_admitted(&stage, "a"));
    delete(&mut stage, "p1");
    stage.advance(1_000);
    assert!(!is_admitted(&stage, "a"));
    delete(&mut stage, "p2");
    stage.advance(1_000);
    assert!(is_admitted(&stage, "a"));
    assert_eq!(mark_of(&stage, "p3"), [""; 2]);
}

#[test]
fn switch_has_victims_deleted() {
    let mut stage = soft_stage(&["n1"]);
    let switch = json!({"elastic": {"podShouldBeDeletedWhenPreempted": true}});
    change_queue(&mut stage, &switch);
    bind(&mut stage, "p1", "n1", 3, 10);
    create_job(&mut stage, "a", 1, "mid");
    assert_eq!(evictions(&stage.settle()), ["evict_pod p1"]);
    assert_eq!(mark_of(&stage, "p1"), [""; 2]);
}

#[test]
fn other_preemptors_count_on_the_room_of_marked_pods() {
    let mut stage = soft_stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    bind(&mut stage, "p2", "n2", 3, 50);
    create_job(&mut stage, "a", 1, "mid");
    stage.settle();
    create_job(&mut stage, "b", 1, "mid");
    assert_eq!(evictions(&stage.settle()), ["soft_evict_pod p2"]);
    assert_eq!(nodes_of(&stage, "a"), json!({"n1": 1}));
    assert_eq!(nodes_of(&stage, "b"), json!({"n2": 1}));
}

#[test]
fn pods_that_do_not_terminate_are_replaced_as_victims_after_a_bound() {
    let mut stage = soft_stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    bind(&mut stage, "p2", "n2", 3, 50);
    create_job(&mut stage, "a", 1, "mid");
    stage.settle();
    assert_eq!(evictions(&stage.advance(590_000)), [""; 0]);
    let writes = stage.advance(11_000);
    assert_eq!(evictions(&writes), ["soft_evict_pod p2"], "{writes:?}");
    assert_eq!(nodes_of(&stage, "a"), json!({"n2": 1}));
    // No busy loop when both are overdue.
    let writes = stage.advance(1_200_000);
    assert_eq!(evictions(&writes), [""; 0]);
    let reason = condition_of(&stage, "a", "QuotaReserved");
    assert!(
        reason.starts_with("False WaitingForNodes Waiting for room on nodes: "),
        "{reason}"
    );
    assert!(
        stage
            .wake_at_ms()
            .is_none_or(|at_ms| at_ms > stage.api.now_ms)
    );
    delete(&mut stage, "p1");
    stage.advance(1_000);
    assert!(is_admitted(&stage, "a"));
}

#[test]
fn non_preemptible_workload_is_no_victim_on_nodes() {
    for (preemptible, can_preempt, expected) in [
        ("true", "true", true),
        ("false", "true", false),
        ("true", "false", false),
    ] {
        let mut stage = soft_stage(&["n1"]);
        let create = |stage: &mut Fixture, name: &str, class: &str, preemptible: &str| {
            let mut job = job(name, 1, class);
            let labels =
                json!({labels::PREEMPTIBLE: preemptible, labels::CAN_PREEMPT: can_preempt});
            job["spec"]["template"]["metadata"] = json!({"labels": labels});
            stage.api.create(JOB, job).unwrap();
            stage.settle();
        };
        create(&mut stage, "victim", "low", preemptible);
        create(&mut stage, "a", "high", "true");
        stage.advance(5_000);
        let evicted = condition_or_none(&stage, "victim", "Evicted");
        assert_eq!(
            evicted.is_some_and(|it| it.starts_with("True Preempted")),
            expected,
            "preemptible {preemptible}, can preempt {can_preempt}"
        );
    }
}

fn condition_or_none(stage: &Fixture, job: &str, of: &str) -> Option<String> {
    let lines = stage.conditions(job);
    let found = lines.iter().find_map(|it| it.strip_prefix(of))?;
    Some(found.trim_start_matches('=').to_owned())
}

/// A queue with a quota of six CPUs on these nodes.
fn stage_with_quota(nodes: &[&str]) -> Fixture {
    let mut stage = stage(nodes);
    let flavor = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": 6}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
    change_queue(&mut stage, &json!({"resourceGroups": groups}));
    stage
}

#[test]
fn no_workload_is_preempted_for_quota_if_the_preemptor_does_not_fit_on_nodes() {
    let mut stage = stage_with_quota(&["n1", "n2"]);
    create_job(&mut stage, "victim", 2, "low");
    stage.settle();
    assert!(is_admitted(&stage, "victim"));
    // With the quota of the victim, and without room on the nodes for the second pod.
    bind(&mut stage, "x", "n1", 1, 5_000);
    bind(&mut stage, "y", "n1", 1, 5_000);
    create_job(&mut stage, "a", 2, "high");
    let writes = stage.advance(5_000);
    assert_eq!(evictions(&writes), [""; 0]);
    assert!(is_admitted(&stage, "victim"));
    let reason = condition_of(&stage, "a", "QuotaReserved");
    assert!(
        reason.starts_with("False WaitingForNodes Waiting for room on nodes: "),
        "{reason}"
    );
    delete(&mut stage, "x");
    let writes = stage.advance(1_000);
    assert!(
        evictions(&writes)[0].starts_with("evict job-victim"),
        "{writes:?}"
    );
}

#[test]
fn job_with_disruption_mode_pod_loses_single_pods_and_keeps_its_quota() {
    for (mode, single) in [("Pod", true), ("PodGroup", false)] {
        let mut stage = stage(&["n1", "n2"]);
        let mut serve = job("serve", 2, "low");
        serve["metadata"]["labels"][labels::DISRUPTION_MODE] = json!(mode);
        stage.api.create(JOB, serve).unwrap();
        stage.settle();
        let uid = text(stage.get(JOB, "serve"), "/metadata/uid").to_owned();
        for (name, node) in [("serve-0", "n1"), ("serve-1", "n2")] {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": "serve", "uid": uid,
                    "controller": true,
                }]},
                "spec": {"nodeName": node, "priority": 10, "containers": [
                    {"name": "a", "resources": {"requests": {"cpu": "3"}}},
                ]},
            });
            stage.api.create(Kind::BoundPod, pod).unwrap();
        }
        create_job(&mut stage, "a", 1, "high");
        let writes = stage.advance(1_000);
        let of_pods = writes
            .iter()
            .filter(|it| it.starts_with("evict_pod serve-"));
        assert_eq!(of_pods.count(), usize::from(single), "{mode}: {writes:?}");
        assert_eq!(is_admitted(&stage, "serve"), single, "{mode}");
    }
}

/// A pod of the group `g` of two pods with one CPU.
fn group_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {
                labels::QUEUE_NAME: "main", labels::POD_GROUP_NAME: "g", labels::PRIORITY_CLASS: "low",
            },
            "annotations": {labels::POD_GROUP_TOTAL_COUNT: "2"},
        },
        "spec": {
            "schedulingGates": [{"name": labels::ADMISSION_GATE}],
            "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    })
}

#[test]
fn pods_of_a_group_preempted_for_quota_are_marked_with_the_job_of_the_preemptor() {
    for deletes in [false, true] {
        let pods =
            |settings: &mut lockkeeper_controller::Settings| settings.job_kinds = vec![0, 1, 2];
        let mut stage = Fixture::with_settings(RequeueSettings::default(), 3, pods);
        let elastic = json!({"podShouldBeDeletedWhenPreempted": deletes});
        change_queue(&mut stage, &json!({"elastic": elastic}));
        for name in ["g1", "g2"] {
            stage.api.create(POD, group_pod(name)).unwrap();
        }
        stage.settle();
        assert!(!is_gated(stage.get(POD, "g1")));
        create_job(&mut stage, "train", 1, "high");
        let writes = stage.advance(1_000);
        let stops = writes
            .iter()
            .filter(|it| it.starts_with("stop_pod"))
            .count();
        if deletes {
            assert_eq!(stops, 4, "{writes:?}");
            assert!(is_admitted(&stage, "train"));
            continue;
        }
        assert_eq!(stops, 0, "{writes:?}");
        let annotation = format!("{{\"preemptJob\":\"train\",\"namespace\":\"{NAMESPACE}\"}}");
        for pod in ["g1", "g2"] {
            assert_eq!(marks(stage.get(POD, pod)), ["train", &annotation]);
        }
        // Nothing is written again, and no quota is released before the pods are gone.
        assert_eq!(decisive(stage.advance(60_000)), [""; 0]);
        stage.restart();
        assert_eq!(decisive(stage.advance(1_000)), [""; 0]);
        assert!(!is_admitted(&stage, "train"));
        for pod in ["g1", "g2"] {
            let key = ObjectKey::new(NAMESPACE, pod);
            stage.api.delete(POD, &key, None, false).unwrap();
        }
        stage.advance(120_000);
        assert!(is_admitted(&stage, "train"));
    }
}

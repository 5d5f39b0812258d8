//! Workloads of queues that place them on nodes.

use crate::fields::{condition, may_run, text};
use crate::fixture::Fixture;
use crate::jobs::JOB;
use crate::objects::{NAMESPACE, class};
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, ObjectKey, Settings, WritePurpose};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// The finalizer of a pod that takes a while to stop.
const STOPPING: &str = "example.com/stopping";

/// A queue without quota limits that places workloads on these nodes of four CPUs.
pub fn stage(nodes: &[&str]) -> Fixture {
    let pods = |settings: &mut Settings| settings.job_kinds = vec![0, 1, 2];
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 0, pods);
    change_queue(
        &mut stage,
        &json!({"resourceGroups": null, "placement": {"policy": "Nodes"}}),
    );
    let system = class("system-node-critical", 2_000_001_000);
    stage.api.create(Kind::PriorityClass, system).unwrap();
    for node in nodes {
        add_node(&mut stage, node);
    }
    stage
}

/// Changes the spec of the queue.
pub fn change_queue(stage: &mut Fixture, spec: &Value) {
    let queue = ObjectKey::new("", "main");
    let patch = json!({"spec": spec});
    let queues = Kind::ClusterQueue;
    stage.api.patch(queues, &queue, &patch, false).unwrap();
}

pub fn add_node(stage: &mut Fixture, name: &str) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": name, "labels": {"kind": "spot", "kubernetes.io/hostname": name},
    }});
    stage.api.create(Kind::Node, node).unwrap();
    let status = json!({"status": {"allocatable": {"cpu": "4", "pods": "10"}}});
    let key = ObjectKey::new("", name);
    stage.api.patch(Kind::Node, &key, &status, true).unwrap();
}

/// Binds a pod of this priority to a node. It stops when [`stop`] is called.
pub fn bind(stage: &mut Fixture, name: &str, node: &str, cpu: u32, priority: i32) {
    let pod = bound_pod(name, node, cpu, priority);
    stage.api.create(Kind::BoundPod, pod).unwrap();
}

/// A pod that is bound to a node.
pub fn bound_pod(name: &str, node: &str, cpu: u32, priority: i32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "other", "labels": {"app": name},
            "finalizers": [STOPPING],
        },
        "spec": {
            "nodeName": node, "priority": priority,
            "containers": [{"name": "a", "resources": {"requests": {"cpu": cpu.to_string()}}}],
        },
    })
}

/// Ends a pod that is being deleted.
pub fn stop(stage: &mut Fixture, name: &str) {
    let key = ObjectKey::new("other", name);
    let patch = json!({"metadata": {"finalizers": null}});
    stage
        .api
        .patch(Kind::BoundPod, &key, &patch, false)
        .unwrap();
}

/// Creates a Job of this many pods of three CPUs.
pub fn create_job(stage: &mut Fixture, name: &str, pods: u32, class: &str) {
    stage.api.create(JOB, job(name, pods, class)).unwrap();
}

/// A Job of this many pods of three CPUs.
pub fn job(name: &str, pods: u32, class: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {labels::QUEUE_NAME: "main", labels::PRIORITY_CLASS: class},
        },
        "spec": {
            "parallelism": pods, "completions": pods, "suspend": true,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "3"}}}],
            }},
        },
    })
}

/// The writes without those of pending reasons and events.
pub fn decisive(lines: Vec<String>) -> Vec<String> {
    let is_decisive = |it: &String| !it.starts_with("pending_reason") && !it.starts_with("event");
    let mut lines: Vec<String> = lines.into_iter().filter(is_decisive).collect();
    for line in &mut lines {
        // The names of workloads end with a digest.
        if line.contains(" job-")
            && let Some(at) = line.rfind('-')
        {
            line.truncate(at);
        }
    }
    lines
}

pub fn nodes_of(stage: &Fixture, job: &str) -> Value {
    let workload = stage.get(Kind::Workload, &stage.workload_of(job));
    workload["status"]["nominatedPlacement"]["podSets"][0]["nodes"].clone()
}

pub fn is_admitted(stage: &Fixture, job: &str) -> bool {
    may_run(stage.get(Kind::Workload, &stage.workload_of(job)))
}

/// Status, reason and message of a condition of the workload of a job.
pub fn condition_of(stage: &Fixture, job: &str, of: &str) -> String {
    let workload = stage.get(Kind::Workload, &stage.workload_of(job));
    let found = condition(workload, of).unwrap();
    ["/status", "/reason", "/message"]
        .map(|field| text(found, field))
        .join(" ")
}

#[test]
fn workload_that_fits_is_admitted_in_one_write_with_its_nodes() {
    let mut stage = stage(&["n1", "n2", "n3"]);
    bind(&mut stage, "old", "n1", 2, 10);
    create_job(&mut stage, "a", 2, "mid");
    let writes = decisive(stage.settle());
    assert_eq!(
        writes,
        ["create_workload job-a", "admit job-a", "start_job a"]
    );
    assert_eq!(nodes_of(&stage, "a"), json!({"n2": 1, "n3": 1}));
    // The room is taken before the pods are bound.
    create_job(&mut stage, "b", 1, "mid");
    stage.settle();
    assert!(!is_admitted(&stage, "b"));
}

#[test]
fn victims_stop_before_the_workload_is_admitted() {
    let mut stage = stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    bind(&mut stage, "p2", "n2", 3, 10);
    create_job(&mut stage, "a", 2, "mid");
    let writes = decisive(stage.settle());
    let expected = [
        "create_workload job-a",
        "nominate_nodes job-a",
        "evict_pod p1",
        "evict_pod p2",
    ];
    assert_eq!(writes, expected);
    let waiting = "False WaitingForVictims Waiting until preempted pods have left the nodes in \
                   status.nominatedPlacement";
    assert_eq!(condition_of(&stage, "a", "Admitted"), waiting);
    assert_eq!(nodes_of(&stage, "a"), json!({"n1": 1, "n2": 1}));
    // Another tenant does not learn the name of the preemptor.
    let uid = text(
        stage.get(Kind::Workload, &stage.workload_of("a")),
        "/metadata/uid",
    );
    let why =
        format!("Preempted to accommodate a workload (UID: {uid}) due to prioritization on nodes");
    let events = ["p1", "p2"].map(|pod| format!("Pod {pod} Preempted {why}"));
    assert_eq!(stage.events, events);
    stop(&mut stage, "p1");
    assert_eq!(decisive(stage.settle()), [""; 0]);
    stop(&mut stage, "p2");
    assert_eq!(decisive(stage.settle()), ["admit job-a", "start_job a"]);
    assert!(is_admitted(&stage, "a"));
}

#[test]
fn preemption_is_recorded_although_the_watch_shows_it_first() {
    for (spec, purpose, expected) in [
        (
            json!({}),
            WritePurpose::EvictPod,
            "Preempted to accommodate",
        ),
        (
            json!({"elastic": {}}),
            WritePurpose::SoftEvictPod,
            "Preempted; the label",
        ),
    ] {
        let mut stage = stage(&["n1"]);
        change_queue(&mut stage, &spec);
        bind(&mut stage, "p1", "n1", 3, 10);
        create_job(&mut stage, "a", 1, "mid");
        let writes = stage.poll_until(purpose);
        let following = stage.finish_writes_late(writes);
        stage.finish_writes(following);
        stage.settle();
        let events = &stage.events;
        assert_eq!(events.len(), 1, "{events:?}");
        let expected = format!("Pod p1 Preempted {expected}");
        assert!(events[0].starts_with(&expected), "{events:?}");
    }
}

#[test]
fn no_pod_is_evicted_for_a_workload_that_fits_only_in_part() {
    let mut stage = stage(&["n1", "n2"]);
    bind(&mut stage, "low", "n1", 3, 10);
    bind(&mut stage, "high", "n2", 3, 1000);
    create_job(&mut stage, "a", 2, "mid");
    assert_eq!(decisive(stage.settle()), ["create_workload job-a"]);
    stage.advance(5_000);
    let reason = condition_of(&stage, "a", "QuotaReserved");
    assert!(
        reason.starts_with("False WaitingForNodes Waiting for room on nodes: "),
        "{reason}"
    );
    add_node(&mut stage, "n3");
    stage.advance(1_000);
    assert_eq!(nodes_of(&stage, "a"), json!({"n1": 1, "n3": 1}));
    stop(&mut stage, "low");
    stage.settle();
    assert!(is_admitted(&stage, "a"));
}

#[test]
fn restart_between_two_writes_continues() {
    // After each number of write batches.
    for batches in 0..6 {
        let mut stage = stage(&["n1", "n2"]);
        bind(&mut stage, "p1", "n1", 3, 10);
        bind(&mut stage, "p2", "n2", 3, 10);
        create_job(&mut stage, "a", 2, "mid");
        for _ in 0..batches {
            let writes = stage.poll_writes();
            stage.finish_writes(writes);
        }
        stage.restart();
        stage.advance(1_000);
        for pod in ["p1", "p2"] {
            stop(&mut stage, pod);
        }
        stage.advance(1_000);
        assert!(is_admitted(&stage, "a"), "after {batches} batches");
        assert_eq!(
            stage.api.names(Kind::BoundPod),
            [],
            "after {batches} batches"
        );
        stage.restart();
        create_job(&mut stage, "b", 1, "mid");
        stage.advance(1_000);
        assert!(!is_admitted(&stage, "b"), "a restart keeps the reservation");
    }
}

#[test]
fn workload_of_lower_priority_is_evicted_as_a_whole() {
    let mut stage = stage(&["n1", "n2"]);
    create_job(&mut stage, "victim", 2, "low");
    stage.settle();
    assert!(is_admitted(&stage, "victim"));
    create_job(&mut stage, "a", 1, "high");
    let writes = decisive(stage.settle());
    assert!(
        writes.contains(&"evict job-victim".to_owned()),
        "{writes:?}"
    );
    let preempted = condition_of(&stage, "victim", "Preempted");
    assert!(
        preempted.starts_with("True OnNodes Preempted to accommodate"),
        "{preempted}"
    );
}

#[test]
fn disruption_budget_decides_between_eviction_and_deletion() {
    for (cpu_of_other, expected) in [
        // Another pod without a budget can be evicted.
        (3, vec!["evict_pod other"]),
        // No victim without a violation is left.
        (0, vec!["mark_victim_pod guarded", "evict_pod guarded"]),
    ] {
        let mut stage = stage(&["n1", "n2"]);
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "other"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
        });
        stage.api.create(Kind::DisruptionBudget, budget).unwrap();
        bind(&mut stage, "guarded", "n1", 3, 10);
        let (node, priority) = if cpu_of_other > 0 {
            ("n2", 10)
        } else {
            ("n2", 5000)
        };
        bind(&mut stage, "other", node, 3, priority);
        create_job(&mut stage, "a", 1, "mid");
        let writes = decisive(stage.settle());
        let of_pods: Vec<&String> = writes.iter().filter(|it| it.contains("_pod")).collect();
        assert_eq!(of_pods, expected.iter().collect::<Vec<_>>());
    }
}

#[test]
fn workload_gives_up_after_other_pods_have_taken_the_room_again_and_again() {
    let mut stage = stage(&["n1"]);
    bind(&mut stage, "p0", "n1", 3, 10);
    create_job(&mut stage, "a", 1, "mid");
    let mut evicted = 0;
    for at in 0..8 {
        let writes = decisive(stage.settle());
        evicted += writes
            .iter()
            .filter(|it| it.starts_with("evict_pod"))
            .count();
        // Its owner creates another one, which is bound before the workload is admitted.
        bind(&mut stage, &format!("p{}", at + 1), "n1", 3, 10);
        let name = format!("p{at}");
        let key = ObjectKey::new("other", &name);
        if crate::fields::is_deleted(stage.api.get(Kind::BoundPod, &key).unwrap()) {
            stop(&mut stage, &name);
        }
    }
    assert_eq!(evicted, 4);
    assert!(!is_admitted(&stage, "a"));
    let reason = condition_of(&stage, "a", "QuotaReserved");
    let why = "False WaitingForNodes Waiting for room on nodes: other pods have taken the room of preempted pods \
               several times";
    assert_eq!(reason, why);
    let admitted = condition_of(&stage, "a", "Admitted");
    assert!(admitted.starts_with("False NoReservation "), "{admitted}");
    // It is tried again after the pause.
    let writes = decisive(stage.advance(61_000));
    assert!(
        writes.contains(&"nominate_nodes job-a".to_owned()),
        "{writes:?}"
    );
}

/// Other nodes than the nominated ones are looked at once in a second.
#[test]
fn room_on_another_node_replaces_a_placement_with_victims() {
    let mut stage = stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    bind(&mut stage, "p2", "n2", 3, 50);
    create_job(&mut stage, "a", 1, "mid");
    stage.settle();
    assert_eq!(nodes_of(&stage, "a"), json!({"n1": 1}));
    let key = ObjectKey::new("other", "p2");
    stage.api.delete(Kind::BoundPod, &key, None, false).unwrap();
    stop(&mut stage, "p2");
    stage.advance(1_000);
    assert_eq!(nodes_of(&stage, "a"), json!({"n2": 1}));
    assert!(is_admitted(&stage, "a"));
}

#[test]
fn lost_node_is_replaced_and_the_condition_has_the_reason() {
    let mut stage = stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    bind(&mut stage, "p2", "n2", 3, 50);
    create_job(&mut stage, "a", 1, "mid");
    stage.settle();
    assert_eq!(nodes_of(&stage, "a"), json!({"n1": 1}));
    let drained = json!({"spec": {"unschedulable": true}});
    let n1 = ObjectKey::new("", "n1");
    stage.api.patch(Kind::Node, &n1, &drained, false).unwrap();
    let writes = decisive(stage.settle());
    assert_eq!(writes, ["nominate_nodes job-a", "evict_pod p2"]);
    assert_eq!(nodes_of(&stage, "a"), json!({"n2": 1}));
    let admitted = condition_of(&stage, "a", "Admitted");
    assert!(
        admitted.contains("The nominated placement is no longer valid: "),
        "{admitted}"
    );
    stop(&mut stage, "p2");
    stage.settle();
    assert!(is_admitted(&stage, "a"));
}

/// Binds a pod of this priority that the Job owns.
fn bind_pod_of(stage: &mut Fixture, job: &str, name: &str, priority: i32) {
    let uid = crate::fields::uid(stage.get(JOB, job)).to_owned();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": true,
            }],
        },
        "spec": {"nodeName": "n1", "priority": priority, "containers": [{"name": "a"}]},
    });
    stage.api.create(Kind::BoundPod, pod).unwrap();
}

#[test]
fn pods_with_another_priority_than_their_workload_are_reported() {
    let mut stage = stage(&["n1"]);
    create_job(&mut stage, "a", 1, "mid");
    stage.settle();
    let workload = stage.workload_of("a");
    let report = |stage: &Fixture| {
        let found = condition(
            stage.get(Kind::Workload, &workload),
            "PodsNotMatchingPriority",
        );
        found.map(|it| {
            format!(
                "{} {} {}",
                text(it, "/status"),
                text(it, "/reason"),
                text(it, "/message")
            )
        })
    };
    let of_class = stage.get(Kind::Workload, &workload)["status"]["priority"]
        .as_i64()
        .unwrap();
    bind_pod_of(&mut stage, "a", "a-0", i32::try_from(of_class).unwrap());
    assert!(stage.settle().is_empty());
    assert_eq!(report(&stage), None);
    bind_pod_of(&mut stage, "a", "a-1", 7);
    let other = stage.settle();
    assert_eq!(other, [format!("pod_priority {workload}")]);
    let text = report(&stage).unwrap();
    let expected = format!(
        "True OtherPriority The workload has the priority {of_class}, and its pod a-1 has 7; kube-scheduler preempts by the \
         priority of pods."
    );
    assert!(text.starts_with(&expected), "{text}");
    // It is reported once.
    bind_pod_of(&mut stage, "a", "a-2", 8);
    assert!(stage.settle().is_empty());
    let stop = json!({"spec": {"active": false}});
    stage.change(Kind::Workload, &workload, &stop);
    // It waits for the response of the controller of Jobs.
    stage.advance(90_000);
    let suspended = json!([{
        "type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "",
        "lastTransitionTime": "2033-11-14T22:13:20Z",
    }]);
    let stopped = json!({"active": 0, "startTime": null, "conditions": suspended});
    stage.status(JOB, "a", &stopped);
    stage.advance(90_000);
    let text = report(&stage).unwrap();
    assert!(text.starts_with("False SamePriority "), "{text}");
}

//! Answers about workloads of a ClusterQueue that places them on nodes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and build objects from literals"
)]

use lockkeeper_explain::{
    Answer, PlacementResult, WorldBuilder, WorldSettings, explain, write_answer,
};
use serde_json::{Value, json};

const API_VERSION: &str = "lockkeeper.dev/v1alpha1";

/// A ClusterQueue `q` without quota limits that places workloads on nodes, and a LocalQueue for it in the namespace `ns`.
fn builder() -> WorldBuilder {
    let mut builder = WorldBuilder::new();
    builder.add(json!({
        "apiVersion": API_VERSION, "kind": "ClusterQueue", "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, "placement": {"policy": "Nodes"}},
    }));
    builder.add(json!({
        "apiVersion": API_VERSION, "kind": "LocalQueue", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"clusterQueue": "q"},
    }));
    builder
}

fn node(name: &str, cpu: u32, spec: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec,
        "status": {"allocatable": {"cpu": cpu.to_string(), "pods": "10"}},
    })
}

/// A pod on a node, owned by a Workload's job if `owner` is not empty.
fn pod(name: &str, node: &str, cpu: u32, priority: i32, owner: &str) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": node, "priority": priority,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}}]},
        "status": {"phase": "Running"},
    });
    if !owner.is_empty() {
        pod["metadata"]["ownerReferences"] = owners(owner);
    }
    pod
}

fn owners(uid: &str) -> Value {
    json!([{"apiVersion": "batch/v1", "kind": "Job", "name": uid, "uid": uid, "controller": true}])
}

/// A workload of `count` pods of `cpu` each.
fn workload(name: &str, count: i32, cpu: u32, priority: i32) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}});
    json!({
        "apiVersion": API_VERSION, "kind": "Workload",
        "metadata": {"name": name, "namespace": "ns", "uid": name,
            "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners(&format!("job-{name}"))},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": count,
            "template": {"spec": {"containers": [container]}}}]},
        "status": {"priority": priority, "preemptionPriority": priority, "conditions": []},
    })
}

/// The workload, admitted on these nodes.
fn admitted(mut workload: Value, nodes: Value, is_ready: bool) -> Value {
    let count = workload["spec"]["podSets"][0]["count"].clone();
    workload["status"]["admission"] = json!({
        "clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": count}],
    });
    workload["status"]["nominatedPlacement"] =
        json!({"podSets": [{"name": "main", "nodes": nodes}]});
    if is_ready {
        workload["status"]["conditions"] = json!([{"type": "PodsReady", "status": "True", "reason": "Ready",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    }
    workload
}

#[track_caller]
fn answer(mut builder: WorldBuilder, objects: Vec<Value>, name: &str) -> Answer {
    for object in objects {
        builder.add(object);
    }
    let world = builder.build(WorldSettings::default());
    assert!(world.unreadable().is_empty(), "{:?}", world.unreadable());
    explain(&world, &format!("ns/{name}")).unwrap()
}

fn text(answer: &Answer) -> String {
    let mut text = String::new();
    write_answer(&mut text, answer).unwrap();
    text
}

#[test]
fn workload_that_fits_names_its_nodes() {
    let objects = vec![
        node("a", 4, json!({})),
        node("b", 4, json!({})),
        workload("w", 2, 3, 0),
    ];
    let answer = answer(builder(), objects, "w");
    let placement = answer.placement.as_ref().unwrap();
    assert_eq!(placement.result, PlacementResult::Fits);
    let nodes = placement.pod_sets[0].nodes.iter();
    let nodes: Vec<(&str, i32)> = nodes.map(|(name, pods)| (&**name, *pods)).collect();
    assert_eq!(nodes, [("a", 1), ("b", 1)]);
    assert_eq!(answer.summary, "is admitted in the next cycle");
}

#[test]
fn workload_that_does_not_fit_has_the_obstacle_of_each_node() {
    let taint = json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]});
    let objects = vec![
        node("free", 4, json!({})),
        node("full", 4, json!({})),
        node("cordoned", 8, json!({"unschedulable": true})),
        node("tainted", 8, taint),
        pod("system", "full", 3, 2_000_000_000, ""),
        pod("web", "free", 1, 0, ""),
        workload("w", 2, 3, 10),
    ];
    let answer = answer(builder(), objects, "w");
    assert_eq!(answer.reason, "WaitingForNodes");
    insta::assert_snapshot!("does_not_fit", text(&answer));
}

#[test]
fn workload_that_preempts_names_its_victims_on_nodes() {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"disruptionsAllowed": 0},
    });
    let low = admitted(workload("low", 1, 4, 0), json!({"b": 1}), true);
    let objects = vec![
        node("a", 4, json!({})),
        node("b", 4, json!({})),
        pod("web", "a", 4, 0, ""),
        pod("low-0", "b", 4, 0, "job-low"),
        budget,
        low,
        workload("w", 2, 3, 10),
    ];
    let answer = answer(builder(), objects, "w");
    let placement = answer.placement.as_ref().unwrap();
    assert_eq!(placement.result, PlacementResult::Preempts);
    insta::assert_snapshot!("preempts", text(&answer));
}

#[test]
fn reserved_room_of_an_admitted_workload_is_taken() {
    let starting = admitted(workload("starting", 1, 3, 0), json!({"a": 1}), false);
    let objects = vec![node("a", 4, json!({})), starting, workload("w", 1, 3, 0)];
    let answer = answer(builder(), objects, "w");
    let placement = answer.placement.unwrap();
    assert_eq!(placement.result, PlacementResult::DoesNotFit);
    assert_eq!(placement.nodes[0].free["cpu"], "1");
}

#[test]
fn nominated_workload_waits_for_terminating_pods() {
    let mut old = pod("old", "a", 4, 0, "");
    old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let nominated = admitted(workload("w", 1, 3, 10), json!({"a": 1}), false);
    let answer = answer(
        builder(),
        vec![node("a", 4, json!({})), old, nominated],
        "w",
    );
    let placement = answer.placement.unwrap();
    assert_eq!(placement.result, PlacementResult::WaitsForVictims);
    assert_eq!(placement.pod_sets[0].nodes["a"], 1);
}

#[test]
fn workload_that_waits_for_nodes_is_placed_again() {
    let mut waiting = workload("w", 2, 3, 10);
    waiting["status"]["conditions"] = json!([{"type": "QuotaReserved", "status": "False",
        "reason": "WaitingForNodes", "message": "Waiting for room on nodes: 0 of 1 node fit 2 pods",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let one = vec![node("a", 4, json!({})), waiting.clone()];
    let answer_now = answer(builder(), one, "w");
    assert_eq!(
        answer_now.placement.unwrap().result,
        PlacementResult::DoesNotFit
    );
    assert_eq!(answer_now.reason, "WaitingForNodes");
    assert!(
        answer_now
            .message
            .contains("only 1 of 2 pods fit on 1 node"),
        "{}",
        answer_now.message
    );
    let two = vec![node("a", 4, json!({})), node("b", 4, json!({})), waiting];
    let later = answer(builder(), two, "w");
    assert_eq!(later.placement.unwrap().result, PlacementResult::Fits);
    assert!(
        later.summary.starts_with("fits on nodes now"),
        "{}",
        later.summary
    );
}

#[test]
fn workloads_ahead_take_room_if_they_fit() {
    let mut first = workload("first", 1, 3, 10);
    let nodes = || vec![node("a", 4, json!({})), workload("w", 1, 3, 0)];
    let objects = [nodes(), vec![first.clone()]].concat();
    let behind = answer(builder(), objects, "w");
    assert_eq!(
        behind.placement.unwrap().result,
        PlacementResult::DoesNotFit
    );
    // One that fits on no node is not admitted, and takes no room.
    first["spec"]["podSets"][0]["count"] = json!(2);
    let objects = [nodes(), vec![first]].concat();
    let alone = answer(builder(), objects, "w");
    assert_eq!(alone.placement.unwrap().result, PlacementResult::Fits);
    assert_eq!(alone.summary, "is admitted in the next cycle");
}

#[test]
fn running_workload_can_be_preempted_on_nodes() {
    let running = admitted(workload("w", 1, 3, 5), json!({"a": 1}), true);
    let objects = vec![
        node("a", 4, json!({})),
        pod("w-0", "a", 3, 5, "job-w"),
        running,
    ];
    let answer = answer(builder(), objects, "w");
    let preemptor = &answer.preemptors[0];
    let found = (
        &*preemptor.cluster_queue,
        preemptor.priority_min,
        preemptor.reason,
    );
    assert_eq!(found, ("q", Some(6), "OnNodes"));
}

/// The workload of a group has no owner. Its pods are those that name the group, and their room counts once.
#[test]
fn pods_of_a_group_belong_to_its_workload() {
    let mut group = admitted(workload("group", 2, 2, 0), json!({"a": 2}), false);
    group["metadata"]["ownerReferences"] = json!([]);
    group["metadata"]["labels"] = json!({"lockkeeper.dev/pod-group-name": "g"});
    let member = |name: &str| {
        let mut pod = pod(name, "a", 2, 0, "");
        pod["metadata"]["labels"] = json!({"lockkeeper.dev/pod-group-name": "g"});
        pod
    };
    let objects = vec![node("a", 6, json!({})), member("g-0"), member("g-1"), group];
    let fits = answer(
        builder(),
        [objects.clone(), vec![workload("w", 1, 2, 0)]].concat(),
        "w",
    );
    assert_eq!(fits.placement.unwrap().result, PlacementResult::Fits);
    let preempts = answer(
        builder(),
        [objects, vec![workload("w", 1, 3, 9)]].concat(),
        "w",
    );
    let victims = preempts.placement.unwrap().victims;
    assert_eq!(
        (victims[0].kind, &*victims[0].name),
        ("Workload", "ns/group")
    );
    assert_eq!(victims.len(), 1);
}

#[test]
fn answer_without_nodes_states_the_assumption() {
    let answer = answer(builder(), vec![workload("w", 2, 3, 0)], "w");
    assert!(answer.placement.is_none());
    let mut assumptions = answer.assumptions.iter();
    assert!(assumptions.any(|it| it.starts_with("the input has no Node:")));
}

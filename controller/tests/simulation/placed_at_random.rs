//! Placement on nodes with random pods, nodes and restarts: invariants of each write and of the end. Every second run is of
//! an elastic queue, whose victims another component deletes.

use crate::fields::{is_deleted, list, may_run, number, text};
use crate::fixture::Fixture;
use crate::objects::NAMESPACE;
use crate::placed_workloads::{add_node, bound_pod, change_queue, stage, stop};
use crate::queued_pods::POD;
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, ObjectKey, WritePurpose, WriteRequest};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SEEDS: u64 = 800;
const STEPS: usize = 40;
/// The cpus of a node, and of a pod with a queue.
const NODE_CPU: i64 = 4;
const POD_CPU: i64 = 3;

#[test]
fn placement_never_overcommits_nodes_and_evicts_only_for_nominated_workloads() {
    let mut totals = Totals::default();
    for seed in 1..=SEEDS {
        run(seed, &mut totals);
    }
    // A run without evictions or without admissions checks nothing.
    assert!(totals.evicted > 200, "{totals:?}");
    assert!(totals.marked > 100, "{totals:?}");
    assert!(totals.admitted > 500, "{totals:?}");
    assert!(totals.killed > 100, "{totals:?}");
    assert!(totals.apart > 100, "{totals:?}");
}

#[derive(Debug, Default)]
struct Totals {
    evicted: usize,
    marked: usize,
    admitted: usize,
    killed: usize,
    /// Admitted workloads that exclude other pods, at the end of a run.
    apart: usize,
}

fn run(seed: u64, totals: &mut Totals) {
    let mut dice = crate::simulation::seeded_rng(seed);
    let mut stage = stage(&["n0", "n1", "n2"]);
    if seed.is_multiple_of(2) {
        change_queue(&mut stage, &json!({"elastic": {}}));
    }
    let mut nodes = 3;
    for step in 0..STEPS {
        let at = format!("seed {seed}, step {step}");
        match dice.below(16) {
            0..4 => create_group(&mut stage, &mut dice, step),
            4..7 => bind_external(&mut stage, &mut dice, step),
            7 => delete_external(&mut stage, &mut dice),
            8 => stop_terminating(&mut stage, &mut dice),
            9 if nodes < 5 => {
                add_node(&mut stage, &format!("n{nodes}"));
                nodes += 1;
            }
            10 => stage.restart(),
            11 => {
                create_group(&mut stage, &mut dice, step);
                kill_between_writes(&mut stage, &mut dice, totals, &at);
            }
            12 => cordon(&mut stage, &mut dice),
            13 if stage.api.names(Kind::Node).len() > 2 => lose_node(&mut stage, &mut dice),
            14 => delete_marked(&mut stage, &mut dice),
            _ => stage.api.now_ms += 1_000,
        }
        // Sometimes the next step happens between two writes.
        let batches = if dice.percent(30) { 1 } else { usize::MAX };
        write(&mut stage, batches, totals, &at);
        check_nodes(&stage, &at);
    }
    finish(&mut stage, totals, &format!("seed {seed}, end"));
}

/// Executes writes until none is due, at most this many batches.
fn write(stage: &mut Fixture, batches: usize, totals: &mut Totals, at: &str) {
    for _ in 0..batches {
        let writes = stage.poll_writes();
        if writes.is_empty() {
            let soon_ms = stage.api.now_ms + 200;
            match stage.wake_at_ms().filter(|it| *it <= soon_ms) {
                Some(at_ms) => stage.api.now_ms = stage.api.now_ms.max(at_ms) + 1,
                None => return,
            }
        }
        for write in &writes {
            check_write(stage, write, totals, at);
        }
        stage.finish_writes(writes);
    }
}

/// The process ends after the first of several writes.
fn kill_between_writes(stage: &mut Fixture, dice: &mut Rng, totals: &mut Totals, at: &str) {
    let mut writes = stage.poll_writes();
    writes.truncate(dice.below(writes.len() + 1));
    totals.killed += usize::from(!writes.is_empty());
    for write in &writes {
        check_write(stage, write, totals, at);
    }
    stage.finish_writes(writes);
    stage.restart();
}

/// A pod is evicted or marked only on a node that a stored nomination names.
fn check_write(stage: &Fixture, write: &WriteRequest, totals: &mut Totals, at: &str) {
    if write.purpose == WritePurpose::Admit {
        totals.admitted += 1;
    }
    match write.purpose {
        WritePurpose::EvictPod | WritePurpose::MarkVictimPod => totals.evicted += 1,
        WritePurpose::SoftEvictPod => totals.marked += 1,
        _ => return,
    }
    let (_, name) = crate::write::written_object(write);
    let Some(pod) = stage.api.get(Kind::BoundPod, &name) else {
        return;
    };
    let node = text(pod, "/spec/nodeName");
    let nominated = stage.api.all(Kind::Workload).any(|(_, it)| {
        let nodes = &it["status"]["nominatedPlacement"]["podSets"][0]["nodes"];
        !may_run(it) && nodes.get(node).is_some()
    });
    assert!(
        nominated,
        "{at}: pod {name} is evicted without a nomination"
    );
}

/// The cpus that are used on each node: by pods, and by the placements of admitted workloads.
fn used(stage: &Fixture) -> BTreeMap<String, i64> {
    let mut used = BTreeMap::new();
    for (_, pod) in stage.api.all(Kind::BoundPod) {
        let cpu = text(pod, "/spec/containers/0/resources/requests/cpu");
        *used
            .entry(text(pod, "/spec/nodeName").to_owned())
            .or_default() += cpu.parse::<i64>().unwrap();
    }
    for (_, workload) in stage.api.all(Kind::Workload) {
        if !may_run(workload) {
            continue;
        }
        let mut pods = 0;
        for pod_set in list(workload, "/status/nominatedPlacement/podSets") {
            for (node, count) in pod_set["nodes"].as_object().unwrap() {
                let count = count.as_i64().unwrap();
                pods += count;
                *used.entry(node.clone()).or_default() += count * POD_CPU;
            }
        }
        let admitted = number(workload, "/status/admission/podSetAssignments/0/count");
        assert_eq!(pods, admitted, "a part of it is placed: {workload:#}");
    }
    used
}

fn check_nodes(stage: &Fixture, at: &str) {
    for (node, cpu) in used(stage) {
        assert!(cpu <= NODE_CPU, "{at}: {cpu} cpus are used on {node}");
    }
    for node in apart(stage) {
        let mut pods = stage.api.all(Kind::BoundPod);
        let web = pods.find(|(_, it)| is_web(it) && text(it, "/spec/nodeName") == node);
        assert!(
            web.is_none(),
            "{at}: {node} has {web:?}, which a workload excludes"
        );
    }
}

/// The nodes of admitted workloads whose anti-affinity excludes some pods.
fn apart(stage: &Fixture) -> Vec<String> {
    let workloads = stage.api.all(Kind::Workload).filter(|(_, it)| {
        let affinity = "/spec/podSets/0/template/spec/affinity/podAntiAffinity";
        may_run(it) && it.pointer(affinity).is_some()
    });
    let placements = workloads.flat_map(|(_, it)| list(it, "/status/nominatedPlacement/podSets"));
    let nodes = placements.flat_map(|it| it["nodes"].as_object().unwrap().keys().cloned());
    nodes.collect()
}

/// Whether a pod is one that the workloads of [`apart`] exclude.
fn is_web(pod: &Value) -> bool {
    text(pod, "/metadata/labels/tier") == "web"
}

fn create_group(stage: &mut Fixture, dice: &mut Rng, step: usize) {
    let pods = dice.range(1, 3);
    let class = dice.pick(&["low", "mid", "high"]);
    let term = json!({
        "topologyKey": "kubernetes.io/hostname", "namespaceSelector": {},
        "labelSelector": {"matchLabels": {"tier": "web"}},
    });
    let apart =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let affinity = if dice.percent(40) { apart } else { Value::Null };
    for index in 0..pods {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("g{step}-{index}"), "namespace": NAMESPACE,
                "labels": {
                    labels::QUEUE_NAME: "main", labels::PRIORITY_CLASS: class,
                    labels::POD_GROUP_NAME: format!("g{step}"),
                },
                "annotations": {labels::POD_GROUP_TOTAL_COUNT: pods.to_string()},
            },
            "spec": {
                "schedulingGates": [{"name": labels::ADMISSION_GATE}],
                "affinity": affinity,
                "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": POD_CPU.to_string()}}}],
            },
        });
        stage.api.create(POD, pod).unwrap();
    }
}

/// kube-scheduler binds a pod to a node with room that no admitted workload has.
fn bind_external(stage: &mut Fixture, dice: &mut Rng, step: usize) {
    let used = used(stage);
    let nodes = stage.api.names(Kind::Node);
    let node = nodes[dice.below(nodes.len())].name().to_owned();
    let cpu = dice.range(1, 3);
    if used.get(&node).copied().unwrap_or_default() + cpu <= NODE_CPU {
        let priority = *dice.pick(&[0, 50, 500]);
        let cpu = u32::try_from(cpu).unwrap();
        let mut pod = bound_pod(&format!("p{step}"), &node, cpu, priority);
        if dice.percent(50) && !apart(stage).contains(&node) {
            pod["metadata"]["labels"]["tier"] = "web".into();
        }
        stage.api.create(Kind::BoundPod, pod).unwrap();
    }
}

fn external(stage: &Fixture, holds: impl Fn(&Value) -> bool) -> Vec<ObjectKey> {
    let pods = stage.api.all(Kind::BoundPod);
    let pods = pods.filter(|(_, it)| holds(it));
    pods.map(|(name, _)| name.clone()).collect()
}

fn delete_external(stage: &mut Fixture, dice: &mut Rng) {
    let running = external(stage, |it| !is_deleted(it));
    if !running.is_empty() {
        let name = &running[dice.below(running.len())];
        stage.api.delete(Kind::BoundPod, name, None, false).unwrap();
    }
}

/// The component that reacts to the label deletes a pod.
fn delete_marked(stage: &mut Fixture, dice: &mut Rng) {
    let marked = marked(stage);
    if !marked.is_empty() {
        let (kind, name) = &marked[dice.below(marked.len())];
        stage.api.delete(*kind, name, None, false).unwrap();
    }
}

/// The pods with the label, of groups and others.
fn marked(stage: &Fixture) -> Vec<(Kind, ObjectKey)> {
    let of = |kind: Kind| {
        let pods = stage.api.all(kind);
        let pods = pods.filter(|(_, it)| is_marked(it) && !is_deleted(it));
        pods.map(move |(name, _)| (kind, name.clone()))
    };
    of(POD).chain(of(Kind::BoundPod)).collect()
}

fn is_marked(pod: &Value) -> bool {
    pod["metadata"]["labels"]
        .get(labels::SOFT_EVICTION)
        .is_some()
}

/// A node takes no new pods, or takes them again.
fn cordon(stage: &mut Fixture, dice: &mut Rng) {
    let nodes = stage.api.names(Kind::Node);
    let node = &nodes[dice.below(nodes.len())];
    let is_cordoned = stage.api.get(Kind::Node, node).unwrap()["spec"]["unschedulable"] == true;
    let patch = json!({"spec": {"unschedulable": !is_cordoned}});
    stage.api.patch(Kind::Node, node, &patch, false).unwrap();
}

/// A node is deleted, and the pods on it.
fn lose_node(stage: &mut Fixture, dice: &mut Rng) {
    let nodes = stage.api.names(Kind::Node);
    let node = &nodes[dice.below(nodes.len())];
    stage.api.delete(Kind::Node, node, None, false).unwrap();
    for pod in external(stage, |it| text(it, "/spec/nodeName") == node.name()) {
        stage.api.delete(Kind::BoundPod, &pod, None, false).unwrap();
        stop(stage, pod.name());
    }
}

fn stop_terminating(stage: &mut Fixture, dice: &mut Rng) {
    let terminating = external(stage, is_deleted);
    if !terminating.is_empty() {
        stop(stage, terminating[dice.below(terminating.len())].name());
    }
}

/// All pods that terminate are gone in the end, and no workload waits for victims.
fn finish(stage: &mut Fixture, totals: &mut Totals, at: &str) {
    for _ in 0..STEPS {
        write(stage, usize::MAX, totals, at);
        for (kind, name) in marked(stage) {
            stage.api.delete(kind, &name, None, false).unwrap();
        }
        for name in external(stage, is_deleted) {
            stop(stage, name.name());
        }
        stage.api.now_ms += 61_000;
    }
    write(stage, usize::MAX, totals, at);
    check_nodes(stage, at);
    totals.apart += apart(stage).len();
    for (name, workload) in stage.api.all(Kind::Workload) {
        let is_settled = may_run(workload) || workload["status"]["nominatedPlacement"].is_null();
        assert!(is_settled, "{at}: {name} still waits: {workload:#}");
    }
}

//! Pods that are directed to the nodes of their workload before its victims are evicted.

use crate::fields::text;
use crate::fixture::Fixture;
use crate::objects::NAMESPACE;
use crate::placed_workloads::{add_node, bind, decisive, stage, stop};
use crate::queued_pods::{POD, is_gated};
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::json;

/// Creates a gated pod of three CPUs.
fn create_pod(stage: &mut Fixture, name: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {labels::QUEUE_NAME: "main", labels::PRIORITY_CLASS: "mid"},
        },
        "spec": {
            "schedulingGates": [{"name": labels::ADMISSION_GATE}],
            "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "3"}}}],
        },
    });
    stage.api.create(POD, pod).unwrap();
}

/// Creates a group of two gated pods, `a` and `b`.
fn create_group(stage: &mut Fixture) {
    for name in ["a", "b"] {
        create_pod(stage, name);
        let group = json!({"metadata": {
            "labels": {labels::POD_GROUP_NAME: "g"},
            "annotations": {labels::POD_GROUP_TOTAL_COUNT: "2"},
        }});
        stage.change(POD, name, &group);
    }
}

fn nodes(stage: &Fixture) -> [String; 2] {
    ["a", "b"].map(|it| text(stage.get(POD, it), "/status/nominatedNodeName").to_owned())
}

#[test]
fn pods_of_a_group_are_directed_to_their_nodes() {
    let mut stage = stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    create_group(&mut stage);
    stage.settle();
    // kube-scheduler keeps the room while the victim stops.
    assert_eq!(nodes(&stage), ["n1", "n2"]);
    assert!(is_gated(stage.get(POD, "a")));
    stop(&mut stage, "p1");
    stage.settle();
    assert!(!is_gated(stage.get(POD, "a")) && !is_gated(stage.get(POD, "b")));
    assert_eq!(nodes(&stage), ["n1", "n2"]);
}

#[test]
fn victims_are_evicted_after_all_pods_are_directed() {
    let mut stage = stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    create_group(&mut stage);
    let writes = decisive(stage.settle());
    let position = |line: &str| writes.iter().position(|it| it == line);
    let evicted = position("evict_pod p1").unwrap();
    for pod in ["nominate_pod_node a", "nominate_pod_node b"] {
        assert!(position(pod).unwrap() < evicted, "{writes:?}");
    }
    // A restart before the last pod is directed evicts nothing either.
    let mut stage = self::stage(&["n1", "n2"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    create_group(&mut stage);
    let mut directing = stage.poll_until(lockkeeper_controller::WritePurpose::NominatePodNode);
    directing.truncate(1);
    stage.finish_writes(directing);
    stage.restart();
    let writes = stage.poll_writes();
    let purposes: Vec<_> = writes.iter().map(|it| it.purpose.as_str()).collect();
    assert_eq!(purposes[0], "nominate_pod_node");
    assert!(!purposes.contains(&"evict_pod"), "{purposes:?}");
    stage.finish_writes(writes);
    assert_eq!(decisive(stage.settle()).last().unwrap(), "evict_pod p1");
}

#[test]
fn workload_does_not_wait_for_a_pod_that_cannot_be_directed() {
    for name in ["a", "b"] {
        let mut stage = stage(&["n1", "n2"]);
        bind(&mut stage, "p1", "n1", 3, 10);
        create_group(&mut stage);
        stage.rejects_prefix = Some(format!("nominate_pod_node {name}"));
        let writes = stage.settle();
        assert!(writes.contains(&"evict_pod p1".to_owned()), "{writes:?}");
    }
    // Nor for one that is deleted.
    let mut stage = stage(&["n1"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    create_pod(&mut stage, "a");
    drop(stage.poll_until(lockkeeper_controller::WritePurpose::NominatePodNode));
    let key = ObjectKey::new(NAMESPACE, "a");
    stage.api.delete(POD, &key, None, false).unwrap();
    let writes = stage.settle();
    assert!(!writes.contains(&"evict_pod p1".to_owned()), "{writes:?}");
}

#[test]
fn nodes_of_a_group_that_gives_up_are_removed_from_its_pods() {
    let mut stage = stage(&["n1"]);
    bind(&mut stage, "p1", "n1", 3, 10);
    create_pod(&mut stage, "a");
    stage.settle();
    assert_eq!(text(stage.get(POD, "a"), "/status/nominatedNodeName"), "n1");
    let node = ObjectKey::new("", "n1");
    stage.api.delete(Kind::Node, &node, None, false).unwrap();
    stage.advance(1_000);
    assert_eq!(text(stage.get(POD, "a"), "/status/nominatedNodeName"), "");
    // It is directed again when there is another node.
    add_node(&mut stage, "n2");
    stage.advance(1_000);
    assert!(!is_gated(stage.get(POD, "a")));
    assert_eq!(text(stage.get(POD, "a"), "/status/nominatedNodeName"), "n2");
}

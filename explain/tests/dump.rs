//! A reduced dump gives the same answers, and without names none of them is left.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_explain::{
    Answer, NameReplacer, Selector, WorldBuilder, WorldSettings, explain, reduce_object,
};
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../examples/explain/kueue.yaml");

fn objects() -> Vec<Value> {
    let mut list: Value = serde_saphyr::from_str(EXAMPLE).unwrap();
    list.get_mut("items")
        .and_then(Value::as_array_mut)
        .unwrap()
        .clone()
}

fn answer(objects: Vec<Value>, subject: &str) -> Answer {
    let mut builder = WorldBuilder::new();
    for object in objects {
        builder.add(object);
    }
    let world = builder.build(WorldSettings::default());
    assert_eq!(world.unreadable(), []);
    let key = world
        .find(&Selector::parse(subject, None).unwrap())
        .unwrap()
        .to_owned();
    explain(&world, &key).unwrap()
}

#[test]
fn reduced_objects_give_the_same_answers() {
    let mut reduced = objects();
    reduced.iter_mut().for_each(reduce_object);
    let text = serde_json::to_string(&reduced).unwrap();
    assert!(!text.contains("image"), "{text}");
    for job in ["job/train", "job/llama", "job/eval"] {
        assert_eq!(answer(reduced.clone(), job), answer(objects(), job));
    }
}

#[test]
fn replaced_names_leave_no_name_and_keep_the_answer() {
    let mut replacer = NameReplacer::new();
    let mut anonymous = objects();
    for object in &mut anonymous {
        reduce_object(object);
        replacer.replace(object);
    }
    let text = serde_json::to_string(&anonymous).unwrap();
    for name in [
        "team-a",
        "team-b",
        "research",
        "a100",
        "main\",\"namespace",
        "train",
        "llama",
        "eval",
        "urgent",
    ] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    let before = answer(objects(), "job/train");
    // Jobs are numbered in the order of the workloads: llama, eval, train.
    let after = answer(anonymous, "job/job-3");
    assert_eq!(shortages(&after), shortages(&before));
    assert_eq!(after.changes.len(), before.changes.len());
}

/// The names of nodes, pods and groups are replaced; what placement reads stays.
#[test]
fn replaced_names_of_pods_and_nodes_leave_no_name() {
    let mut objects = [
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "secret-node",
            "labels": {"kubernetes.io/hostname": "secret-node", "pool": "gpu"}},
            "status": {"allocatable": {"cpu": "4"}, "conditions": [{"message": "secret"}]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "secret-pod", "namespace": "secret",
            "labels": {"lockkeeper.dev/pod-group-name": "secret-group", "app": "secret"},
            "annotations": {"gang.scheduling.koordinator.sh/name": "secret", "kubernetes.io/config.mirror": "1f"}},
            "spec": {"nodeName": "secret-node", "schedulingGroup": {"podGroupName": "secret"}, "priorityClassName": "secret",
                "containers": [{"name": "secret", "image": "secret", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Running", "podIP": "secret"}}),
        json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "secret",
            "labels": {"lockkeeper.dev/pod-group-name": "secret-group"}}, "spec": {}}),
    ];
    let mut replacer = NameReplacer::new();
    for object in &mut objects {
        reduce_object(object);
        replacer.replace(object);
    }
    let text = serde_json::to_string(&objects).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let [node, pod, workload] = objects;
    assert_eq!(node["metadata"]["labels"]["pool"], "gpu");
    assert_eq!(node["status"]["allocatable"]["cpu"], "4");
    assert_eq!(pod["spec"]["nodeName"], node["metadata"]["name"]);
    assert_eq!(
        pod["metadata"]["annotations"]["kubernetes.io/config.mirror"],
        "1f"
    );
    let group = "lockkeeper.dev/pod-group-name";
    assert_eq!(
        pod["metadata"]["labels"][group],
        workload["metadata"]["labels"][group]
    );
}

/// What is missing of each flavor and resource.
fn shortages(answer: &Answer) -> Vec<&str> {
    answer.quota.iter().map(|it| it.short.as_str()).collect()
}

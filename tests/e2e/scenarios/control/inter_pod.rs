//! Workloads whose pods other pods restrict: pod affinity, anti-affinity and topology spread.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::explain::json_answer;
use super::placement::{add_nodes, on_small_nodes, open, run_unmanaged, stop};
use super::pods::{is_gated, is_running, pod};
use super::{Trial, render};
use crate::fixture::Fixture;
use crate::objects::merge;

pub const TRIALS: [Trial; 2] = [
    (
        "a gang preempts only the pods that its anti-affinity excludes",
        gang_with_anti_affinity,
    ),
    (
        "pods of a Job that must run apart wait for another node",
        job_with_anti_affinity,
    ),
];

const ZONE: &str = "topology.kubernetes.io/zone";

fn terms(app: &str, key: &str) -> Value {
    let selector = json!({"matchLabels": {"app": app}});
    let term = json!({"topologyKey": key, "labelSelector": selector});
    json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]})
}

/// Two pods, one in each zone, and none in a zone of a pod `web`.
fn gang_with_anti_affinity(stage: &mut Fixture) {
    let mut site = open(stage, 3);
    for (node, zone) in [
        ("small-0", "east"),
        ("small-1", "east"),
        ("small-2", "west"),
    ] {
        let labels = json!({"metadata": {"labels": {ZONE: zone}}});
        site.objects.patch("Node", node, &labels);
    }
    run_unmanaged(&site, "web", "low", "small-0");
    run_unmanaged(&site, "batch", "low", "small-1");
    let mut more = on_small_nodes();
    let spread = json!({
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "train"}},
    });
    merge(
        &mut more,
        &json!({
            "metadata": {
                "labels": {"lockkeeper.dev/pod-group-name": "train", "app": "train"},
                "annotations": {"lockkeeper.dev/pod-group-total-count": "2"},
            },
            "spec": {
                "affinity": {"podAntiAffinity": terms("web", ZONE)},
                "topologySpreadConstraints": [spread],
            },
        }),
    );
    // One cpu: there is room for both pods in the zone of either.
    for name in ["a", "b"] {
        site.objects.create(&pod(name, 1, "high", &more));
    }
    site.objects.wait_until("Pod", "web", |it| {
        it["metadata"]["deletionTimestamp"].is_string()
    });
    for name in ["a", "b"] {
        assert!(is_gated(&site.objects.get("Pod", name)), "{name}");
    }
    stop(&site, "web");
    let zones = ["a", "b"].map(|name| {
        let pod = site.objects.wait_until("Pod", name, is_running);
        let node = pod["spec"]["nodeName"].as_str().unwrap().to_owned();
        let node = site.objects.get("Node", &node);
        node["metadata"]["labels"][ZONE]
            .as_str()
            .unwrap()
            .to_owned()
    });
    assert_eq!(BTreeSet::from(zones).len(), 2);
    let batch = site.objects.get("Pod", "batch");
    assert!(
        batch["metadata"]["deletionTimestamp"].is_null(),
        "{batch:#}"
    );
    site.stop();
}

fn job_with_anti_affinity(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    let mut template = on_small_nodes();
    merge(
        &mut template,
        &json!({
            "metadata": {"labels": {"app": "train"}},
            "spec": {"affinity": {"podAntiAffinity": terms("train", "kubernetes.io/hostname")}},
        }),
    );
    let gang = json!({"spec": {"parallelism": 3, "completions": 3, "template": template}});
    site.job("train", "q", 1, "low", &gang);
    let waiting = site.wait_for_workload("train", |it| {
        let condition = render::condition(it, "QuotaReserved");
        condition.is_some_and(|it| it["reason"] == "WaitingForNodes")
    });
    let condition = render::condition(&waiting, "QuotaReserved").unwrap();
    let message = condition["message"].as_str().unwrap();
    let expected = "only 2 of 3 pods fit on";
    assert!(message.contains(expected), "{message}");
    let expected = "2 nodes do not match the pod anti-affinity";
    assert!(message.contains(expected), "{message}");
    let answer = json_answer(&mut site, &["explain", "job/train"]);
    assert_eq!(answer["message"], condition["message"], "{answer:#}");
    add_nodes(&mut site, "spare", 1);
    let placed = site.wait_until_running("train");
    let nodes = &placed["status"]["nominatedPlacement"]["podSets"][0]["nodes"];
    assert_eq!(nodes.as_object().unwrap().len(), 3, "{placed:#}");
    let pods = site.objects.list("Pod");
    let names: BTreeSet<&str> = pods
        .iter()
        .filter(|it| it["metadata"]["labels"]["app"] == "train")
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let mut nodes = BTreeSet::new();
    for name in names {
        let pod = site.objects.wait_until("Pod", name, is_running);
        nodes.insert(pod["spec"]["nodeName"].as_str().unwrap().to_owned());
    }
    assert_eq!(nodes.len(), 3, "{nodes:?}");
    site.stop();
}

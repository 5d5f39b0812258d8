//! Pod affinity, anti-affinity and topology spread: the answers of kube-scheduler's own plugins on random pods and nodes, recorded
//! by `tests/inter-pod-cases`.

use crate::test_state::{object, request};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, PodTemplateSpec};
use lockkeeper_cluster_state::placement_state::PlacementState;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const RECORDED: &str = include_str!("inter_pod_cases.jsonl");

#[derive(Deserialize)]
struct Case {
    namespaces: Vec<Namespace>,
    nodes: Vec<Node>,
    pods: Option<Vec<Pod>>,
    pod: Value,
    rejections: BTreeMap<String, String>,
}

/// The start of the obstacle for a message of kube-scheduler.
fn obstacle(message: &str) -> &'static str {
    match message {
        "node(s) didn't match pod topology spread constraints (missing required label)" => {
            "has no label"
        }
        "node(s) didn't match pod topology spread constraints" => {
            "does not match the topology spread"
        }
        "node(s) didn't match pod affinity rules" => "does not match the pod affinity",
        "node(s) didn't match pod anti-affinity rules" => "does not match the pod anti-affinity",
        "node(s) didn't satisfy existing pods anti-affinity rules" => {
            "does not match the anti-affinity of other pods"
        }
        other => panic!("unknown message: {other}"),
    }
}

/// Other plugins, which were not asked.
fn is_other(obstacle: &str) -> bool {
    let others = ["does not match the node selector", "has the taint"];
    others.iter().any(|it| obstacle.starts_with(it))
}

#[test]
fn verdicts_match_kube_scheduler() {
    let path = std::env::var("LOCKKEEPER_INTER_POD_CASES").ok();
    let text = path.map(|it| std::fs::read_to_string(it).expect("a file of cases"));
    let text = text.as_deref().unwrap_or(RECORDED);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let case: Case = serde_json::from_str(line).unwrap();
        let mut state = PlacementState::new();
        for namespace in &case.namespaces {
            let labels = namespace.metadata.labels.clone().unwrap_or_default();
            state.set_namespace(namespace.metadata.name.as_deref().unwrap(), &labels);
        }
        for node in &case.nodes {
            state.set_node(node);
        }
        for pod in case.pods.iter().flatten() {
            state.set_pod(pod);
        }
        let template: PodTemplateSpec = object(&json!({
            "metadata": case.pod["metadata"], "spec": case.pod["spec"],
        }));
        let mut wants = request(&template, 1, 0);
        wants.namespace = case.pod["metadata"]["namespace"].as_str().unwrap();
        for report in state.node_reports(&wants) {
            let expected = case.rejections.get(&report.node);
            let got = report.obstacle.as_deref();
            if got.is_some_and(is_other) {
                *counts.entry("other").or_default() += 1;
                continue;
            }
            let expected = expected.map(|it| obstacle(it));
            let is_equal = match (got, expected) {
                (Some(got), Some(expected)) => got.starts_with(expected),
                (got, expected) => got.is_none() && expected.is_none(),
            };
            let node = &report.node;
            assert!(
                is_equal,
                "line {number}, {node}: {got:?}, kube-scheduler: {expected:?}\n{line}"
            );
            *counts.entry(expected.unwrap_or("permitted")).or_default() += 1;
        }
    }
    let is_frequent = counts.len() == 7 && counts.values().all(|it| *it > 20);
    assert!(is_frequent, "each answer occurs: {counts:?}");
}

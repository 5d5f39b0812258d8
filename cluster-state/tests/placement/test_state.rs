//! A placement state with short functions for its objects. All pods are in the namespace `ns`, and request GPUs.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::workload::{DisruptionMode, NominatedPlacement, PodSetPlacement};
use lockkeeper_cluster_state::placement_state::{
    PlacementDecision, PlacementOutcome, PlacementPodSet, PlacementRequest, PlacementState, Victim,
    WorkloadUnit,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) const GPU: &str = "example.com/gpu";

pub(crate) fn object<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}:\n{value}"))
}

pub(crate) fn node(name: &str, gpus: i64) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {GPU: gpus.to_string(), "pods": "110"}},
    })
}

fn pod_spec(gpus: i64) -> Value {
    let resources = json!({"requests": {GPU: gpus.to_string()}});
    json!({"containers": [{"name": "main", "resources": resources}]})
}

/// A running pod with its name as uid.
pub(crate) fn pod(name: &str, node: &str, gpus: i64, priority: i32) -> Value {
    let mut spec = pod_spec(gpus);
    spec["nodeName"] = node.into();
    spec["priority"] = priority.into();
    let metadata = json!({"namespace": "ns", "name": name, "uid": name});
    json!({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
}

/// A running pod of the Job with this uid.
pub(crate) fn pod_of(owner: &str, name: &str, node: &str, gpus: i64) -> Value {
    let mut pod = pod(name, node, gpus, 0);
    pod["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": true}
    ]);
    pod
}

pub(crate) fn template(gpus: i64) -> PodTemplateSpec {
    object(&json!({"spec": pod_spec(gpus)}))
}

/// A workload with its name as the uid of its owner.
pub(crate) fn workload(name: &str, priority: i32, disruption: DisruptionMode) -> WorkloadUnit<'_> {
    WorkloadUnit {
        namespace: "ns",
        name,
        owner_uids: vec![name],
        priority,
        preemption_priority: priority,
        never_preempts: false,
        is_evicted: false,
        is_non_preemptible: false,
        disruption,
    }
}

pub(crate) fn request(
    template: &PodTemplateSpec,
    count: i32,
    priority: i32,
) -> PlacementRequest<'_> {
    PlacementRequest {
        namespace: "ns",
        name: "preemptor",
        pod_sets: vec![PlacementPodSet {
            name: "main",
            template,
            count,
            node_selector: vec![],
            tolerations: vec![],
        }],
        priority,
        never_preempts: false,
        pod_defaults: None,
        nominated: None,
    }
}

/// A placement of the pod set `main`.
pub(crate) fn placement(nodes: &[(&str, i32)]) -> NominatedPlacement {
    let nodes = nodes
        .iter()
        .map(|(node, count)| ((*node).to_owned(), *count));
    NominatedPlacement {
        pod_sets: vec![PodSetPlacement {
            name: "main".to_owned(),
            nodes: nodes.collect(),
        }],
    }
}

/// A state with nodes of one size.
pub(crate) fn state(nodes: &[&str], gpus: i64) -> PlacementState {
    let mut state = PlacementState::new();
    for name in nodes {
        state.set_node(&object(&node(name, gpus)));
    }
    state
}

pub(crate) fn set_pods(state: &mut PlacementState, pods: impl IntoIterator<Item = Value>) {
    for pod in pods {
        state.set_pod(&object(&pod));
    }
}

/// A decision as text.
pub(crate) fn text(decision: &PlacementDecision) -> String {
    let outcome = match &decision.outcome {
        PlacementOutcome::Fits(placement) => format!("fits {}", placement_text(placement)),
        PlacementOutcome::Preempt { placement, victims } => {
            let victims: Vec<String> = victims.iter().map(victim_text).collect();
            let placement = placement_text(placement);
            format!("preempts {} for {placement}", victims.join(" "))
        }
        PlacementOutcome::AwaitingVictims(placement) => {
            format!("awaits {}", placement_text(placement))
        }
        PlacementOutcome::Infeasible(message) => format!("infeasible {message}"),
    };
    let dropped = decision.dropped.as_ref();
    dropped.map_or(outcome.clone(), |it| format!("{outcome}; {it}"))
}

fn placement_text(placement: &NominatedPlacement) -> String {
    let pod_sets = placement.pod_sets.iter().flat_map(|it| &it.nodes);
    let nodes = pod_sets.map(|(node, count)| format!("{node}:{count}"));
    nodes.collect::<Vec<_>>().join(",")
}

fn victim_text(victim: &Victim) -> String {
    match victim {
        Victim::Workload { name, .. } => format!("workload/{name}"),
        Victim::Pod {
            name,
            violates_budget,
            ..
        } => format!("pod/{name}{}", if *violates_budget { "!" } else { "" }),
    }
}

/// The decision for pods with one GPU each.
pub(crate) fn plan(state: &mut PlacementState, count: i32, priority: i32) -> String {
    let template = template(1);
    text(&state.plan(&request(&template, count, priority)))
}

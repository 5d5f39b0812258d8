//! Ports of nodes that pods use.

use crate::test_state::{GPU, object, pod, request, set_pods, state, text};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_cluster_state::placement_state::PlacementState;
use serde_json::{Value, json};

/// A template whose pods use the ports, as the list of a container.
fn template(ports: &Value, host_network: bool) -> PodTemplateSpec {
    let resources = json!({"requests": {GPU: "1"}});
    let container = json!({"name": "main", "resources": resources, "ports": ports});
    object(&json!({"spec": {"containers": [container], "hostNetwork": host_network}}))
}

fn host_port(port: u16) -> Value {
    json!([{"containerPort": 80, "hostPort": port}])
}

fn running(name: &str, node: &str, priority: i32, ports: &Value) -> Value {
    let mut pod = pod(name, node, 1, priority);
    pod["spec"]["containers"][0]["ports"] = ports.clone();
    pod
}

fn plan(state: &mut PlacementState, template: &PodTemplateSpec, count: i32) -> String {
    text(&state.plan(&request(template, count, 10)))
}

#[test]
fn pods_with_one_port_are_on_different_nodes() {
    let mut state = state(&["a", "b"], 8);
    let on_network = template(&json!([{"containerPort": 29500}]), true);
    for template in [template(&host_port(29500), false), on_network] {
        assert_eq!(plan(&mut state, &template, 2), "fits a:1,b:1");
        assert_eq!(
            plan(&mut state, &template, 3),
            "infeasible only 2 of 3 pods fit on 2 nodes even without the pods of lower priority"
        );
    }
    // A port of the container alone is none of the node.
    let own = template(&json!([{"containerPort": 29500}]), false);
    assert_eq!(plan(&mut state, &own, 3), "fits a:3");
}

#[test]
fn pod_that_uses_the_port_is_preempted() {
    let mut state = state(&["a"], 8);
    let ports = host_port(8080);
    set_pods(
        &mut state,
        [
            running("same", "a", 5, &ports),
            running("other", "a", 1, &host_port(8081)),
            pod("none", "a", 1, 0),
        ],
    );
    let wants = template(&ports, false);
    assert_eq!(plan(&mut state, &wants, 1), "preempts pod/same for a:1");
    let udp = template(
        &json!([{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]),
        false,
    );
    assert_eq!(plan(&mut state, &udp, 1), "fits a:1");
    state.remove_pod("ns", "same");
    assert_eq!(plan(&mut state, &wants, 1), "fits a:1");
}

#[test]
fn port_of_a_more_important_pod_is_an_obstacle() {
    let mut state = state(&["a", "b"], 8);
    let ports = host_port(8080);
    set_pods(
        &mut state,
        [
            running("important", "a", 50, &ports),
            pod("full", "b", 8, 50),
        ],
    );
    let wants = template(&ports, false);
    assert_eq!(
        plan(&mut state, &wants, 1),
        "infeasible 0 of 2 nodes fit 1 pod: \
         1 node has host port 8080/TCP in use even without the pods of lower priority, \
         1 node has too little example.com/gpu even without the pods of lower priority"
    );
    let reports = state.node_reports(&request(&wants, 1, 10));
    let free: Vec<_> = reports
        .iter()
        .map(|it| (&*it.node, &it.free, &it.obstacle))
        .collect();
    let obstacle = |text: &str| Some(text.to_owned());
    let gpu = |amount: &str| vec![(GPU.to_owned(), amount.to_owned())];
    assert_eq!(
        free,
        [
            ("a", &gpu("7"), &obstacle("has host port 8080/TCP in use")),
            ("b", &gpu("0"), &obstacle("has too little example.com/gpu")),
        ]
    );
}

#[test]
fn reservations_take_ports() {
    let mut state = state(&["a"], 8);
    let wants = template(&host_port(8080), false);
    let nodes = crate::test_state::placement(&[("a", 1)]);
    state.reserve(&request(&wants, 1, 10), &nodes);
    let mut other = request(&wants, 1, 10);
    other.name = "other";
    assert!(text(&state.plan(&other)).contains("host port 8080/TCP in use"));
    state.release("ns", "preemptor");
    assert_eq!(text(&state.plan(&other)), "fits a:1");
}

//! The obstacles of infeasible requests.

use crate::test_state::{GPU, node, object, plan, pod, request, set_pods, state, template, text};
use lockkeeper_cluster_state::placement_state::PlacementState;
use serde_json::{Value, json};

fn zone(value: &Value) -> Value {
    let mut template = json!({"spec": {"containers": [{"name": "main"}]}});
    template["spec"]["containers"][0]["resources"] = json!({"requests": {GPU: "1"}});
    template["spec"]["nodeSelector"] = json!({"zone": value});
    template
}

#[test]
fn obstacles_are_counted_by_node() {
    let mut state = PlacementState::new();
    assert_eq!(
        plan(&mut state, 1, 0),
        "infeasible the cluster has no nodes"
    );
    for (name, zone) in [("a", "x"), ("b", "x"), ("c", "x"), ("d", "y"), ("e", "y")] {
        let mut node = node(name, 1);
        node["metadata"]["labels"]["zone"] = zone.into();
        state.set_node(&object(&node));
    }
    let pods = ["a", "b", "c"].map(|it| pod(&format!("p-{it}"), it, 1, 50));
    set_pods(&mut state, pods);
    let template = object(&zone(&json!("x")));
    let decision = text(&state.plan(&request(&template, 4, 10)));
    assert_eq!(
        decision,
        "infeasible 0 of 5 nodes fit 4 pods: \
         3 nodes have too little example.com/gpu even without the pods of lower priority, \
         2 nodes do not match the node selector"
    );
    let of_one = text(&state.plan(&request(&template, 1, 10)));
    assert_eq!(of_one, decision.replace("4 pods", "1 pod"));
}

#[test]
fn each_obstacle_has_a_text() {
    let mut cordoned = node("a", 1);
    cordoned["spec"]["unschedulable"] = true.into();
    let mut tainted = node("a", 1);
    tainted["spec"]["taints"] = json!([{"key": "dedicated", "effect": "NoSchedule"}]);
    let mut full = node("a", 1);
    full["status"]["allocatable"]["pods"] = "0".into();
    let cases = [
        (cordoned, "1 node is cordoned"),
        (
            tainted,
            "1 node has the taint dedicated, which the pods do not tolerate",
        ),
        (
            full,
            "1 node has less room for more pods than a pod requests",
        ),
        (
            node("a", 0),
            "1 node has less example.com/gpu than a pod requests",
        ),
    ];
    for (node, expected) in cases {
        let mut state = PlacementState::new();
        state.set_node(&object(&node));
        let decision = plan(&mut state, 1, 0);
        assert_eq!(
            decision,
            format!("infeasible 0 of 1 node fit 1 pod: {expected}")
        );
    }
}

#[test]
fn part_of_a_gang_fits() {
    let mut state = state(&["a", "b"], 1);
    assert_eq!(
        plan(&mut state, 3, 0),
        "infeasible only 2 of 3 pods fit on 2 nodes even without the pods of lower priority"
    );
    let (small, large) = (template(1), template(4));
    let mut request = request(&small, 1, 0);
    let mut of_large = request.pod_sets[0].clone();
    (of_large.name, of_large.template) = ("workers", &large);
    request.pod_sets.push(of_large);
    assert_eq!(
        text(&state.plan(&request)),
        "infeasible only 1 of 2 pods fit on 2 nodes (pod set \"workers\"): \
         2 nodes have less example.com/gpu than a pod requests"
    );
}

#[test]
fn flavors_add_selectors_and_tolerations() {
    let mut tainted = node("a", 1);
    tainted["spec"]["taints"] = json!([{"key": "dedicated", "effect": "NoSchedule"}]);
    let mut state = PlacementState::new();
    state.set_node(&object(&tainted));
    state.set_node(&object(&node("b", 1)));
    let template = template(1);
    let toleration = object(&json!({"key": "dedicated", "operator": "Exists"}));
    let mut request = request(&template, 1, 0);
    request.pod_sets[0].node_selector = vec![("kubernetes.io/hostname", "a")];
    assert!(text(&state.plan(&request)).starts_with("infeasible"));
    request.pod_sets[0].tolerations = vec![&toleration];
    assert_eq!(text(&state.plan(&request)), "fits a:1");
}

#[test]
fn invalid_and_excessive_requests_are_infeasible() {
    let mut state = state(&["a"], 1);
    let mut invalid = json!({"spec": {"containers": [{"name": "main"}]}});
    invalid["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "-1"}});
    let template = object(&invalid);
    assert_eq!(
        text(&state.plan(&request(&template, 1, 0))),
        "infeasible pod set \"main\": template.spec.containers[0].resources.requests[cpu]: \
         -1 is negative; give zero or more"
    );
    assert_eq!(
        plan(&mut state, i32::MAX, 0),
        "infeasible the workload has 2147483647 pods; the maximum is 150000"
    );
    assert_eq!(plan(&mut state, -1, 0), "fits ");
}

#[test]
fn init_containers_overhead_and_pod_level_requests_count() {
    let resources = |gpus: &str| json!({"requests": {GPU: gpus}});
    let container = |name: &str, gpus: &str| json!({"name": name, "resources": resources(gpus)});
    let mut sidecar = container("sidecar", "1");
    sidecar["restartPolicy"] = "Always".into();
    let spec = json!({
        "containers": [container("main", "1")],
        "initContainers": [sidecar, container("init", "2")],
        "overhead": {GPU: "1"},
    });
    // The init container and the sidecar beside it need 3, the overhead 1.
    let template = object(&json!({"spec": spec}));
    for (gpus, fits) in [(3, false), (4, true)] {
        let mut state = state(&["a"], gpus);
        let decision = text(&state.plan(&request(&template, 1, 0)));
        assert_eq!(decision.starts_with("fits"), fits, "{gpus}");
    }
}

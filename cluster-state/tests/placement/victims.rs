//! Pods that are never victims, and disruption budgets.

use crate::test_state::{object, plan, pod, pod_of, set_pods, state, workload};
use lockkeeper_api::workload::DisruptionMode::{Pod, PodGroup};
use serde_json::{Value, json};

#[test]
fn system_mirror_and_daemon_set_pods_are_never_victims() {
    let daemon = json!([
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}
    ]);
    let mut mirror = pod("mirror", "a", 1, 0);
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let mut of_daemon = pod("daemon", "a", 1, 0);
    of_daemon["metadata"]["ownerReferences"] = daemon;
    let mut leaving = of_daemon.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let system = pod("system", "a", 1, 2_000_000_000);
    for exempt in [mirror, of_daemon, leaving, system] {
        let mut state = state(&["a"], 1);
        set_pods(&mut state, [exempt.clone()]);
        assert!(
            plan(&mut state, 1, i32::MAX).starts_with("infeasible"),
            "{exempt}"
        );
    }
}

fn budget(allowed: i32) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": "budget"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1},
    })
}

#[test]
fn budget_protects_pods_where_possible() {
    let mut state = state(&["a", "b"], 1);
    let mut protected = pod("p", "a", 1, 0);
    protected["metadata"]["labels"] = json!({"app": "web"});
    set_pods(&mut state, [protected, pod("q", "b", 1, 0)]);
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/p for a:1");
    state.set_budget(&object(&budget(0)));
    let revision = state.revision();
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/q for b:1");
    assert_eq!(plan(&mut state, 2, 10), "preempts pod/p! pod/q for a:1,b:1");
    state.set_budget(&object(&budget(0)));
    assert_eq!(state.revision(), revision, "nothing changed");
    state.set_budget(&object(&budget(1)));
    assert!(state.revision() > revision);
    assert_eq!(plan(&mut state, 2, 10), "preempts pod/p pod/q for a:1,b:1");
    state.set_budget(&object(&budget(0)));
    state.remove_budget("ns", "budget");
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/p for a:1");
}

#[test]
fn evicted_workload_is_no_further_victim() {
    let mut state = state(&["a", "b"], 1);
    for (name, node) in [("one", "a"), ("two", "b")] {
        let mut unit = workload(name, 0, PodGroup);
        unit.is_evicted = name == "one";
        state.set_workload(&unit);
        set_pods(&mut state, [pod_of(name, &format!("{name}-0"), node, 1)]);
    }
    assert_eq!(plan(&mut state, 1, 10), "awaits a:1");
    assert_eq!(plan(&mut state, 2, 10), "preempts workload/two for a:1,b:1");
    state.set_workload(&workload("one", 0, PodGroup));
    assert_eq!(
        plan(&mut state, 2, 10),
        "preempts workload/one workload/two for a:1,b:1"
    );
}

#[test]
fn never_preempting_request_is_infeasible() {
    let mut state = state(&["a"], 1);
    state.set_workload(&workload("w", 0, Pod));
    set_pods(&mut state, [pod_of("w", "w-0", "a", 1)]);
    let template = crate::test_state::template(1);
    for count in [1, 2] {
        let mut request = crate::test_state::request(&template, count, 10);
        request.never_preempts = true;
        let decision = crate::test_state::text(&state.plan(&request));
        let pods = if count == 1 { "1 pod" } else { "2 pods" };
        let expected = format!(
            "infeasible 0 of 1 node fit {pods}: 1 node has too little example.com/gpu; \
             the preemption policy of the workload is Never"
        );
        assert_eq!(decision, expected);
    }
}

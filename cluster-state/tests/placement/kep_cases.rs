//! The four cases of KEP-5710: pods and gangs preempt pods and gangs.

use crate::test_state::{plan, pod, pod_of, set_pods, state, workload};
use lockkeeper_api::workload::DisruptionMode::{Pod, PodGroup};

#[test]
fn pod_preempts_pod() {
    let mut state = state(&["a", "b"], 1);
    set_pods(&mut state, [pod("p", "a", 1, 5), pod("q", "b", 1, 3)]);
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/q for b:1");
}

#[test]
fn pod_preempts_gang() {
    let mut state = state(&["a", "b"], 1);
    state.set_workload(&workload("gang", 0, PodGroup));
    let pods = ["a", "b"].map(|it| pod_of("gang", &format!("gang-{it}"), it, 1));
    set_pods(&mut state, pods);
    assert_eq!(plan(&mut state, 1, 10), "preempts workload/gang for a:1");
}

#[test]
fn pod_preempts_pod_of_gang_with_mode_pod() {
    let mut state = state(&["a", "b"], 1);
    state.set_workload(&workload("gang", 0, Pod));
    let pods = ["a", "b"].map(|it| pod_of("gang", &format!("gang-{it}"), it, 1));
    set_pods(&mut state, pods);
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/gang-a for a:1");
}

#[test]
fn gang_preempts_pods() {
    let mut state = state(&["a", "b", "c"], 1);
    let pods = [("p", "a", 1), ("q", "b", 3), ("r", "c", 2)];
    set_pods(
        &mut state,
        pods.map(|(name, node, it)| pod(name, node, 1, it)),
    );
    // The pods up to priority 2 are enough.
    assert_eq!(plan(&mut state, 2, 10), "preempts pod/r pod/p for a:1,c:1");
    assert_eq!(
        plan(&mut state, 3, 3),
        "infeasible only 2 of 3 pods fit on 3 nodes: \
         1 node has too little example.com/gpu even without the pods of lower priority"
    );
}

#[test]
fn gang_preempts_gangs() {
    let mut state = state(&["a", "b", "c", "d"], 1);
    for (name, priority, nodes) in [("low", 1, ["a", "b"]), ("high", 2, ["c", "d"])] {
        state.set_workload(&workload(name, priority, PodGroup));
        let pods = nodes.map(|node| pod_of(name, &format!("{name}-{node}"), node, 1));
        set_pods(&mut state, pods);
    }
    let cases = [
        (2, 10, "preempts workload/low for a:1,b:1"),
        (3, 10, "preempts workload/high workload/low for a:1,b:1,c:1"),
        (2, 2, "preempts workload/low for a:1,b:1"),
    ];
    for (count, priority, expected) in cases {
        assert_eq!(plan(&mut state, count, priority), expected, "{count}");
    }
}

#[test]
fn workload_with_one_pod_is_victim_as_workload() {
    for mode in [Pod, PodGroup] {
        let mut state = state(&["a"], 1);
        state.set_workload(&workload("single", 0, mode));
        set_pods(&mut state, [pod_of("single", "single-0", "a", 1)]);
        assert_eq!(plan(&mut state, 1, 1), "preempts workload/single for a:1");
    }
}

#[test]
fn preemption_priority_protects_victim() {
    let mut state = state(&["a"], 1);
    let mut unit = workload("single", 0, PodGroup);
    unit.preemption_priority = 20;
    state.set_workload(&unit);
    set_pods(&mut state, [pod_of("single", "single-0", "a", 1)]);
    assert!(plan(&mut state, 1, 20).starts_with("infeasible"));
    assert_eq!(plan(&mut state, 1, 21), "preempts workload/single for a:1");
}

#[test]
fn fitting_workload_preempts_nothing() {
    let mut state = state(&["a", "b"], 2);
    set_pods(&mut state, [pod("p", "a", 1, 0)]);
    assert_eq!(plan(&mut state, 3, 10), "fits a:1,b:2");
    assert_eq!(plan(&mut state, 0, 10), "fits ");
}

//! Pods that are expected to release their room, and plans that assume it.

use crate::test_state::{
    object, placement, plan, pod, pod_of, request, set_pods, state, template, text, workload,
};
use lockkeeper_api::workload::DisruptionMode::PodGroup;
use lockkeeper_cluster_state::placement_state::{PlacementState, VictimRef, WorkloadUnit};
use serde_json::json;

const fn reference<'a>(name: &'a str, uid: &'a str) -> VictimRef<'a> {
    VictimRef::Pod {
        namespace: "ns",
        name,
        uid,
    }
}

/// Two nodes, on each a pod of a workload with the same priority.
fn two_workloads() -> PlacementState {
    let mut state = state(&["a", "b"], 1);
    for (name, node) in [("one", "a"), ("two", "b")] {
        state.set_workload(&workload(name, 0, PodGroup));
        set_pods(&mut state, [pod_of(name, &format!("{name}-0"), node, 1)]);
    }
    state
}

#[test]
fn non_preemptible_workload_is_no_victim() {
    let mut state = two_workloads();
    let mut unit = workload("one", 0, PodGroup);
    unit.is_non_preemptible = true;
    state.set_workload(&unit);
    assert_eq!(plan(&mut state, 1, 10), "preempts workload/two for b:1");
    assert!(plan(&mut state, 2, 10).starts_with("infeasible"));
    // Its eviction for another reason still makes room.
    unit.is_evicted = true;
    state.set_workload(&unit);
    assert_eq!(plan(&mut state, 1, 10), "awaits a:1");
}

#[test]
fn reservation_of_non_preemptible_workload_is_no_victim() {
    let mut state = state(&["a"], 1);
    let mut unit = workload("one", 0, PodGroup);
    unit.is_non_preemptible = true;
    state.set_workload(&unit);
    let template = template(1);
    let mut reserving = request(&template, 1, 0);
    reserving.name = "one";
    state.reserve(&reserving, &placement(&[("a", 1)]));
    assert!(plan(&mut state, 1, 10).starts_with("infeasible"));
}

#[test]
fn plan_after_eviction_changes_no_visible_state() {
    let mut state = two_workloads();
    let revision = state.revision();
    let template = template(1);
    // The priority is too low to preempt on nodes.
    let request = request(&template, 1, 0);
    let mut after = |names: &[&'static str]| {
        let evicted = names.iter().map(|name| ("ns", *name));
        text(&state.plan_after_eviction(&request, evicted))
    };
    assert!(after(&[]).starts_with("infeasible"));
    assert_eq!(after(&["two"]), "awaits b:1");
    assert_eq!(after(&["absent", "one"]), "awaits a:1");
    assert!(after(&[]).starts_with("infeasible"));
    assert_eq!(state.revision(), revision);
    assert!(text(&state.plan(&request)).starts_with("infeasible"));
}

#[test]
fn evicted_workload_stays_evicted_after_a_plan_that_assumes_it() {
    let mut state = two_workloads();
    let mut unit = workload("one", 0, PodGroup);
    unit.is_evicted = true;
    state.set_workload(&unit);
    let template = template(1);
    let request = request(&template, 1, 0);
    let evicted = ["one"].into_iter().map(|name| ("ns", name));
    assert_eq!(
        text(&state.plan_after_eviction(&request, evicted)),
        "awaits a:1"
    );
    assert_eq!(text(&state.plan(&request)), "awaits a:1");
}

#[test]
fn evicted_pod_is_awaited_and_no_victim_again() {
    let mut state = state(&["a", "b"], 1);
    set_pods(&mut state, [pod("p", "a", 1, 0), pod("q", "b", 1, 0)]);
    // Another pod of this name, or a pod that does not exist.
    state.set_pod_evicted(&reference("p", "other"));
    state.set_pod_evicted(&reference("absent", "absent"));
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/p for a:1");
    let revision = state.revision();
    state.set_pod_evicted(&reference("p", "p"));
    assert!(state.revision() > revision);
    assert_eq!(plan(&mut state, 1, 10), "awaits a:1");
    assert_eq!(plan(&mut state, 2, 10), "preempts pod/q for a:1,b:1");
    // An update of the pod does not end the wait; a new pod of this name does.
    let mut labelled = pod("p", "a", 1, 0);
    labelled["metadata"]["labels"] = json!({"app": "web"});
    state.set_pod(&object(&labelled));
    assert_eq!(plan(&mut state, 1, 10), "awaits a:1");
    labelled["metadata"]["uid"] = json!("new");
    state.set_pod(&object(&labelled));
    assert_eq!(plan(&mut state, 2, 10), "preempts pod/p pod/q for a:1,b:1");
}

#[test]
fn room_of_overdue_pods_counts_as_taken() {
    let mut state = state(&["a", "b", "c"], 1);
    let mut terminating = pod("t", "b", 1, 0);
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    set_pods(
        &mut state,
        [pod("p", "a", 1, 0), terminating, pod("q", "c", 1, 5)],
    );
    state.set_pod_evicted(&reference("p", "p"));
    assert_eq!(plan(&mut state, 2, 10), "awaits a:1,b:1");
    let overdue = state.stop_waiting_for(&placement(&[("a", 1), ("c", 1), ("absent", 1)]));
    assert_eq!(overdue, ["ns/p"]);
    assert_eq!(plan(&mut state, 1, 10), "awaits b:1");
    assert_eq!(state.stop_waiting_for(&placement(&[("b", 1)])), ["ns/t"]);
    // Neither is a victim, and another one is found.
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/q for c:1");
    assert!(plan(&mut state, 2, 10).starts_with("infeasible"));
    // When one is gone, its room is free.
    state.remove_pod("ns", "p");
    assert_eq!(plan(&mut state, 1, 10), "fits a:1");
}

/// The watch of a group shows that a pod is gone before the watch of the nodes does.
#[test]
fn pods_that_leave_an_evicted_workload_are_no_further_victims() {
    let pods = || ["p0", "p1"].map(|it| pod(it, "a", 4, 0));
    let group = |uids: &[&'static str]| WorkloadUnit {
        owner_uids: uids.to_vec(),
        is_evicted: true,
        ..workload("low", 0, PodGroup)
    };
    for leaves in [0, 1, 2] {
        let mut state = state(&["a"], 8);
        set_pods(&mut state, pods());
        state.set_workload(&WorkloadUnit {
            is_evicted: false,
            ..group(&["p0", "p1"])
        });
        assert_eq!(plan(&mut state, 8, 10), "preempts workload/low for a:8");
        state.set_workload(&group(&["p0", "p1"]));
        assert_eq!(plan(&mut state, 8, 10), "awaits a:8");
        match leaves {
            0 => {}
            1 => state.set_workload(&group(&["p1"])),
            _ => state.remove_workload("ns", "low"),
        }
        assert_eq!(plan(&mut state, 8, 10), "awaits a:8", "{leaves}");
        state.remove_pod("ns", "p0");
        assert_eq!(plan(&mut state, 8, 10), "awaits a:8", "{leaves}");
        state.remove_pod("ns", "p1");
        assert_eq!(plan(&mut state, 8, 10), "fits a:8", "{leaves}");
    }
}

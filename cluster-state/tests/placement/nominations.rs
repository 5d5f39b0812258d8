//! Nominated placements that are kept, replaced or dropped.

use crate::test_state::{
    node, object, placement, pod, pod_of, request, set_pods, state, template, text, workload,
};
use lockkeeper_api::workload::DisruptionMode::PodGroup;
use lockkeeper_api::workload::NominatedPlacement;
use lockkeeper_cluster_state::placement_state::PlacementState;
use serde_json::json;

fn plan(state: &mut PlacementState, count: i32, nominated: &NominatedPlacement) -> String {
    let template = template(1);
    let mut request = request(&template, count, 10);
    request.nominated = Some(nominated);
    text(&state.plan(&request))
}

fn state_with_gang() -> PlacementState {
    let mut state = state(&["a", "b", "c"], 1);
    state.set_workload(&workload("gang", 0, PodGroup));
    let pods = ["a", "b"].map(|it| pod_of("gang", &format!("gang-{it}"), it, 1));
    set_pods(&mut state, pods);
    set_pods(&mut state, [pod("other", "c", 1, 1)]);
    state
}

#[test]
fn nomination_stands_while_victims_terminate() {
    let mut state = state_with_gang();
    let nominated = placement(&[("a", 1), ("b", 1)]);
    let mut evicted = workload("gang", 0, PodGroup);
    evicted.is_evicted = true;
    state.set_workload(&evicted);
    assert_eq!(plan(&mut state, 2, &nominated), "awaits a:1,b:1");
    state.remove_pod("ns", "gang-a");
    assert_eq!(plan(&mut state, 2, &nominated), "awaits a:1,b:1");
    state.remove_pod("ns", "gang-b");
    assert_eq!(plan(&mut state, 2, &nominated), "fits a:1,b:1");
}

#[test]
fn placement_without_victims_replaces_nomination() {
    let mut state = state_with_gang();
    state.remove_pod("ns", "other");
    assert_eq!(plan(&mut state, 1, &placement(&[("a", 1)])), "fits c:1");
}

type Change<'a> = &'a dyn Fn(&mut PlacementState);

#[test]
fn invalid_nominations_are_dropped() {
    let cordon = |state: &mut PlacementState| {
        let mut cordoned = node("b", 1);
        cordoned["spec"]["unschedulable"] = true.into();
        state.set_node(&object(&cordoned));
    };
    let remove = |state: &mut PlacementState| state.remove_node("b");
    let occupy = |state: &mut PlacementState| {
        state.remove_pod("ns", "gang-b");
        set_pods(state, [pod("urgent", "b", 1, 11)]);
    };
    let cases: [(Change<'_>, &str); 3] = [
        (&cordon, "is cordoned"),
        (&remove, "does not exist"),
        (&occupy, "has too little example.com/gpu"),
    ];
    for (change, reason) in cases {
        let mut state = state_with_gang();
        let mut evicted = workload("gang", 0, PodGroup);
        evicted.is_evicted = true;
        state.set_workload(&evicted);
        change(&mut state);
        let decision = plan(&mut state, 2, &placement(&[("a", 1), ("b", 1)]));
        let expected = format!(
            "preempts pod/other for a:1,c:1; The nominated placement is no longer valid: \
             a pod of pod set \"main\" does not fit on node \"b\": the node {reason}."
        );
        assert_eq!(decision, expected);
    }
}

#[test]
fn incomplete_nomination_is_dropped() {
    let mut state = state_with_gang();
    let decision = plan(&mut state, 2, &placement(&[("a", 1)]));
    assert_eq!(
        decision,
        "preempts workload/gang for a:1,b:1; \
         The nominated placement is no longer valid: it has 1 of 2 pods."
    );
}

#[test]
fn terminating_pods_are_awaited_before_others_are_preempted() {
    let mut state = state(&["a", "b"], 1);
    let mut leaving = pod("leaving", "b", 1, 50);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    set_pods(&mut state, [pod("p", "a", 1, 0), leaving]);
    let template = template(1);
    assert_eq!(text(&state.plan(&request(&template, 1, 10))), "awaits b:1");
    assert_eq!(
        text(&state.plan(&request(&template, 2, 10))),
        "preempts pod/p for a:1,b:1"
    );
}

//! Reservations, and the bound pods that replace them.

use crate::test_state::{
    node, object, placement, plan, pod_of, request, set_pods, state, template, workload,
};
use lockkeeper_api::workload::DisruptionMode::{Pod, PodGroup};
use lockkeeper_api::workload::NominatedPlacement;
use lockkeeper_cluster_state::placement_state::PlacementState;

fn reserve(state: &mut PlacementState, gpus: i64, placement: &NominatedPlacement) {
    let template = template(gpus);
    let mut request = request(&template, 2, 5);
    request.name = "w";
    state.reserve(&request, placement);
}

#[test]
fn reservations_take_room_until_pods_are_bound() {
    let mut state = state(&["a", "b", "c"], 1);
    state.set_workload(&workload("w", 5, PodGroup));
    reserve(&mut state, 1, &placement(&[("a", 1), ("b", 1)]));
    assert_eq!(plan(&mut state, 1, 0), "fits c:1");
    let revision = state.revision();
    set_pods(&mut state, [pod_of("w", "w-0", "b", 1)]);
    assert_eq!(
        state.revision(),
        revision,
        "the pod is on its reserved node"
    );
    assert!(state.has_reservation("ns", "w"));
    assert_eq!(plan(&mut state, 1, 0), "fits c:1");
    set_pods(&mut state, [pod_of("w", "w-1", "c", 1)]);
    assert!(state.revision() > revision, "the pod is on another node");
    assert!(!state.has_reservation("ns", "w"));
    assert_eq!(plan(&mut state, 1, 0), "fits a:1");
}

#[test]
fn bound_pods_count_for_later_reservations() {
    let mut state = state(&["a", "b"], 1);
    state.set_workload(&workload("w", 5, PodGroup));
    set_pods(&mut state, [pod_of("w", "w-0", "a", 1)]);
    reserve(&mut state, 1, &placement(&[("a", 1), ("b", 1)]));
    assert!(state.has_reservation("ns", "w"));
    set_pods(&mut state, [pod_of("w", "w-1", "b", 1)]);
    assert!(!state.has_reservation("ns", "w"));
    let revision = state.revision();
    reserve(&mut state, 1, &placement(&[("a", 1), ("b", 1)]));
    assert!(!state.has_reservation("ns", "w"));
    assert_eq!(state.revision(), revision);
}

#[test]
fn pods_before_their_workload_replace_reservations() {
    let mut state = state(&["a", "b"], 1);
    reserve(&mut state, 1, &placement(&[("a", 1), ("b", 1)]));
    let pods = ["a", "b"].map(|it| pod_of("w", &format!("w-{it}"), it, 1));
    set_pods(&mut state, pods);
    assert!(state.has_reservation("ns", "w"));
    state.set_workload(&workload("w", 5, PodGroup));
    assert!(!state.has_reservation("ns", "w"));
}

#[test]
fn reservation_with_equal_requests_is_replaced_first() {
    let mut state = state(&["a", "b", "c"], 2);
    state.set_workload(&workload("w", 5, PodGroup));
    let (small, large) = (template(1), template(2));
    let mut request = request(&small, 1, 5);
    request.name = "w";
    let mut of_large = request.pod_sets[0].clone();
    (of_large.name, of_large.template) = ("large", &large);
    request.pod_sets.push(of_large);
    let mut nodes = placement(&[("a", 1)]);
    nodes.pod_sets.extend(placement(&[("b", 1)]).pod_sets);
    nodes.pod_sets[1].name = "large".to_owned();
    state.reserve(&request, &nodes);
    set_pods(&mut state, [pod_of("w", "w-0", "c", 2)]);
    // The reservation of the small pod remains on node a.
    assert_eq!(plan(&mut state, 3, 0), "fits a:1,b:2");
}

#[test]
fn release_and_removal_make_room() {
    for is_removed in [false, true] {
        let mut state = state(&["a"], 1);
        state.set_workload(&workload("w", 5, PodGroup));
        reserve(&mut state, 1, &placement(&[("a", 1)]));
        assert!(plan(&mut state, 1, 0).starts_with("infeasible"));
        let revision = state.revision();
        if is_removed {
            state.remove_workload("ns", "w");
        } else {
            state.release("ns", "w");
        }
        assert!(state.revision() > revision);
        assert!(!state.has_reservation("ns", "w"));
        assert_eq!(plan(&mut state, 1, 0), "fits a:1");
    }
}

#[test]
fn later_reservation_replaces_earlier_one() {
    let mut state = state(&["a", "b"], 1);
    state.set_workload(&workload("w", 5, PodGroup));
    reserve(&mut state, 1, &placement(&[("a", 1)]));
    reserve(&mut state, 1, &placement(&[("b", 1)]));
    assert_eq!(plan(&mut state, 1, 0), "fits a:1");
}

#[test]
fn own_reservation_is_free_for_plan() {
    let mut state = state(&["a"], 1);
    let template = template(1);
    let request = request(&template, 1, 0);
    state.reserve(&request, &placement(&[("a", 1)]));
    assert_eq!(plan(&mut state, 1, 0), "fits a:1");
    assert!(state.has_reservation("ns", "preemptor"));
}

#[test]
fn workload_with_reservations_is_victim_as_a_whole() {
    for mode in [Pod, PodGroup] {
        let mut state = state(&["a", "b"], 1);
        state.set_workload(&workload("w", 5, mode));
        reserve(&mut state, 1, &placement(&[("a", 1), ("b", 1)]));
        set_pods(&mut state, [pod_of("w", "w-0", "a", 1)]);
        assert_eq!(plan(&mut state, 2, 10), "preempts workload/w for a:1,b:1");
    }
}

/// After a restart a workload with nodes may be known before the nodes, and so before their resources.
#[test]
fn reservation_before_the_nodes_takes_all_resources() {
    let mut state = PlacementState::new();
    state.set_workload(&workload("w", 5, PodGroup));
    reserve(&mut state, 1, &placement(&[("a", 2)]));
    state.set_node(&object(&node("a", 3)));
    assert_eq!(plan(&mut state, 1, 0), "fits a:1");
    let decision = plan(&mut state, 2, 0);
    assert!(decision.contains("only 1 of 2 pods fit"), "{decision}");
}

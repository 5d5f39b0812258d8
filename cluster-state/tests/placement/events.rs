//! Watch events in different orders.

use crate::test_state::{
    GPU, node, object, placement, plan, pod, pod_of, request, set_pods, state, template, workload,
};
use lockkeeper_api::workload::DisruptionMode::PodGroup;
use lockkeeper_cluster_state::placement_state::{
    PlacementOutcome, PlacementState, VictimRef, WorkloadUnit,
};
use lockkeeper_cluster_state::pod_default_objects::set_limit_range;
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::json;

const GANG: VictimRef<'_> = VictimRef::Workload {
    namespace: "ns",
    name: "gang",
};

fn gang_pods(state: &mut PlacementState) {
    let pods = ["a", "b"].map(|it| pod_of("gang", &format!("gang-{it}"), it, 1));
    set_pods(state, pods);
}

#[test]
fn pods_before_their_workload_belong_to_it() {
    let mut state = state(&["a", "b"], 1);
    gang_pods(&mut state);
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/gang-a for a:1");
    assert!(!state.has_pods(&GANG));
    state.set_workload(&workload("gang", 0, PodGroup));
    assert_eq!(plan(&mut state, 1, 10), "preempts workload/gang for a:1");
    assert!(state.has_pods(&GANG));
    state.remove_workload("ns", "gang");
    assert_eq!(plan(&mut state, 1, 10), "preempts pod/gang-a for a:1");
    assert!(!state.has_pods(&GANG));
}

#[test]
fn owners_are_uids_of_the_namespace() {
    let mut by_label = pod("p", "a", 1, 0);
    by_label["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/jobset-uid": "gang"});
    let mut by_uid = pod("p", "a", 1, 0);
    by_uid["metadata"]["uid"] = "gang".into();
    let mut no_controller = pod_of("gang", "p", "a", 1);
    no_controller["metadata"]["ownerReferences"][0]["controller"] = false.into();
    let mut other_namespace = by_label.clone();
    other_namespace["metadata"]["namespace"] = "other".into();
    let cases = [
        (by_label, true),
        (by_uid, true),
        (pod_of("gang", "p", "a", 1), true),
        (no_controller, false),
        (other_namespace, false),
    ];
    for (pod, belongs) in cases {
        let mut state = state(&["a"], 1);
        state.set_workload(&workload("gang", 0, PodGroup));
        set_pods(&mut state, [pod.clone()]);
        assert_eq!(state.has_pods(&GANG), belongs, "{pod}");
    }
}

#[test]
fn workload_with_other_owners_loses_its_pods() {
    let mut state = state(&["a", "b"], 1);
    state.set_workload(&workload("gang", 0, PodGroup));
    gang_pods(&mut state);
    let mut other = workload("gang", 0, PodGroup);
    other.owner_uids = vec!["other"];
    state.set_workload(&other);
    assert!(!state.has_pods(&GANG));
}

#[test]
fn ended_unbound_and_removed_pods_release_their_room() {
    let ended = |phase: &str| {
        let mut ended = pod("p", "a", 1, 0);
        ended["status"]["phase"] = phase.into();
        ended
    };
    let mut unbound = pod("p", "a", 1, 0);
    unbound["spec"].as_object_mut().unwrap().remove("nodeName");
    for event in [ended("Succeeded"), ended("Failed"), unbound] {
        let mut state = state(&["a"], 1);
        set_pods(&mut state, [pod("p", "a", 1, 0)]);
        let revision = state.revision();
        set_pods(&mut state, [pod("p", "a", 1, 0)]);
        assert_eq!(state.revision(), revision, "nothing changed");
        set_pods(&mut state, [event]);
        assert!(state.revision() > revision);
        assert_eq!(plan(&mut state, 1, 0), "fits a:1");
    }
}

#[test]
fn replaced_pod_has_another_uid() {
    let reference = |uid| VictimRef::Pod {
        namespace: "ns",
        name: "p",
        uid,
    };
    let mut state = state(&["a", "b"], 1);
    set_pods(&mut state, [pod("p", "a", 1, 0)]);
    assert!(state.has_pods(&reference("p")));
    let mut moved = pod("p", "b", 1, 0);
    moved["metadata"]["uid"] = "q".into();
    set_pods(&mut state, [moved]);
    assert!(!state.has_pods(&reference("p")));
    assert!(state.has_pods(&reference("q")));
    assert_eq!(plan(&mut state, 1, 0), "fits a:1");
}

#[test]
fn nodes_come_and_leave() {
    let mut state = state(&["a", "b"], 1);
    assert_eq!(plan(&mut state, 2, 0), "fits a:1,b:1");
    let revision = state.revision();
    let mut heartbeat = node("a", 1);
    heartbeat["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    state.set_node(&object(&heartbeat));
    assert_eq!(state.revision(), revision, "nothing changed");
    state.remove_node("a");
    assert!(state.revision() > revision);
    assert_eq!(plan(&mut state, 1, 0), "fits b:1");
    state.set_node(&object(&node("a", 2)));
    assert_eq!(plan(&mut state, 3, 0), "fits a:2,b:1");
}

#[test]
fn plan_changes_no_visible_state() {
    let mut state = state(&["a", "b"], 1);
    state.set_workload(&workload("gang", 0, PodGroup));
    gang_pods(&mut state);
    let revision = state.revision();
    let first = plan(&mut state, 2, 10);
    assert_eq!(plan(&mut state, 2, 10), first);
    assert_eq!(state.revision(), revision);
}

#[test]
fn events_change_their_nodes_only() {
    let mut state = state(&["a", "b", "c"], 4);
    let changed = |state: &PlacementState| -> Vec<&str> {
        let nodes = ["a", "b", "c"].into_iter();
        let nodes = nodes.filter(|it| state.has_changed(&placement(&[(it, 1)])));
        nodes.collect()
    };
    assert_eq!(changed(&state), ["a", "b", "c"]);
    state.forget_changes();
    assert_eq!(changed(&state), [""; 0]);
    // A placement whose node does not exist has to be planned again.
    assert!(state.has_changed(&placement(&[("unknown", 1)])));
    set_pods(&mut state, [pod_of("w", "p", "a", 1)]);
    assert_eq!(changed(&state), ["a"]);
    state.forget_changes();
    // A plan changes nothing.
    assert_eq!(plan(&mut state, 1, 10), "fits a:1");
    assert_eq!(changed(&state), [""; 0]);
    // The workload of the pod, its eviction, and its end.
    state.set_workload(&workload("w", 0, PodGroup));
    assert_eq!(changed(&state), ["a"]);
    state.forget_changes();
    state.set_workload(&WorkloadUnit {
        is_evicted: true,
        ..workload("w", 0, PodGroup)
    });
    assert_eq!(changed(&state), ["a"]);
    state.forget_changes();
    state.remove_pod("ns", "p");
    assert_eq!(changed(&state), ["a"]);
    state.forget_changes();
    let template = template(1);
    state.reserve(&request(&template, 1, 5), &placement(&[("b", 1)]));
    assert_eq!(changed(&state), ["b"]);
    state.forget_changes();
    state.release("ns", "preemptor");
    assert_eq!(changed(&state), ["b"]);
    state.forget_changes();
    state.set_node(&object(&node("c", 2)));
    assert_eq!(changed(&state), ["c"]);
    state.forget_changes();
    state.remove_node("c");
    assert_eq!(changed(&state), ["c"]);
}

/// Pods need room for the requests that they get by default.
#[test]
fn default_requests_need_room() {
    let mut cluster = ClusterState::new(
        Options::default(),
        RequeueSettings::default(),
        Completeness::Partial,
    );
    let limit_range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "ns"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {GPU: "3"}}]}});
    set_limit_range(&mut cluster, &object(&limit_range));
    let mut state = state(&["a"], 4);
    let template = object(&json!({"spec": {"containers": [{"name": "main"}]}}));
    for (has_defaults, count, expected) in [(false, 2, true), (true, 1, true), (true, 2, false)] {
        let mut request = request(&template, count, 0);
        if has_defaults {
            request.pod_defaults = Some(cluster.objects().pod_defaults());
        }
        let outcome = state.plan(&request).outcome;
        let fits = matches!(outcome, PlacementOutcome::Fits(_));
        assert_eq!(fits, expected, "{count}: {outcome:?}");
    }
}

//! Releases the ids of names, shapes and groups of objects that are gone.

use super::unit_store::UnitStore;
use lockkeeper_preemption::gang::{ids_len, release_unused};
use lockkeeper_preemption::placement::UsedIds;

/// So many ids may be unused, and as many as are in use, before the unused ones are released.
const UNUSED_IDS_MAX: usize = 10_000;

/// Releases the ids of the core that nothing uses any more, if they are many. Costs nothing, or all ids and pods: a small part
/// of that for each event.
pub(super) fn release_if_many(store: &mut UnitStore) {
    let unused = ids_len(&store.cluster).saturating_sub(store.ids_in_use);
    if unused > store.ids_in_use.saturating_add(UNUSED_IDS_MAX) {
        release(store);
    }
}

fn release(store: &mut UnitStore) {
    let mut used = UsedIds::default();
    for pod in store.pods.values() {
        used.mark_shape(pod.values.shape);
        used.mark_host(pod.values.host);
    }
    release_unused(&mut store.cluster, used);
    // A node without an id counts as changed anyway, and its id may be that of another node next.
    let cluster = store.cluster.cluster();
    store
        .changed
        .retain(|host| !cluster.host_name(host).is_empty());
    store.ids_in_use = ids_len(&store.cluster);
}

#[cfg(test)]
mod tests {
    use super::ids_len;
    use crate::placement_state::{PlacementPodSet, PlacementRequest, PlacementState, WorkloadUnit};
    use lockkeeper_api::workload::DisruptionMode;
    use serde_json::{Value, from_value, json};

    fn node(name: &str) -> Value {
        json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "8", "pods": "110", "example.com/device": "2"}},
        })
    }

    fn pod(name: &str, node: &str, labels: &Value) -> Value {
        json!({
            "metadata": {"namespace": "team", "name": name, "uid": name, "labels": labels},
            "spec": {"nodeName": node, "nodeSelector": labels, "containers": [
                {"name": "main", "resources": {"requests": {"cpu": "1", "example.com/device": "1"}}},
            ]},
            "status": {"phase": "Running"},
        })
    }

    fn workload(name: &str) -> WorkloadUnit<'_> {
        WorkloadUnit {
            namespace: "team",
            name,
            owner_uids: vec![name],
            priority: 0,
            preemption_priority: 0,
            never_preempts: false,
            is_evicted: false,
            is_non_preemptible: false,
            disruption: DisruptionMode::PodGroup,
        }
    }

    fn plan(state: &mut PlacementState, resource: &str) -> String {
        let template = from_value(json!({"spec": {"containers": [
            {"name": "main", "resources": {"requests": {resource: "1"}}},
        ]}}));
        let template = template.unwrap();
        let pod_set = PlacementPodSet {
            name: "main",
            template: &template,
            count: 1,
            node_selector: Vec::new(),
            tolerations: Vec::new(),
        };
        let request = PlacementRequest {
            namespace: "team",
            name: "new",
            pod_sets: vec![pod_set],
            priority: 0,
            never_preempts: true,
            pod_defaults: None,
            nominated: None,
        };
        format!("{:?}", state.plan(&request).outcome)
    }

    /// Objects of one time: a node, its pods with their own labels and shapes, and their workload.
    fn set_generation(state: &mut PlacementState, time: usize) {
        let name = format!("node-{time}");
        state.set_node(&from_value(node(&name)).unwrap());
        let owner = format!("job-{time}");
        state.set_workload(&workload(&owner));
        for at in 0..2 {
            let labels = json!({"job": owner, "pod": format!("{time}-{at}")});
            let pod = pod(&format!("{owner}-{at}"), &name, &labels);
            state.set_pod(&from_value(pod).unwrap());
        }
    }

    fn remove_generation(state: &mut PlacementState, time: usize) {
        for at in 0..2 {
            state.remove_pod("team", &format!("job-{time}-{at}"));
        }
        state.remove_workload("team", &format!("job-{time}"));
        state.remove_node(&format!("node-{time}"));
    }

    #[test]
    fn ids_of_removed_objects_are_released() {
        let mut state = PlacementState::new();
        for time in 0..5_000 {
            set_generation(&mut state, time);
            if let Some(before) = time.checked_sub(3) {
                remove_generation(&mut state, before);
            }
        }
        let ids = ids_len(&state.store.cluster);
        assert!(ids < 11_000, "{ids} ids");
        let hosts = state.store.cluster.cluster().hosts_len();
        assert!(hosts < 2_500, "{hosts} nodes");
        // What is left is as in a state that has had no other objects.
        let mut fresh = PlacementState::new();
        for time in 4_997..5_000 {
            set_generation(&mut fresh, time);
        }
        super::release(&mut state.store);
        super::release(&mut fresh.store);
        assert_eq!(state.store.ids_in_use, fresh.store.ids_in_use);
        for resource in ["cpu", "example.com/device", "example.com/other"] {
            assert_eq!(plan(&mut state, resource), plan(&mut fresh, resource));
        }
    }

    #[test]
    fn requests_of_pods_give_no_resource_an_id() {
        let mut state = PlacementState::new();
        set_generation(&mut state, 0);
        let before = state.store.cluster.cluster().resources_len();
        for at in 0..100 {
            let resource = format!("example.com/{at}");
            let text = plan(&mut state, &resource);
            assert!(text.contains(&format!("has no {resource}")), "{text}");
        }
        assert_eq!(state.store.cluster.cluster().resources_len(), before);
    }

    #[test]
    fn requests_count_as_soon_as_a_node_has_the_resource() {
        let mut state = PlacementState::new();
        let labels = json!({});
        for at in 0..2 {
            let pod = pod(&format!("early-{at}"), "node-0", &labels);
            state.set_pod(&from_value(pod).unwrap());
        }
        state.set_node(&from_value(node("node-0")).unwrap());
        let text = plan(&mut state, "example.com/device");
        assert!(text.contains("has too little example.com/device"), "{text}");
        state.remove_pod("team", "early-0");
        let text = plan(&mut state, "example.com/device");
        assert!(text.starts_with("Fits"), "{text}");
    }
}

//! The resources of requests. Only nodes give a resource an id: a tenant chooses the names in requests, and each id costs
//! an amount on every node in every decision.

use super::unit_store::UnitStore;
use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::{Amount, ResourceId};
use std::collections::BTreeMap;

/// Resources of every node, which have ids from the start: pods may be listed before nodes.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Requests by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SplitRequests {
    /// Of resources that a node has or had.
    pub(super) known: Vec<(ResourceId, Amount)>,
    /// Of resources that no node has, by name.
    pub(super) unknown: Vec<(String, Amount)>,
}

impl SplitRequests {
    pub(super) fn new(cluster: &GangCluster, requests: BTreeMap<String, Amount>) -> Self {
        let mut split = Self::default();
        for (name, amount) in requests {
            match cluster.cluster().known_resource(&name) {
                Some(id) => split.known.push((id, amount)),
                None => split.unknown.push((name, amount)),
            }
        }
        split
    }
}

/// Gives ids to the resources of every node.
pub(super) fn add_standard_resources(cluster: &mut GangCluster) {
    for name in STANDARD {
        cluster.resource(name);
    }
}

/// Counts the requests of running pods for resources that have an id now. Costs the pods that request resources which no node
/// had.
pub(super) fn count_known_resources(store: &mut UnitStore) {
    let cluster = store.cluster.cluster();
    let has_known = |key: &&String| {
        let requests = store.pods.get(*key).map(|it| &it.values.unknown_requests);
        let mut requests = requests.into_iter().flatten();
        requests.any(|(name, _)| cluster.known_resource(name).is_some())
    };
    let pods: Vec<String> = store
        .pods_with_unknown
        .iter()
        .filter(has_known)
        .cloned()
        .collect();
    for key in pods {
        let Some(entry) = store.pods.get_mut(&key) else {
            continue;
        };
        let values = &mut entry.values;
        let requests = std::mem::take(&mut values.unknown_requests);
        let requests = SplitRequests::new(&store.cluster, requests.into_iter().collect());
        let mut shape = store.cluster.cluster().shape_of(values.shape).clone();
        shape.requests.extend(requests.known);
        values.shape = store.cluster.shape(shape);
        values.unknown_requests = requests.unknown;
        if values.unknown_requests.is_empty() {
            store.pods_with_unknown.remove(&key);
        }
        store.sync_pod(&key);
    }
}

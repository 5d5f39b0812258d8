//! Requests of resources that no node had when their pod was read.

use super::resource_names::SplitRequests;
use super::unit_store::UnitStore;

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

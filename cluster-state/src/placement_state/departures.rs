//! Pods that are expected to release their room, and plans that assume it.

use super::plan;
use super::request::{PlacementDecision, PlacementRequest, VictimRef};
use super::unit_store::{Departure, UnitStore};
use super::workload_entry::object_key;
use lockkeeper_preemption::HostId;
use std::collections::BTreeSet;

/// Plans a request as if these workloads were evicted already. The store is as before afterwards.
pub(super) fn plan_after_eviction<'a>(
    store: &mut UnitStore,
    request: &PlacementRequest<'_>,
    evicted: impl Iterator<Item = (&'a str, &'a str)>,
) -> PlacementDecision {
    let revision = store.revision;
    let nodes_before = std::mem::take(&mut store.changed);
    let keys = evicted.map(|(namespace, name)| object_key(namespace, name));
    let changed: Vec<String> = keys.filter(|key| store.set_evicted(key, true)).collect();
    let decision = plan::plan(store, request);
    for key in &changed {
        store.set_evicted(key, false);
    }
    // Nothing has changed: workloads that wait are not tried again.
    store.revision = revision;
    store.changed = nodes_before;
    decision
}

/// Records that a pod was evicted, and another component deletes it.
pub(super) fn set_pod_evicted(store: &mut UnitStore, pod: &VictimRef<'_>) {
    let VictimRef::Pod {
        namespace,
        name,
        uid,
    } = pod
    else {
        return;
    };
    let key = object_key(namespace, name);
    let entry = store.pods.get(&key);
    if entry.is_some_and(|it| it.values.uid == *uid && it.departure == Departure::None) {
        store.set_departure(&key, Departure::Requested);
    }
}

/// Counts the room of all pods on these nodes that have not terminated as expected as taken, and returns their keys.
pub(super) fn stop_waiting_for(store: &mut UnitStore, hosts: &BTreeSet<HostId>) -> Vec<String> {
    let pods = store.pods.iter();
    let pods = pods.filter(|(_, it)| hosts.contains(&it.values.host));
    let overdue = pods.filter(|(key, _)| store.is_leaving(key));
    let overdue: Vec<String> = overdue.map(|(key, _)| key.clone()).collect();
    for key in &overdue {
        store.set_departure(key, Departure::Overdue);
    }
    overdue
}

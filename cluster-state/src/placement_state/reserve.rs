//! Reservations for the pods of an admitted workload.

use super::pod_plan::{add_resources, pod_set_shapes, reservations};
use super::request::{PlacementRequest, WorkloadUnit};
use super::unit_store::UnitStore;
use super::workload_entry::object_key;
use lockkeeper_api::workload::{DisruptionMode, NominatedPlacement};
use std::collections::BTreeSet;

/// Reserves the nodes of a placement for the pods of a workload that are not bound yet.
pub(super) fn reserve(
    store: &mut UnitStore,
    request: &PlacementRequest<'_>,
    placement: &NominatedPlacement,
) {
    let key = object_key(request.namespace, request.name);
    if !store.workloads.contains_key(&key) {
        store.set_workload(&WorkloadUnit {
            namespace: request.namespace,
            name: request.name,
            owner_uids: Vec::new(),
            priority: request.priority,
            preemption_priority: request.priority,
            never_preempts: request.never_preempts,
            is_evicted: false,
            is_non_preemptible: false,
            // Until the workload is known, a part of its pods must not be preempted.
            disruption: DisruptionMode::PodGroup,
        });
    }
    // After a restart the workload may be known before its nodes.
    add_resources(&mut store.cluster, request);
    let pod_sets = pod_set_shapes(&mut store.cluster, request).unwrap_or_default();
    let all = reservations(&mut store.cluster, request.name, &pod_sets, placement);
    let before: BTreeSet<_> = store.take_reservations(&key).into_iter().collect();
    store.add_reservations(&key, all.into_iter());
    for pod in store.running_pods(&key) {
        store.replace_reservation(&key, &pod);
    }
    let entry = store.workloads.get(&key);
    let is_held = |it: &_| entry.is_some_and(|entry| entry.reservations.contains_key(it));
    if !before.iter().all(is_held) {
        store.grow_revision();
    }
}

//! Watch events of ClusterQueues, Cohorts, LocalQueues and `ResourceFlavor`s.

use crate::key::ObjectKey;
use crate::reconciler::decisions::{drop_stale_decisions, drop_stale_decisions_in_tree};
use crate::reconciler::input::Change;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::placement::retries::retry_all_waiting;
use crate::reconciler::placement::units::sync_units_of;
use crate::reconciler::queue_store::{inactive_message, is_same_object};
use crate::reconciler::state::ReconcilerState;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor};
use std::sync::Arc;

pub(crate) fn observe_cluster_queue(
    state: &mut ReconcilerState,
    change: Change<Box<ClusterQueue>>,
) {
    let name = match change {
        Change::Applied(queue) => {
            let queue: Arc<ClusterQueue> = Arc::from(queue);
            let name = queue.metadata.name.clone().unwrap_or_default();
            if is_status_update(state, &name, &queue) {
                update_cluster_queue_status(state, name, queue);
                return;
            }
            if queue.spec.places_on_nodes() {
                state.enable_placement();
            }
            let rejection = state.cluster.set_cluster_queue(Arc::clone(&queue)).err();
            state.model.queues.upsert_cluster_queue(queue, rejection);
            name
        }
        Change::Deleted(key) => {
            let name = key.name().to_owned();
            state.cluster.remove_cluster_queue(&name);
            let object = ObjectRef::ClusterQueue(name.clone());
            state.model.queues.remove(&object);
            name
        }
    };
    state.cycle.is_due = true;
    drop_stale_decisions(state);
    retry_all_waiting(state);
    if let Some(placement) = &mut state.placement {
        sync_units_of(placement, &state.cluster, &state.model, &name);
    }
    state
        .work_queue
        .enqueue(ObjectRef::ClusterQueue(name.clone()));
    // Fair shares of cohorts depend on their members, finalizers of flavors on references.
    let queues = &state.model.queues;
    let cohorts = queues.cohorts.keys().cloned().map(ObjectRef::Cohort);
    let flavors = queues.flavors.keys().cloned();
    for object in cohorts.chain(flavors.map(ObjectRef::ResourceFlavor)) {
        state.work_queue.enqueue(object);
    }
    state.enqueue_pending_in(&name);
    // Admitted workloads may come through other LocalQueues; HoldAndDrain evicts them.
    state.enqueue_admitted_in(&name);
}

/// Whether only the status of a ClusterQueue has changed; decisions do not depend on that.
fn is_status_update(state: &ReconcilerState, name: &str, queue: &ClusterQueue) -> bool {
    let before = state.model.queues.cluster_queues.get(name);
    before.is_some_and(|old| {
        old.object.spec == queue.spec && is_same_object(&old.object.metadata, &queue.metadata)
    })
}

fn update_cluster_queue_status(
    state: &mut ReconcilerState,
    name: String,
    queue: Arc<ClusterQueue>,
) {
    let before = state.model.queues.cluster_queues.get(&name);
    // The core is not called again for the same spec, so its error is carried over.
    let rejection = before.and_then(|it| it.rejection.clone());
    // The pending reasons of its workloads quote the message.
    let has_new_message =
        before.is_some_and(|it| inactive_message(&it.object) != inactive_message(&queue));
    state.model.queues.upsert_cluster_queue(queue, rejection);
    if has_new_message {
        state.enqueue_pending_in(&name);
    }
    state.work_queue.enqueue(ObjectRef::ClusterQueue(name));
}

pub(crate) fn observe_cohort(state: &mut ReconcilerState, change: Change<Box<Cohort>>) {
    match change {
        Change::Applied(cohort) => {
            let name = ObjectKey::from_metadata(&cohort.metadata).name().to_owned();
            let before = state.model.queues.cohorts.get(&name);
            let is_status_update = before.is_some_and(|old| {
                old.object.spec == cohort.spec
                    && is_same_object(&old.object.metadata, &cohort.metadata)
            });
            let rejection = if is_status_update {
                before.and_then(|it| it.rejection.clone())
            } else {
                state.cluster.set_cohort(&cohort).err()
            };
            state
                .model
                .queues
                .upsert_cohort(Arc::from(cohort), rejection);
            state.work_queue.enqueue(ObjectRef::Cohort(name));
            if is_status_update {
                return;
            }
        }
        Change::Deleted(key) => {
            state.cluster.remove_cohort(key.name());
            let object = ObjectRef::Cohort(key.name().to_owned());
            state.model.queues.remove(&object);
        }
    }
    state.cycle.is_due = true;
    drop_stale_decisions(state);
    // A cohort cycle that appears or disappears changes the status of any queue.
    state.enqueue_all_queues();
}

pub(crate) fn observe_local_queue(state: &mut ReconcilerState, change: Change<Box<LocalQueue>>) {
    // The ClusterQueues before and after the change.
    let mut targets = Vec::new();
    let key = match change {
        Change::Applied(queue) => {
            let key = ObjectKey::from_metadata(&queue.metadata);
            let before = state.model.queues.local_queues.get(&key);
            targets.extend(before.map(|it| it.object.spec.cluster_queue.clone()));
            targets.push(queue.spec.cluster_queue.clone());
            let is_status_update = before.is_some_and(|it| it.object.spec == queue.spec);
            if !is_status_update {
                state.cluster.set_local_queue(&queue);
            }
            state.model.queues.upsert_local_queue(Arc::from(queue));
            state.work_queue.enqueue(ObjectRef::LocalQueue(key.clone()));
            if is_status_update {
                return;
            }
            key
        }
        Change::Deleted(key) => {
            state
                .cluster
                .remove_local_queue(key.namespace(), key.name());
            let before = state.model.queues.local_queues.get(&key);
            targets.extend(before.map(|it| it.object.spec.cluster_queue.clone()));
            let object = ObjectRef::LocalQueue(key.clone());
            state.model.queues.remove(&object);
            key
        }
    };
    state.cycle.is_due = true;
    targets.dedup();
    for target in targets {
        drop_stale_decisions_in_tree(state, &target);
    }
    state.enqueue_workloads_of(&key);
}

pub(crate) fn observe_flavor(state: &mut ReconcilerState, change: Change<Box<ResourceFlavor>>) {
    state.cycle.is_due = true;
    let name = match change {
        Change::Applied(flavor) => {
            state.cluster.set_resource_flavor(&flavor);
            let name = ObjectKey::from_metadata(&flavor.metadata).name().to_owned();
            state.model.queues.upsert_flavor(Arc::from(flavor));
            name
        }
        Change::Deleted(key) => {
            let name = key.name().to_owned();
            state.cluster.remove_resource_flavor(&name);
            let object = ObjectRef::ResourceFlavor(name.clone());
            state.model.queues.remove(&object);
            name
        }
    };
    drop_stale_decisions(state);
    retry_all_waiting(state);
    for queue in state.cluster.objects().queues_using_flavor(&name) {
        state
            .work_queue
            .enqueue(ObjectRef::ClusterQueue(queue.to_owned()));
    }
    state.work_queue.enqueue(ObjectRef::ResourceFlavor(name));
}

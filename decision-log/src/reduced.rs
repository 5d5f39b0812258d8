//! Objects without the fields that no decision reads.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor};
use lockkeeper_cluster_state::journal::ObjectChange;
use std::sync::Arc;

pub(crate) fn reduced(change: &ObjectChange) -> ObjectChange {
    match change {
        ObjectChange::ClusterQueue(it) => ObjectChange::ClusterQueue(Arc::new(cluster_queue(it))),
        ObjectChange::Cohort(it) => {
            ObjectChange::Cohort(Box::new(Cohort::new(name(&it.metadata), it.spec.clone())))
        }
        ObjectChange::ResourceFlavor(it) => {
            let flavor = ResourceFlavor::new(name(&it.metadata), it.spec.clone());
            ObjectChange::ResourceFlavor(Box::new(flavor))
        }
        ObjectChange::LocalQueue(it) => ObjectChange::LocalQueue(Box::new(local_queue(it))),
        ObjectChange::PriorityClass(it) => {
            ObjectChange::PriorityClass(Box::new(priority_class(it)))
        }
        ObjectChange::LimitRange(it) => {
            let mut reduced = it.clone();
            reduced.metadata = own_names(&it.metadata);
            ObjectChange::LimitRange(reduced)
        }
        ObjectChange::RuntimeClass(it) => {
            let mut reduced = it.clone();
            reduced.metadata = own_names(&it.metadata);
            ObjectChange::RuntimeClass(reduced)
        }
        other => other.clone(),
    }
}

fn cluster_queue(queue: &ClusterQueue) -> ClusterQueue {
    let mut reduced = ClusterQueue::new(name(&queue.metadata), queue.spec.clone());
    let deleted_at = &queue.metadata.deletion_timestamp;
    reduced.metadata.deletion_timestamp.clone_from(deleted_at);
    reduced
}

fn local_queue(queue: &LocalQueue) -> LocalQueue {
    let mut reduced = LocalQueue::new(name(&queue.metadata), queue.spec.clone());
    let namespace = &queue.metadata.namespace;
    reduced.metadata.namespace.clone_from(namespace);
    reduced
}

fn priority_class(class: &PriorityClass) -> PriorityClass {
    PriorityClass {
        metadata: own_names(&class.metadata),
        description: None,
        ..class.clone()
    }
}

/// The name and the namespace.
fn own_names(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        ..ObjectMeta::default()
    }
}

fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

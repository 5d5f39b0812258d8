//! Events as lines, apart from those of Workloads, which depend on earlier lines.

use crate::record::{HeldRecord, NamespaceRecord, Record};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor};
use lockkeeper_cluster_state::journal::{ClusterEvent, ObjectChange};

/// The line of an event; `None` for a Workload, whose line depends on earlier ones.
pub(crate) fn event_record(event: &ClusterEvent) -> Option<Record> {
    Some(match event {
        ClusterEvent::Time(now_ms) => Record::Time(*now_ms),
        ClusterEvent::Object(change) => object_record(change),
        ClusterEvent::Workload(_) => return None,
        ClusterEvent::WorkloadSynced(key) => Record::WorkloadSynced(key.clone()),
        ClusterEvent::WorkloadRemoved(key) => Record::WorkloadRemoved(key.clone()),
        ClusterEvent::AdmissionReverted(key) => Record::AdmissionReverted(key.clone()),
        ClusterEvent::Held { workload, until_s } => Record::Held(HeldRecord {
            workload: workload.clone(),
            until: *until_s,
        }),
        ClusterEvent::HoldEnded(key) => Record::HoldEnded(key.clone()),
        ClusterEvent::Stuck { workload, is_stuck } if *is_stuck => Record::Stuck(workload.clone()),
        ClusterEvent::Stuck { workload, .. } => Record::StuckEnded(workload.clone()),
        ClusterEvent::Evicted(key) => Record::Evicted(key.clone()),
        ClusterEvent::SearchedAgain(key) => Record::SearchedAgain(key.clone()),
        ClusterEvent::Cycle(cycle) => Record::Cycle(cycle.clone()),
    })
}

/// Objects have only the fields that decisions read.
fn object_record(change: &ObjectChange) -> Record {
    match change {
        ObjectChange::ClusterQueue(it) => Record::ClusterQueue(Box::new(cluster_queue(it))),
        ObjectChange::ClusterQueueRemoved(name) => Record::ClusterQueueRemoved(name.clone()),
        ObjectChange::Cohort(it) => {
            Record::Cohort(Box::new(Cohort::new(name(&it.metadata), it.spec.clone())))
        }
        ObjectChange::CohortRemoved(name) => Record::CohortRemoved(name.clone()),
        ObjectChange::ResourceFlavor(it) => {
            let flavor = ResourceFlavor::new(name(&it.metadata), it.spec.clone());
            Record::ResourceFlavor(Box::new(flavor))
        }
        ObjectChange::ResourceFlavorRemoved(name) => Record::ResourceFlavorRemoved(name.clone()),
        ObjectChange::LocalQueue(it) => Record::LocalQueue(Box::new(local_queue(it))),
        ObjectChange::LocalQueueRemoved { namespace, name } => {
            Record::LocalQueueRemoved(format!("{namespace}/{name}"))
        }
        ObjectChange::Namespace { name, labels } => Record::Namespace(NamespaceRecord {
            name: name.clone(),
            labels: labels.clone(),
        }),
        ObjectChange::NamespaceRemoved(name) => Record::NamespaceRemoved(name.clone()),
        ObjectChange::PriorityClass(it) => Record::PriorityClass(Box::new(priority_class(it))),
        ObjectChange::PriorityClassRemoved(name) => Record::PriorityClassRemoved(name.clone()),
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
        metadata: ObjectMeta {
            name: class.metadata.name.clone(),
            ..ObjectMeta::default()
        },
        description: None,
        ..class.clone()
    }
}

fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

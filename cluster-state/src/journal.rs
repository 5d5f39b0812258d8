//! The changes and cycles of a [`ClusterState`], in order: the same events make the same decisions again.

pub use crate::cluster_event::{ClusterEvent, ObjectChange};
pub use crate::cycle_record::{
    CycleRecord, DecisionRecord, OUT_OF_SCOPE, PodSetDecision, VictimRecord,
};

use crate::cluster_event::Journal;
use crate::cluster_state::{ClusterState, end_hold, set_stuck};
use crate::object_store::{ObjectStore, PriorityClassEntry};
use crate::pod_default_objects::{
    remove_limit_range, remove_runtime_class, set_limit_range, set_runtime_class,
};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{Cohort, LocalQueue, ResourceFlavor};
use lockkeeper_preemption::{Cycle, WorkloadId};
use std::sync::Arc;

/// The record of a cycle that has just run.
#[must_use]
pub fn cycle_record(cluster: &ClusterState, cycle: &Cycle) -> CycleRecord {
    let mut record = crate::cycle_record::cycle_record(&cluster.state, cycle);
    record.set_versions(&cluster.workloads);
    record
}

/// Makes the state one of its objects alone, as after a restart, and takes down its events from now on, beginning with those
/// objects. `fresh` has the same settings and no objects. What a restart forgets is forgotten: which pending workloads have
/// been tried, and the evictions that damping counts. No admission may be assumed.
pub fn restart_journal(cluster: &mut ClusterState, mut fresh: ClusterState) {
    fresh.journal = Journal::begin();
    for event in objects(cluster) {
        apply(&mut fresh, &event);
    }
    let keys = cluster.workloads.entries.keys();
    let evicted = keys.filter(|key| is_evicted(cluster, key) && !is_evicted(&fresh, key));
    let evicted: Vec<WorkloadId> = evicted
        .filter_map(|key| fresh.state().workload(key))
        .collect();
    for id in evicted {
        mark_evicted(&mut fresh, id);
    }
    *cluster = fresh;
}

/// Whether the admissions of all cycles are in their objects.
#[must_use]
pub fn has_assumed_admissions(cluster: &ClusterState) -> bool {
    !cluster.workloads.assumed.is_empty()
}

/// The events that make the objects of a state.
fn objects(cluster: &ClusterState) -> Vec<ClusterEvent> {
    let workloads = &cluster.workloads;
    let mut events = vec![ClusterEvent::Time(cluster.now_ms())];
    let changes = object_changes(&cluster.objects).into_iter();
    events.extend(changes.map(ClusterEvent::Object));
    let stored = workloads.entries.values();
    events.extend(stored.map(|it| ClusterEvent::Workload(Arc::clone(&it.object))));
    events.extend(workloads.held_until.iter().map(|(key, until_s)| {
        let (workload, until_s) = (key.to_string(), *until_s);
        ClusterEvent::Held { workload, until_s }
    }));
    events.extend(workloads.stuck.iter().map(|key| ClusterEvent::Stuck {
        workload: key.to_string(),
        is_stuck: true,
    }));
    events
}

fn object_changes(objects: &ObjectStore) -> Vec<ObjectChange> {
    let namespaces = objects.namespaces.iter().map(|(name, labels)| {
        let (name, labels) = (name.clone(), labels.clone());
        ObjectChange::Namespace { name, labels }
    });
    let classes = objects.priority_classes.iter();
    let classes = classes.map(|(name, it)| ObjectChange::PriorityClass(Box::new(class(name, *it))));
    let flavors = objects.flavors.iter().map(|(name, spec)| {
        ObjectChange::ResourceFlavor(Box::new(ResourceFlavor::new(name, spec.clone())))
    });
    let cohorts = objects.cohorts.iter();
    let cohorts =
        cohorts.map(|(name, spec)| ObjectChange::Cohort(Box::new(Cohort::new(name, spec.clone()))));
    let queues = objects.cluster_queues.values();
    let queues = queues.map(|it| ObjectChange::ClusterQueue(Arc::clone(&it.object)));
    let local_queues = objects
        .local_queues
        .iter()
        .map(|((namespace, name), spec)| {
            let mut queue = LocalQueue::new(name, spec.clone());
            queue.metadata.namespace = Some(namespace.clone());
            ObjectChange::LocalQueue(Box::new(queue))
        });
    let defaults = &objects.pod_defaults;
    let ranges = defaults.limit_ranges();
    let ranges = ranges.map(|it| ObjectChange::LimitRange(Box::new(it)));
    let runtimes = defaults.runtime_classes();
    let runtimes = runtimes.map(|it| ObjectChange::RuntimeClass(Box::new(it)));
    let namespaces = namespaces.chain(ranges).chain(runtimes);
    let all = namespaces.chain(classes).chain(flavors).chain(cohorts);
    all.chain(queues).chain(local_queues).collect()
}

fn class(name: &str, entry: PriorityClassEntry) -> PriorityClass {
    PriorityClass {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        value: Some(entry.value),
        global_default: entry.is_default.then_some(true),
        preemption_policy: entry.never_preempts.then(|| "Never".to_owned()),
        ..PriorityClass::default()
    }
}

/// Takes down no further events.
pub fn stop_journal(cluster: &mut ClusterState) {
    cluster.journal = Journal::default();
}

/// The events since the last call; none without a journal.
pub fn take_events(cluster: &mut ClusterState) -> Vec<ClusterEvent> {
    cluster.journal.take()
}

/// Repeats an event. A cycle is run again, and returned with its own decisions. Objects that the state rejects leave it as
/// it was, as they did before.
pub fn apply(cluster: &mut ClusterState, event: &ClusterEvent) -> Option<Cycle> {
    match event {
        ClusterEvent::Time(now_ms) => cluster.set_now(*now_ms),
        ClusterEvent::Object(change) => apply_object(cluster, change),
        ClusterEvent::Workload(it) => {
            let _ = cluster.set_workload(Arc::clone(it));
        }
        ClusterEvent::WorkloadSynced(key) => {
            let stored = cluster.workloads.entries.get(key.as_str());
            if let Some(object) = stored.map(|it| Arc::clone(&it.object)) {
                let _ = cluster.set_workload(object);
            }
        }
        ClusterEvent::WorkloadRemoved(key) => cluster.remove_workload(key),
        ClusterEvent::AdmissionReverted(key) => cluster.revert_admission(key),
        ClusterEvent::Held { workload, until_s } => cluster.hold_until(workload, *until_s),
        ClusterEvent::HoldEnded(key) => end_hold(cluster, key),
        ClusterEvent::Stuck { workload, is_stuck } => set_stuck(cluster, workload, *is_stuck),
        ClusterEvent::Evicted(key) => {
            if let Some(id) = cluster.state().workload(key) {
                mark_evicted(cluster, id);
            }
        }
        ClusterEvent::SearchedAgain(key) => {
            if let Some(id) = cluster.state().workload(key) {
                search_again(cluster, id);
            }
        }
        ClusterEvent::Cycle(_) => return Some(cluster.next_cycle(cluster.now_ms(), true)),
    }
    None
}

fn apply_object(cluster: &mut ClusterState, change: &ObjectChange) {
    match change {
        ObjectChange::ClusterQueue(it) => {
            let _ = cluster.set_cluster_queue(Arc::clone(it));
        }
        ObjectChange::ClusterQueueRemoved(name) => cluster.remove_cluster_queue(name),
        ObjectChange::Cohort(it) => {
            let _ = cluster.set_cohort(it);
        }
        ObjectChange::CohortRemoved(name) => cluster.remove_cohort(name),
        ObjectChange::ResourceFlavor(it) => cluster.set_resource_flavor(it),
        ObjectChange::ResourceFlavorRemoved(name) => cluster.remove_resource_flavor(name),
        ObjectChange::LocalQueue(it) => cluster.set_local_queue(it),
        ObjectChange::LocalQueueRemoved { namespace, name } => {
            cluster.remove_local_queue(namespace, name);
        }
        ObjectChange::Namespace { name, labels } => cluster.set_namespace(name, labels.clone()),
        ObjectChange::NamespaceRemoved(name) => cluster.remove_namespace(name),
        ObjectChange::PriorityClass(it) => cluster.set_priority_class(it),
        ObjectChange::PriorityClassRemoved(name) => cluster.remove_priority_class(name),
        ObjectChange::LimitRange(it) => set_limit_range(cluster, it),
        ObjectChange::LimitRangeRemoved { namespace, name } => {
            remove_limit_range(cluster, namespace, name);
        }
        ObjectChange::RuntimeClass(it) => set_runtime_class(cluster, it),
        ObjectChange::RuntimeClassRemoved(name) => remove_runtime_class(cluster, name),
    }
}

/// Marks the eviction of a workload that its object does not show yet: no further cycle chooses it, and its quota counts as
/// about to be released.
pub fn mark_evicted(cluster: &mut ClusterState, id: WorkloadId) {
    record_workload(cluster, id, ClusterEvent::Evicted);
    cluster.state_mut().mark_evicted(id);
}

/// Lets an inadmissible workload, and those like it in its queue, search all flavors again.
pub fn search_again(cluster: &mut ClusterState, id: WorkloadId) {
    record_workload(cluster, id, ClusterEvent::SearchedAgain);
    cluster.state_mut().reactivate_class_of(id);
}

fn record_workload(cluster: &mut ClusterState, id: WorkloadId, event: fn(String) -> ClusterEvent) {
    let (state, journal) = (&cluster.state, &mut cluster.journal);
    journal.event(|| event(state.workload_name(id).to_owned()));
}

fn is_evicted(cluster: &ClusterState, key: &str) -> bool {
    let state = cluster.state();
    let reservation = state
        .workload(key)
        .and_then(|id| state.workload_view(id).reservation());
    reservation.is_some_and(|it| it.is_evicted)
}

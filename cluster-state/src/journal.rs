//! The changes and cycles of a [`ClusterState`], in order: the same events make the same decisions again.

use crate::cluster_state::{ClusterState, end_hold, set_stuck};
use crate::object_store::{Labels, ObjectStore, PriorityClassEntry};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_preemption::{Cycle, Decision, Entry, WorkloadId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object other than a Workload was added, changed or removed.
#[derive(Clone, Debug)]
pub enum ObjectChange {
    /// [`ClusterState::set_cluster_queue`].
    ClusterQueue(Arc<ClusterQueue>),
    /// [`ClusterState::remove_cluster_queue`].
    ClusterQueueRemoved(String),
    /// [`ClusterState::set_cohort`].
    Cohort(Box<Cohort>),
    /// [`ClusterState::remove_cohort`].
    CohortRemoved(String),
    /// [`ClusterState::set_resource_flavor`].
    ResourceFlavor(Box<ResourceFlavor>),
    /// [`ClusterState::remove_resource_flavor`].
    ResourceFlavorRemoved(String),
    /// [`ClusterState::set_local_queue`].
    LocalQueue(Box<LocalQueue>),
    /// [`ClusterState::remove_local_queue`].
    LocalQueueRemoved {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// [`ClusterState::set_namespace`].
    Namespace {
        /// Its name.
        name: String,
        /// Its labels.
        labels: Labels,
    },
    /// [`ClusterState::remove_namespace`].
    NamespaceRemoved(String),
    /// [`ClusterState::set_priority_class`].
    PriorityClass(Box<PriorityClass>),
    /// [`ClusterState::remove_priority_class`].
    PriorityClassRemoved(String),
}

/// A change of a [`ClusterState`], or one of its cycles. Workloads are named `namespace/name`.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// The time of the following events, in milliseconds since 1970.
    Time(i64),
    /// Another object than a Workload.
    Object(ObjectChange),
    /// [`ClusterState::set_workload`].
    Workload(Arc<Workload>),
    /// [`ClusterState::set_workload`] with the stored object: other objects, or the time, may have changed.
    WorkloadSynced(String),
    /// [`ClusterState::remove_workload`].
    WorkloadRemoved(String),
    /// [`ClusterState::revert_admission`].
    AdmissionReverted(String),
    /// [`ClusterState::hold_until`].
    Held {
        /// The workload.
        workload: String,
        /// Until when, in seconds since 1970.
        until_s: i64,
    },
    /// [`end_hold`].
    HoldEnded(String),
    /// [`set_stuck`].
    Stuck {
        /// The workload.
        workload: String,
        /// Whether it does not release its quota.
        is_stuck: bool,
    },
    /// [`mark_evicted`].
    Evicted(String),
    /// [`search_again`].
    SearchedAgain(String),
    /// [`ClusterState::next_cycle`].
    Cycle(CycleRecord),
}

/// The decisions of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleRecord {
    /// In the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionRecord>,
    /// Workloads that the namespace selector of their ClusterQueue does not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_scope: Vec<String>,
}

/// The decision on one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// `namespace/name`.
    pub workload: String,
    /// The version of its object.
    pub resource_version: String,
    /// One of [`Decision::NAMES`].
    pub decision: String,
    /// The flavors by pod set, of an admission or a preemption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<PodSetDecision>,
    /// The preempted workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<VictimRecord>,
}

/// The flavors of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetDecision {
    /// The number of pods.
    pub count: i64,
    /// By resource.
    pub flavors: BTreeMap<String, String>,
}

/// A preempted workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimRecord {
    /// `namespace/name`.
    pub workload: String,
    /// As in the condition `Preempted`.
    pub reason: String,
}

/// The record of a cycle that has just run.
#[must_use]
pub fn cycle_record(cluster: &ClusterState, cycle: &Cycle) -> CycleRecord {
    let state = cluster.state();
    let name = |id: WorkloadId| state.workload_name(id).to_owned();
    CycleRecord {
        decisions: cycle
            .entries
            .iter()
            .map(|it| decision_record(cluster, it))
            .collect(),
        out_of_scope: cycle.out_of_scope.iter().map(|id| name(*id)).collect(),
    }
}

fn decision_record(cluster: &ClusterState, entry: &Entry) -> DecisionRecord {
    let state = cluster.state();
    let workload = state.workload_name(entry.workload);
    let stored = cluster.workloads.entries.get(workload);
    let version = stored.and_then(|it| it.object.metadata.resource_version.clone());
    let (has_flavors, victims) = match &entry.decision {
        Decision::Admit => (true, &[] as &[_]),
        Decision::Preempt(victims) => (true, victims.as_slice()),
        _ => (false, &[] as &[_]),
    };
    let pod_sets = entry.assignment().pod_sets.iter().filter(|_| has_flavors);
    let pod_sets = pod_sets.map(|it| PodSetDecision {
        count: it.count,
        flavors: it
            .flavors
            .iter()
            .map(|it| {
                let resource = state.resource_name(it.resource).to_owned();
                (resource, state.flavor_name(it.flavor).to_owned())
            })
            .collect(),
    });
    let victims = victims.iter().map(|it| VictimRecord {
        workload: state.workload_name(it.workload).to_owned(),
        reason: it.reason.as_str().to_owned(),
    });
    DecisionRecord {
        workload: workload.to_owned(),
        resource_version: version.unwrap_or_default(),
        decision: entry.decision.as_str().to_owned(),
        pod_sets: pod_sets.collect(),
        victims: victims.collect(),
    }
}

/// Takes down the events of a cluster state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    events: Vec<ClusterEvent>,
    /// The time of the last event.
    at_ms: Option<i64>,
}

/// Takes an event down, if there is a journal.
pub(crate) fn record(
    cluster: &mut ClusterState,
    event: impl FnOnce(&ClusterState) -> ClusterEvent,
) {
    if cluster.journal.is_none() {
        return;
    }
    let event = event(cluster);
    let now_ms = cluster.now_ms();
    if let Some(journal) = &mut cluster.journal {
        if journal.at_ms != Some(now_ms) {
            journal.at_ms = Some(now_ms);
            journal.events.push(ClusterEvent::Time(now_ms));
        }
        journal.events.push(event);
    }
}

/// The event of [`ClusterState::set_workload`].
pub(crate) fn workload_event(
    cluster: &ClusterState,
    key: &str,
    workload: &Arc<Workload>,
) -> ClusterEvent {
    let stored = cluster.workloads.entries.get(key);
    if stored.is_some_and(|it| Arc::ptr_eq(&it.object, workload)) {
        ClusterEvent::WorkloadSynced(key.to_owned())
    } else {
        ClusterEvent::Workload(Arc::clone(workload))
    }
}

/// Takes the change of an object down, if there is a journal.
pub(crate) fn record_object(
    cluster: &mut ClusterState,
    change: impl FnOnce(&ClusterState) -> ObjectChange,
) {
    record(cluster, |it| ClusterEvent::Object(change(it)));
}

/// Makes the state one of its objects alone, as after a restart, and takes down its events from now on, beginning with those
/// objects. `fresh` has the same settings and no objects. What a restart forgets is forgotten: which pending workloads have
/// been tried, and the evictions that damping counts. No admission may be assumed.
pub fn restart_journal(cluster: &mut ClusterState, mut fresh: ClusterState) {
    fresh.journal = Some(Journal::default());
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
    cluster.journal = None;
}

/// The events since the last call; none without a journal.
pub fn take_events(cluster: &mut ClusterState) -> Vec<ClusterEvent> {
    let journal = cluster.journal.as_mut();
    journal.map_or_else(Vec::new, |it| std::mem::take(&mut it.events))
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
    }
}

/// Marks the eviction of a workload that its object does not show yet: no further cycle chooses it, and its quota counts as
/// about to be released.
pub fn mark_evicted(cluster: &mut ClusterState, id: WorkloadId) {
    record(cluster, |it| {
        ClusterEvent::Evicted(it.state().workload_name(id).to_owned())
    });
    cluster.state_mut().mark_evicted(id);
}

/// Lets an inadmissible workload, and those like it in its queue, search all flavors again.
pub fn search_again(cluster: &mut ClusterState, id: WorkloadId) {
    record(cluster, |it| {
        ClusterEvent::SearchedAgain(it.state().workload_name(id).to_owned())
    });
    cluster.state_mut().reactivate_class_of(id);
}

fn is_evicted(cluster: &ClusterState, key: &str) -> bool {
    let state = cluster.state();
    let reservation = state
        .workload(key)
        .and_then(|id| state.workload_view(id).reservation());
    reservation.is_some_and(|it| it.is_evicted)
}

//! All objects of a cluster, kept up to date in a state.

mod queries;
mod sync_workload;

pub use sync_workload::{NotQueuedReason, WorkloadPhase};

use crate::error::{ObjectError, ObjectProblem, Subject, object_key};
use crate::flavor_eligibility::Flavors;
use crate::label_selector::Selector;
use crate::overflow_guard::{OverflowGuard, object_totals};
use crate::quota_specs::{cohort_spec, queue_spec, selector};
use crate::workloads::workload_key;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::cluster_queue::{ClusterQueueSpec, StopPolicy};
use lockkeeper_api::cohort::CohortSpec;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::local_queue::LocalQueueSpec;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Cycle, Decision, Options, Quota, ResourceId, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much is known of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completeness {
    /// All objects: what was not seen does not exist.
    #[default]
    Complete,
    /// Some files: a flavor that was not seen has no taints and no labels, and a namespace that was not
    /// seen is taken by every queue that takes any.
    Partial,
}

type Labels = BTreeMap<String, String>;
/// Namespace and name.
type LocalQueueKey = (String, String);
/// `namespace/name` of a workload. A clone shares the text.
type WorkloadKey = Arc<str>;

#[derive(Clone, Debug)]
struct QueueEntry {
    spec: ClusterQueueSpec,
    selector: Option<Selector>,
    object: Arc<ClusterQueue>,
}

#[derive(Clone, Debug)]
struct WorkloadEntry {
    object: Arc<Workload>,
    /// Errors are rare and large.
    phase: Result<WorkloadPhase, Box<ObjectError>>,
}

/// The objects, and the state made of them. Each event changes what it concerns; the order in which
/// objects are seen does not matter. An object that is refused leaves the state as it was.
#[derive(Clone, Debug)]
pub struct ClusterState {
    state: State,
    settings: RequeueSettings,
    completeness: Completeness,
    now_ms: i64,
    cluster_queues: BTreeMap<String, QueueEntry>,
    cohorts: BTreeMap<String, CohortSpec>,
    flavors: Flavors,
    local_queues: BTreeMap<LocalQueueKey, LocalQueueSpec>,
    namespaces: BTreeMap<String, Labels>,
    /// The value, and whether it is the default.
    priority_classes: BTreeMap<String, (i32, bool)>,
    workloads: BTreeMap<WorkloadKey, WorkloadEntry>,
    workloads_by_local_queue: BTreeMap<LocalQueueKey, BTreeSet<WorkloadKey>>,
    /// Admitted in the state, and not yet in their objects.
    assumed: BTreeSet<WorkloadKey>,
    /// Until which second these are not looked at.
    held_until: BTreeMap<WorkloadKey, i64>,
    quota_totals: OverflowGuard,
    reserved_totals: OverflowGuard,
}

impl ClusterState {
    /// Nothing yet.
    #[must_use]
    pub fn new(options: Options, settings: RequeueSettings, completeness: Completeness) -> Self {
        Self {
            state: State::new(options),
            settings,
            completeness,
            now_ms: 0,
            cluster_queues: BTreeMap::new(),
            cohorts: BTreeMap::new(),
            flavors: Flavors::new(),
            local_queues: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            priority_classes: BTreeMap::new(),
            workloads: BTreeMap::new(),
            workloads_by_local_queue: BTreeMap::new(),
            assumed: BTreeSet::new(),
            held_until: BTreeMap::new(),
            quota_totals: OverflowGuard::default(),
            reserved_totals: OverflowGuard::default(),
        }
    }

    /// The state. Workloads are named `namespace/name` there.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The state, for questions that need it whole. What it is told here the objects do not know.
    pub const fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Tells the time, in milliseconds since 1970.
    pub fn set_now(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        self.state.set_now(now_ms.div_euclid(1000));
    }

    /// Decides. Who is admitted holds its quota from here on, also while its object does not say so yet,
    /// until that is seen or [`Self::give_up`] is called.
    pub fn next_cycle(&mut self, now_ms: i64, is_traced: bool) -> Cycle {
        self.set_now(now_ms);
        let second = now_ms.div_euclid(1000);
        let cycle = self.state.next_cycle(second, is_traced);
        let admitted = cycle.entries.iter();
        let admitted = admitted.filter(|it| it.decision == Decision::Admit);
        let names = admitted.map(|it| WorkloadKey::from(self.state.workload_name(it.workload)));
        self.assumed.extend(names);
        cycle
    }

    /// The admission of a workload (`namespace/name`) could not be written: it waits again.
    pub fn revert_admission(&mut self, key: &str) {
        if self.assumed.remove(key) {
            self.sync_workload(key);
        }
    }

    /// The same, and it is not looked at before this second, in seconds since 1970, unless its object changes.
    pub fn hold_until(&mut self, key: &str, until_s: i64) {
        if let Some((known, _)) = self.workloads.get_key_value(key) {
            self.assumed.remove(key);
            self.held_until.insert(Arc::clone(known), until_s);
            self.sync_workload(key);
        }
    }

    /// A ClusterQueue is there or has changed.
    ///
    /// # Errors
    ///
    /// As [`queue_spec`]; and when the quota of all objects together is too large.
    pub fn set_cluster_queue(&mut self, queue: Arc<ClusterQueue>) -> Result<(), ObjectError> {
        let name = object_key(&queue.metadata);
        let before = self.cluster_queues.get(&name);
        let is_going = |it: &ClusterQueue| it.metadata.deletion_timestamp.is_some();
        if before
            .is_some_and(|it| it.spec == queue.spec && is_going(&it.object) == is_going(&queue))
        {
            return Ok(());
        }
        let is_same_scope = before.is_some_and(|it| {
            it.spec.namespace_selector == queue.spec.namespace_selector
                && flavor_names(&it.spec) == flavor_names(&queue.spec)
        });
        let selector = selector(&queue)?;
        let is_active = self.is_active(&queue);
        let spec = queue_spec(&queue, &mut self.state, is_active)?;
        let flavors = spec.groups.iter().flat_map(|group| &group.flavors);
        let amounts = flavors.flat_map(|it| &it.quotas).flat_map(limit_amounts);
        if !self
            .quota_totals
            .set(&format!("ClusterQueue {name}"), object_totals(amounts))
        {
            let field = FieldPath::new("spec.resourceGroups");
            let subject = Subject::new("ClusterQueue", &queue.metadata);
            return Err(subject.error(&field, ObjectProblem::TooLarge));
        }
        self.state.set_queue(spec);
        let spec = queue.spec.clone();
        let queue = QueueEntry {
            spec,
            selector,
            object: queue,
        };
        self.cluster_queues.insert(name.clone(), queue);
        if !is_same_scope {
            self.refresh_queue(&name);
        }
        Ok(())
    }

    /// A ClusterQueue is gone. Its workloads wait for it to come back.
    pub fn remove_cluster_queue(&mut self, name: &str) {
        self.state.remove_queue(name);
        self.quota_totals.remove(&format!("ClusterQueue {name}"));
        if self.cluster_queues.remove(name).is_some() {
            self.refresh_queue(name);
        }
    }

    /// A Cohort is there or has changed.
    ///
    /// # Errors
    ///
    /// As [`cohort_spec`]; and when the quota of all objects together is too large.
    pub fn set_cohort(&mut self, cohort: &Cohort) -> Result<(), ObjectError> {
        let name = object_key(&cohort.metadata);
        if self.cohorts.get(&name) == Some(&cohort.spec) {
            return Ok(());
        }
        let spec = cohort_spec(cohort, &mut self.state)?;
        let amounts = spec.quotas.iter().map(|(of, quota)| (of.resource, *quota));
        let amounts = object_totals(amounts.flat_map(|it| limit_amounts(&it)));
        if !self.quota_totals.set(&format!("Cohort {name}"), amounts) {
            let subject = Subject::new("Cohort", &cohort.metadata);
            let field = FieldPath::new("spec.resourceGroups");
            return Err(subject.error(&field, ObjectProblem::TooLarge));
        }
        self.state.set_cohort(spec);
        self.cohorts.insert(name, cohort.spec.clone());
        Ok(())
    }

    /// A Cohort is gone. Its members stay together.
    pub fn remove_cohort(&mut self, name: &str) {
        self.state.remove_cohort(name);
        self.quota_totals.remove(&format!("Cohort {name}"));
        self.cohorts.remove(name);
    }

    /// A `ResourceFlavor` is there or has changed.
    pub fn set_resource_flavor(&mut self, flavor: &ResourceFlavor) {
        let name = object_key(&flavor.metadata);
        if self.flavors.get(&name) != Some(&flavor.spec) {
            self.flavors.insert(name.clone(), flavor.spec.clone());
            self.refresh_flavor(&name);
        }
    }

    /// A `ResourceFlavor` is gone.
    pub fn remove_resource_flavor(&mut self, name: &str) {
        if self.flavors.remove(name).is_some() {
            self.refresh_flavor(name);
        }
    }

    /// A LocalQueue is there or has changed.
    pub fn set_local_queue(&mut self, queue: &LocalQueue) {
        let (namespace, name) = (&queue.metadata.namespace, &queue.metadata.name);
        let key = (
            namespace.clone().unwrap_or_default(),
            name.clone().unwrap_or_default(),
        );
        if self.local_queues.get(&key) != Some(&queue.spec) {
            self.local_queues.insert(key.clone(), queue.spec.clone());
            self.refresh_local_queue(&key);
        }
    }

    /// A LocalQueue is gone. Who waits there waits outside.
    pub fn remove_local_queue(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        if self.local_queues.remove(&key).is_some() {
            self.refresh_local_queue(&key);
        }
    }

    /// A namespace is there, with these labels.
    pub fn set_namespace(&mut self, name: &str, labels: Labels) {
        if self.namespaces.get(name) != Some(&labels) {
            self.namespaces.insert(name.to_owned(), labels);
            self.refresh_namespace(name);
        }
    }

    /// A namespace is gone.
    pub fn remove_namespace(&mut self, name: &str) {
        if self.namespaces.remove(name).is_some() {
            self.refresh_namespace(name);
        }
    }

    /// A PriorityClass is there. It counts for workloads whose status has no priority yet.
    pub fn set_priority_class(&mut self, class: &PriorityClass) {
        let is_default = class.global_default == Some(true);
        let now = (class.value.unwrap_or_default(), is_default);
        let before = self
            .priority_classes
            .insert(object_key(&class.metadata), now);
        if before != Some(now) {
            self.refresh_without_status_priority();
        }
    }

    /// A PriorityClass is gone.
    pub fn remove_priority_class(&mut self, name: &str) {
        if self.priority_classes.remove(name).is_some() {
            self.refresh_without_status_priority();
        }
    }

    /// A workload is there or has changed.
    ///
    /// # Errors
    ///
    /// As [`super::pod_sets`] and [`super::reservation`]; and when what all hold together is too large.
    /// It stays where it was then.
    pub fn set_workload(&mut self, workload: Arc<Workload>) -> Result<WorkloadPhase, ObjectError> {
        let key = workload_key(&workload);
        let known = self.workloads.get_key_value(key.as_str());
        let key = known.map_or_else(|| key.into(), |(known, _)| WorkloadKey::clone(known));
        let home = local_queue_key(&workload);
        if let Some(before) = self.workloads.get(&key).map(|it| Arc::clone(&it.object)) {
            let is_another = before.metadata.uid != workload.metadata.uid;
            if before.metadata.resource_version != workload.metadata.resource_version {
                self.held_until.remove(&key);
            }
            if is_another {
                // Deleted and made again: nothing of the old one counts.
                self.remove_workload(&key);
            } else if self::local_queue_key(&before) != home {
                self.remove_from_local_queue(&key, &before);
            }
        }
        if let Some(home) = home {
            let there = self.workloads_by_local_queue.entry(home).or_default();
            there.insert(WorkloadKey::clone(&key));
        }
        let known = WorkloadEntry {
            object: workload,
            phase: Ok(WorkloadPhase::NotQueued(NotQueuedReason::NoLocalQueue)),
        };
        self.workloads.insert(WorkloadKey::clone(&key), known);
        self.sync_workload(&key);
        let known = self.workloads.get(&key);
        known.map_or(
            Ok(WorkloadPhase::NotQueued(NotQueuedReason::NoLocalQueue)),
            |it| it.phase.clone().map_err(|error| *error),
        )
    }

    /// Where a workload (`namespace/name`) is, or why it was refused; `None` if it is not known.
    #[must_use]
    pub fn phase(&self, key: &str) -> Option<Result<WorkloadPhase, &ObjectError>> {
        let place = &self.workloads.get(key)?.phase;
        Some(place.as_ref().map(|it| *it).map_err(Box::as_ref))
    }

    /// The workloads that are refused, and why.
    pub fn rejected(&self) -> impl Iterator<Item = &ObjectError> {
        self.workloads
            .values()
            .filter_map(|it| it.phase.as_ref().err().map(Box::as_ref))
    }

    /// A workload (`namespace/name`) is gone.
    pub fn remove_workload(&mut self, key: &str) {
        self.remove_from_state(key);
        self.assumed.remove(key);
        self.held_until.remove(key);
        if let Some(known) = self.workloads.remove(key) {
            self.remove_from_local_queue(key, &known.object);
        }
    }

    fn remove_from_local_queue(&mut self, key: &str, workload: &Workload) {
        let Some(home) = local_queue_key(workload) else {
            return;
        };
        if let Some(there) = self.workloads_by_local_queue.get_mut(&home) {
            there.remove(key);
            if there.is_empty() {
                self.workloads_by_local_queue.remove(&home);
            }
        }
    }

    /// One that is being deleted admits nobody more: it goes when those that run have ended.
    fn is_active(&self, queue: &ClusterQueue) -> bool {
        let spec = &queue.spec;
        let mut flavors = spec.resource_groups.iter().flat_map(|it| &it.flavors);
        let is_known = |name: &str| {
            self.completeness == Completeness::Partial || self.flavors.contains_key(name)
        };
        queue.metadata.deletion_timestamp.is_none()
            && spec.stop_policy.unwrap_or_default() == StopPolicy::None
            && flavors.all(|it| is_known(&it.name))
    }

    fn refresh_flavor(&mut self, name: &str) {
        let has_it = |it: &QueueEntry| {
            let mut flavors = it.spec.resource_groups.iter().flat_map(|it| &it.flavors);
            flavors.any(|it| it.name == name)
        };
        let queues = self.cluster_queues.values().filter(|it| has_it(it));
        let queues: Vec<_> = queues.map(|it| Arc::clone(&it.object)).collect();
        for queue in queues {
            let is_active = self.is_active(&queue);
            // It was accepted before.
            if let Ok(spec) = queue_spec(&queue, &mut self.state, is_active) {
                self.state.set_queue(spec);
            }
            self.refresh_queue(&object_key(&queue.metadata));
        }
    }

    fn refresh_queue(&mut self, name: &str) {
        let doors = self.local_queues.iter();
        let doors = doors.filter(|(_, spec)| spec.cluster_queue == name);
        let doors: Vec<LocalQueueKey> = doors.map(|(key, _)| key.clone()).collect();
        for door in doors {
            self.refresh_local_queue(&door);
        }
    }

    fn refresh_namespace(&mut self, name: &str) {
        let doors = self
            .workloads_by_local_queue
            .range((name.to_owned(), String::new())..);
        let doors = doors.take_while(|((namespace, _), _)| namespace == name);
        let doors: Vec<LocalQueueKey> = doors.map(|(key, _)| key.clone()).collect();
        for door in doors {
            self.refresh_local_queue(&door);
        }
    }

    fn refresh_local_queue(&mut self, key: &LocalQueueKey) {
        let there = self.workloads_by_local_queue.get(key);
        for key in there.cloned().unwrap_or_default() {
            self.sync_workload(&key);
        }
    }

    fn refresh_without_status_priority(&mut self) {
        let is_unranked = |it: &Workload| {
            let status = it.status.as_ref();
            status.and_then(|it| it.priority).is_none()
        };
        let unranked = self
            .workloads
            .iter()
            .filter(|(_, it)| is_unranked(&it.object));
        let unranked: Vec<WorkloadKey> = unranked.map(|(key, _)| Arc::clone(key)).collect();
        for key in unranked {
            self.sync_workload(&key);
        }
    }
}

/// The LocalQueue that a workload names.
fn local_queue_key(workload: &Workload) -> Option<LocalQueueKey> {
    let namespace = workload.metadata.namespace.clone().unwrap_or_default();
    Some((namespace, workload.spec.queue_name.clone()?))
}

/// What of a quota adds up: the lending limit is a part of the nominal quota.
fn limit_amounts(
    (resource, quota): &(ResourceId, Quota),
) -> Vec<(ResourceId, lockkeeper_preemption::Amount)> {
    let limit = quota.borrowing_limit.into_iter();
    let amounts = limit.chain([quota.nominal]);
    amounts.map(|it| (*resource, it)).collect()
}

/// By resource group.
fn flavor_names(spec: &ClusterQueueSpec) -> Vec<Vec<&str>> {
    let groups = spec.resource_groups.iter();
    let names = groups.map(|it| it.flavors.iter().map(|it| it.name.as_str()).collect());
    names.collect()
}

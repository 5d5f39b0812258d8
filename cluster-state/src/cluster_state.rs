//! All objects of a cluster, kept up to date in the core's state.

use crate::cluster_event::{ClusterEvent, Journal, ObjectChange};
use crate::cycle_record::cycle_record;
use crate::error::{ObjectError, ObjectProblem, Subject, object_key};
use crate::object_store::{
    ClusterQueueEntry, Completeness, Labels, LocalQueueKey, ObjectStore, PriorityClassEntry,
};
use crate::overflow_guard::{OverflowGuard, object_totals};
use crate::quota_specs::{
    cohort_spec, covered_resources, flavor_names, limit_amounts, queue_spec, selector,
};
use crate::workload_phase::{NotQueuedReason, WorkloadPhase};
use crate::workload_store::{WorkloadKey, WorkloadStore, local_queue_key};
use crate::workload_sync::WorkloadSync;
use crate::workloads::{lifecycle_state, stop_policy, workload_key};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_preemption::requeue::{LifecycleState, RequeueSettings};
use lockkeeper_preemption::{Cycle, Decision, Options, State};
use std::sync::Arc;

/// The objects of a cluster, and the core's state made of them. Each event changes only the state that
/// depends on its object; the order of events does not matter. A rejected object leaves the state as it was.
#[derive(Clone, Debug)]
pub struct ClusterState {
    pub(crate) state: State,
    settings: RequeueSettings,
    pub(crate) now_ms: i64,
    pub(crate) objects: ObjectStore,
    pub(crate) workloads: WorkloadStore,
    quota_totals: OverflowGuard,
    reserved_totals: OverflowGuard,
    pub(crate) journal: Journal,
}

impl ClusterState {
    /// A state without objects.
    #[must_use]
    pub fn new(options: Options, settings: RequeueSettings, completeness: Completeness) -> Self {
        Self {
            state: State::new(options),
            settings,
            now_ms: 0,
            objects: ObjectStore {
                completeness,
                ..ObjectStore::default()
            },
            workloads: WorkloadStore::default(),
            quota_totals: OverflowGuard::default(),
            reserved_totals: OverflowGuard::default(),
            journal: Journal::default(),
        }
    }

    /// Leaves out requests of resources whose names have one of these prefixes, as Kueue's
    /// `resources.excludeResourcePrefixes`. Call it before adding objects.
    pub fn exclude_resources(&mut self, prefixes: Vec<String>) {
        self.objects.excluded_resource_prefixes = prefixes;
    }

    /// The core's state. Its workloads are named `namespace/name`.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The core's state, for queries that need `&mut`. Changes made here are not reflected in the objects.
    pub const fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The objects other than workloads.
    #[must_use]
    pub const fn objects(&self) -> &ObjectStore {
        &self.objects
    }

    /// The current time, in milliseconds since 1970.
    #[must_use]
    pub const fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Sets the current time, in milliseconds since 1970.
    pub fn set_now(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        self.journal.now_ms = now_ms;
        self.state.set_now(now_ms.div_euclid(1000));
    }

    /// Runs a cycle. An admitted workload has its quota from now on, although its object has no admission yet,
    /// until the watch delivers the admission or [`Self::revert_admission`] is called.
    pub fn next_cycle(&mut self, now_ms: i64, is_traced: bool) -> Cycle {
        self.set_now(now_ms);
        let second = now_ms.div_euclid(1000);
        let cycle = self.state.next_cycle(second, is_traced);
        let admitted = cycle
            .entries
            .iter()
            .filter(|it| it.decision == Decision::Admit);
        // Like Kueue's cache, which assumes an admission until the API server has it.
        let keys = admitted.map(|it| WorkloadKey::from(self.state.workload_name(it.workload)));
        self.workloads.assumed.extend(keys);
        let state = &self.state;
        self.journal
            .event(|| ClusterEvent::Cycle(cycle_record(state, &cycle)));
        cycle
    }

    /// Makes a workload (`namespace/name`) pending again, after its admission could not be written.
    pub fn revert_admission(&mut self, key: &str) {
        if self.workloads.assumed.remove(key) {
            self.journal
                .event(|| ClusterEvent::AdmissionReverted(key.to_owned()));
            self.sync().sync(key);
        }
    }

    /// Like [`Self::revert_admission`], and keeps the workload out of its queue until `until_s`, in seconds since
    /// 1970, or until its object changes.
    pub fn hold_until(&mut self, key: &str, until_s: i64) {
        if self.workloads.entries.contains_key(key) {
            // The stored key shares its text.
            let stored = self.workloads.key(key);
            self.workloads.assumed.remove(key);
            self.workloads.held_until.insert(stored, until_s);
            let workload = key.to_owned();
            self.journal
                .event(|| ClusterEvent::Held { workload, until_s });
            self.sync().sync(key);
        }
    }

    /// Adds or updates a ClusterQueue.
    ///
    /// # Errors
    ///
    /// As [`queue_spec`]; and if the total quota of all objects is too large.
    pub fn set_cluster_queue(&mut self, queue: Arc<ClusterQueue>) -> Result<(), ObjectError> {
        let name = object_key(&queue.metadata);
        let before = self.objects.cluster_queues.get(&name);
        // A deletion makes the queue inactive without a change of its spec.
        let is_deleting = |it: &ClusterQueue| it.metadata.deletion_timestamp.is_some();
        if before.is_some_and(|old| {
            old.spec == queue.spec && is_deleting(&old.object) == is_deleting(&queue)
        }) {
            return Ok(());
        }
        // Eligible flavors, covered resources, the namespace selector, allowed classes and the placement concern single
        // workloads; limits do not.
        let is_same_scope = before.is_some_and(|old| {
            old.spec.namespace_selector == queue.spec.namespace_selector
                && old.spec.allowed_priority_classes == queue.spec.allowed_priority_classes
                && old.spec.placement == queue.spec.placement
                && flavor_names(&old.spec) == flavor_names(&queue.spec)
                && covered_resources(&old.spec) == covered_resources(&queue.spec)
        });
        self.journal
            .object(|| ObjectChange::ClusterQueue(Arc::clone(&queue)));
        let selector = selector(&queue)?;
        let is_active = self.objects.is_active(&queue);
        let spec = queue_spec(&queue, &mut self.state, is_active)?;
        let flavors = spec.groups.iter().flat_map(|group| &group.flavors);
        let amounts = flavors.flat_map(|it| &it.quotas).flat_map(limit_amounts);
        // The last check before the state changes: a rejected object leaves it as it was.
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
        let entry = ClusterQueueEntry {
            spec,
            selector,
            object: queue,
        };
        self.objects.cluster_queues.insert(name.clone(), entry);
        if !is_same_scope {
            self.refresh_cluster_queue(&name);
        }
        Ok(())
    }

    /// Removes a ClusterQueue. Its workloads stay pending until it exists again.
    pub fn remove_cluster_queue(&mut self, name: &str) {
        self.journal
            .object(|| ObjectChange::ClusterQueueRemoved(name.to_owned()));
        self.state.remove_queue(name);
        self.quota_totals.remove(&format!("ClusterQueue {name}"));
        if self.objects.cluster_queues.remove(name).is_some() {
            self.refresh_cluster_queue(name);
        }
    }

    /// Adds or updates a Cohort.
    ///
    /// # Errors
    ///
    /// As [`cohort_spec`]; and if the total quota of all objects is too large.
    pub fn set_cohort(&mut self, cohort: &Cohort) -> Result<(), ObjectError> {
        let name = object_key(&cohort.metadata);
        if self.objects.cohorts.get(&name) == Some(&cohort.spec) {
            return Ok(());
        }
        self.journal
            .object(|| ObjectChange::Cohort(Box::new(cohort.clone())));
        let spec = cohort_spec(cohort, &mut self.state)?;
        let amounts = spec.quotas.iter().map(|(of, quota)| (of.resource, *quota));
        let amounts = object_totals(amounts.flat_map(|it| limit_amounts(&it)));
        if !self.quota_totals.set(&format!("Cohort {name}"), amounts) {
            let subject = Subject::new("Cohort", &cohort.metadata);
            let field = FieldPath::new("spec.resourceGroups");
            return Err(subject.error(&field, ObjectProblem::TooLarge));
        }
        self.state.set_cohort(spec);
        self.objects.cohorts.insert(name, cohort.spec.clone());
        Ok(())
    }

    /// Removes a Cohort. Its members stay in one cohort.
    pub fn remove_cohort(&mut self, name: &str) {
        self.journal
            .object(|| ObjectChange::CohortRemoved(name.to_owned()));
        self.state.remove_cohort(name);
        self.quota_totals.remove(&format!("Cohort {name}"));
        self.objects.cohorts.remove(name);
    }

    /// Adds or updates a `ResourceFlavor`.
    pub fn set_resource_flavor(&mut self, flavor: &ResourceFlavor) {
        let name = object_key(&flavor.metadata);
        if self.objects.flavors.get(&name) != Some(&flavor.spec) {
            self.journal
                .object(|| ObjectChange::ResourceFlavor(Box::new(flavor.clone())));
            let flavors = &mut self.objects.flavors;
            flavors.insert(name.clone(), flavor.spec.clone());
            refresh_flavor(self, &name);
        }
    }

    /// Removes a `ResourceFlavor`.
    pub fn remove_resource_flavor(&mut self, name: &str) {
        if self.objects.flavors.remove(name).is_some() {
            self.journal
                .object(|| ObjectChange::ResourceFlavorRemoved(name.to_owned()));
            refresh_flavor(self, name);
        }
    }

    /// Adds or updates a LocalQueue.
    pub fn set_local_queue(&mut self, queue: &LocalQueue) {
        let (namespace, name) = (&queue.metadata.namespace, &queue.metadata.name);
        let key = (
            namespace.clone().unwrap_or_default(),
            name.clone().unwrap_or_default(),
        );
        if self.objects.local_queues.get(&key) != Some(&queue.spec) {
            self.journal
                .object(|| ObjectChange::LocalQueue(Box::new(queue.clone())));
            let local_queues = &mut self.objects.local_queues;
            local_queues.insert(key.clone(), queue.spec.clone());
            let keys = self.workloads.keys_in_local_queue(&key);
            self.sync().sync_all(&keys);
        }
    }

    /// Removes a LocalQueue. Its pending workloads leave the core's state.
    pub fn remove_local_queue(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        if self.objects.local_queues.remove(&key).is_some() {
            let (namespace, name) = key.clone();
            self.journal
                .object(|| ObjectChange::LocalQueueRemoved { namespace, name });
            let keys = self.workloads.keys_in_local_queue(&key);
            self.sync().sync_all(&keys);
        }
    }

    /// Adds or updates a namespace with its labels.
    pub fn set_namespace(&mut self, name: &str, labels: Labels) {
        if self.objects.namespaces.get(name) != Some(&labels) {
            let (namespace, added) = (name.to_owned(), labels.clone());
            self.journal.object(|| ObjectChange::Namespace {
                name: namespace,
                labels: added,
            });
            self.objects.namespaces.insert(name.to_owned(), labels);
            let keys = self.workloads.keys_in_namespace(name);
            self.sync().sync_all(&keys);
        }
    }

    /// Removes a namespace.
    pub fn remove_namespace(&mut self, name: &str) {
        if self.objects.namespaces.remove(name).is_some() {
            self.journal
                .object(|| ObjectChange::NamespaceRemoved(name.to_owned()));
            let keys = self.workloads.keys_in_namespace(name);
            self.sync().sync_all(&keys);
        }
    }

    /// Adds or updates a PriorityClass. Its value is used for workloads whose status has no priority yet, its preemption
    /// policy for all that name it.
    pub fn set_priority_class(&mut self, class: &PriorityClass) {
        let entry = PriorityClassEntry {
            value: class.value.unwrap_or_default(),
            is_default: class.global_default == Some(true),
            never_preempts: class.preemption_policy.as_deref() == Some("Never"),
        };
        let classes = &mut self.objects.priority_classes;
        let name = object_key(&class.metadata);
        let before = classes.insert(name.clone(), entry);
        if before != Some(entry) {
            self.journal
                .object(|| ObjectChange::PriorityClass(Box::new(class.clone())));
            let is_default = entry.is_default || before.is_some_and(|it| it.is_default);
            let keys = self.workloads.keys_using_priority_class(&name, is_default);
            self.sync().sync_all(&keys);
        }
    }

    /// Removes a PriorityClass.
    pub fn remove_priority_class(&mut self, name: &str) {
        if let Some(entry) = self.objects.priority_classes.remove(name) {
            self.journal
                .object(|| ObjectChange::PriorityClassRemoved(name.to_owned()));
            let keys = self
                .workloads
                .keys_using_priority_class(name, entry.is_default);
            self.sync().sync_all(&keys);
        }
    }

    /// Adds or updates a workload, and returns its phase.
    ///
    /// # Errors
    ///
    /// As [`crate::pod_sets`] and [`crate::reservation`]; and if the total reserved quota is too large. The
    /// workload then stays in the core's state as it was.
    pub fn set_workload(&mut self, workload: Arc<Workload>) -> Result<WorkloadPhase, ObjectError> {
        let key = self.workloads.key(&workload_key(&workload));
        let stored = &self.workloads;
        self.journal
            .event(|| ClusterEvent::workload(stored, &key, &workload));
        if let Some(before) = self.workloads.entries.get(&key) {
            let is_recreated = before.object.metadata.uid != workload.metadata.uid;
            if before.object.metadata.resource_version != workload.metadata.resource_version {
                self.workloads.held_until.remove(&key);
            }
            if is_recreated {
                // Another object with the same name: no state of the old one applies to it.
                self.sync().remove(&key);
                self.workloads.remove(&key);
            }
        }
        self.workloads.insert(&key, workload);
        self.sync().sync(&key);
        match self.phase(&key) {
            Some(phase) => phase.map_err(Clone::clone),
            None => Ok(WorkloadPhase::NotQueued(NotQueuedReason::NoLocalQueue)),
        }
    }

    /// Removes a workload (`namespace/name`).
    pub fn remove_workload(&mut self, key: &str) {
        self.journal
            .event(|| ClusterEvent::WorkloadRemoved(key.to_owned()));
        self.sync().remove(key);
        self.workloads.remove(key);
    }

    /// The phase of a workload (`namespace/name`), or the error it was rejected with; `None` if there is no such
    /// workload.
    #[must_use]
    pub fn phase(&self, key: &str) -> Option<Result<WorkloadPhase, &ObjectError>> {
        let phase = &self.workloads.entries.get(key)?.phase;
        Some(phase.as_ref().map(|it| *it).map_err(Box::as_ref))
    }

    /// The workloads that name a LocalQueue.
    pub fn workloads_in_local_queue(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &Workload> {
        let key: LocalQueueKey = (namespace.to_owned(), name.to_owned());
        self.workloads.in_local_queue(&key)
    }

    /// Whether a workload (`namespace/name`) is admitted in the core's state, while its object has no admission
    /// yet.
    #[must_use]
    pub fn is_assumed(&self, key: &str) -> bool {
        self.workloads.assumed.contains(key)
    }

    /// The lifecycle state of a workload, with the stop policies of its queues. A ClusterQueue or LocalQueue
    /// that does not exist evicts no workload.
    #[must_use]
    pub fn lifecycle_state(&self, workload: &Workload) -> LifecycleState {
        let local_queue = local_queue_key(workload);
        let local_queue = local_queue.and_then(|key| self.objects.local_queues.get(&key));
        let status = workload.status.as_ref();
        let admission = status.and_then(|it| it.admission.as_ref());
        // The admission names the ClusterQueue with the quota; the LocalQueue may have changed.
        let cluster_queue = admission
            .map(|it| &it.cluster_queue)
            .or_else(|| local_queue.map(|it| &it.cluster_queue))
            .and_then(|name| self.objects.cluster_queues.get(name));
        lifecycle_state(
            workload,
            stop_policy(cluster_queue.and_then(|it| it.spec.stop_policy)),
            stop_policy(local_queue.and_then(|it| it.stop_policy)),
        )
    }

    pub(crate) const fn sync(&mut self) -> WorkloadSync<'_> {
        WorkloadSync {
            state: &mut self.state,
            settings: &self.settings,
            now_ms: self.now_ms,
            objects: &self.objects,
            workloads: &mut self.workloads,
            reserved_totals: &mut self.reserved_totals,
        }
    }

    /// Updates the workloads of a ClusterQueue.
    fn refresh_cluster_queue(&mut self, name: &str) {
        for local_queue in self.objects.local_queues_of(name) {
            let keys = self.workloads.keys_in_local_queue(&local_queue);
            self.sync().sync_all(&keys);
        }
    }
}

/// Ends the hold of a workload (`namespace/name`) until `i64::MAX`; one until another time stays.
pub fn end_hold(cluster: &mut ClusterState, key: &str) {
    if cluster.workloads.held_until.get(key) == Some(&i64::MAX) {
        cluster
            .journal
            .event(|| ClusterEvent::HoldEnded(key.to_owned()));
        cluster.workloads.held_until.remove(key);
        cluster.sync().sync(key);
    }
}

/// Sets whether an evicted workload (`namespace/name`) does not release its quota. Then it is no candidate for
/// preemption: no other workload may count on its quota.
pub fn set_stuck(cluster: &mut ClusterState, key: &str, is_stuck: bool) {
    let stored = cluster.workloads.key(key);
    if is_stuck {
        cluster.workloads.stuck.insert(stored);
        cluster.sync().mark_stuck(key);
    } else if !cluster.workloads.stuck.remove(&stored) {
        return;
    }
    let workload = key.to_owned();
    cluster
        .journal
        .event(|| ClusterEvent::Stuck { workload, is_stuck });
    let Some(id) = cluster.state.workload(key) else {
        return;
    };
    let view = cluster.state.workload_view(id);
    let (queue, reservation) = (view.queue(), view.reservation());
    if let Some(reservation) = reservation.filter(|_| !is_stuck) {
        // It is a candidate again.
        cluster.state.reserve(id, &reservation);
    }
    // Other workloads may find other victims now.
    if let Some(queue) = queue {
        cluster.state.reactivate(queue);
    }
}

/// Updates the ClusterQueues that reference a flavor, and their workloads.
fn refresh_flavor(cluster: &mut ClusterState, name: &str) {
    let queues = cluster.objects.queues_using_flavor(name).into_iter();
    let entries = queues.filter_map(|it| cluster.objects.cluster_queues.get(it));
    let queues: Vec<_> = entries.map(|it| Arc::clone(&it.object)).collect();
    for queue in queues {
        let is_active = cluster.objects.is_active(&queue);
        // The spec was valid when it was stored, so the conversion does not fail.
        if let Ok(spec) = queue_spec(&queue, &mut cluster.state, is_active) {
            cluster.state.set_queue(spec);
        }
        cluster.refresh_cluster_queue(&object_key(&queue.metadata));
    }
}

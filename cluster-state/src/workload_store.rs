//! The workloads of a cluster, with their phases and assumed admissions.

use crate::error::ObjectError;
use crate::object_store::LocalQueueKey;
use crate::workload_phase::{NotQueuedReason, WorkloadPhase};
use lockkeeper_api::Workload;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// `namespace/name` of a workload. A clone shares the text.
pub(crate) type WorkloadKey = Arc<str>;

#[derive(Clone, Debug)]
pub(crate) struct WorkloadEntry {
    pub(crate) object: Arc<Workload>,
    /// Boxed: errors are rare and large.
    pub(crate) phase: Result<WorkloadPhase, Box<ObjectError>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct WorkloadStore {
    pub(crate) entries: BTreeMap<WorkloadKey, WorkloadEntry>,
    by_local_queue: BTreeMap<LocalQueueKey, BTreeSet<WorkloadKey>>,
    /// Admitted in the core's state, while their objects do not have the admission yet.
    pub(crate) assumed: BTreeSet<WorkloadKey>,
    /// Workloads that are not tried again before this time, in seconds since 1970.
    pub(crate) held_until: BTreeMap<WorkloadKey, i64>,
    /// Evicted workloads that do not release their quota.
    pub(crate) stuck: BTreeSet<WorkloadKey>,
}

impl WorkloadStore {
    /// The key of a workload; shares the text of a stored key.
    pub(crate) fn key(&self, key: &str) -> WorkloadKey {
        let stored = self.entries.get_key_value(key);
        stored.map_or_else(|| key.into(), |(stored, _)| Arc::clone(stored))
    }

    /// Stores an object, and indexes it by its LocalQueue.
    pub(crate) fn insert(&mut self, key: &WorkloadKey, object: Arc<Workload>) {
        let local_queue = local_queue_key(&object);
        if let Some(before) = self.entries.get(key).map(|it| Arc::clone(&it.object))
            && local_queue_key(&before) != local_queue
        {
            self.remove_from_local_queue(key, &before);
        }
        if let Some(local_queue) = local_queue {
            let keys = self.by_local_queue.entry(local_queue).or_default();
            keys.insert(Arc::clone(key));
        }
        let entry = WorkloadEntry {
            object,
            phase: Ok(WorkloadPhase::NotQueued(NotQueuedReason::NoLocalQueue)),
        };
        self.entries.insert(Arc::clone(key), entry);
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.assumed.remove(key);
        self.held_until.remove(key);
        self.stuck.remove(key);
        if let Some(entry) = self.entries.remove(key) {
            self.remove_from_local_queue(key, &entry.object);
        }
    }

    fn remove_from_local_queue(&mut self, key: &str, workload: &Workload) {
        let Some(local_queue) = local_queue_key(workload) else {
            return;
        };
        if let Some(keys) = self.by_local_queue.get_mut(&local_queue) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_local_queue.remove(&local_queue);
            }
        }
    }

    /// The workloads that name a LocalQueue.
    pub(crate) fn keys_in_local_queue(&self, local_queue: &LocalQueueKey) -> Vec<WorkloadKey> {
        let keys = self.by_local_queue.get(local_queue).into_iter().flatten();
        keys.cloned().collect()
    }

    /// The workloads of a namespace that name a LocalQueue.
    pub(crate) fn keys_in_namespace(&self, namespace: &str) -> Vec<WorkloadKey> {
        self.by_local_queue
            // The empty name sorts before all LocalQueues of the namespace.
            .range((namespace.to_owned(), String::new())..)
            .take_while(|((it, _), _)| it == namespace)
            .flat_map(|(_, keys)| keys)
            .cloned()
            .collect()
    }

    /// The workloads that name a PriorityClass; if it is the default class, also those without a class.
    pub(crate) fn keys_using_priority_class(
        &self,
        class: &str,
        is_default: bool,
    ) -> Vec<WorkloadKey> {
        let uses = |it: &Workload| {
            let victim_class = it.spec.preemption_priority_class_name.as_deref();
            let own = it.spec.priority_class_name.as_deref();
            victim_class == Some(class) || own.map_or(is_default, |it| it == class)
        };
        self.entries
            .iter()
            .filter(|(_, it)| uses(&it.object))
            .map(|(key, _)| Arc::clone(key))
            .collect()
    }

    /// The workloads with pods of a `RuntimeClass`.
    pub(crate) fn keys_using_runtime_class(&self, class: &str) -> Vec<WorkloadKey> {
        let uses = |it: &Workload| {
            let specs = it.spec.pod_sets.iter();
            let mut specs = specs.filter_map(|it| it.template.spec.as_ref());
            specs.any(|it| it.runtime_class_name.as_deref() == Some(class))
        };
        let found = self.entries.iter().filter(|(_, it)| uses(&it.object));
        found.map(|(key, _)| Arc::clone(key)).collect()
    }

    pub(crate) fn in_local_queue<'a>(
        &'a self,
        local_queue: &LocalQueueKey,
    ) -> impl Iterator<Item = &'a Workload> + use<'a> {
        let keys = self.by_local_queue.get(local_queue).into_iter().flatten();
        let entries = keys.filter_map(|key| self.entries.get(key));
        entries.map(|it| Arc::as_ref(&it.object))
    }
}

/// The LocalQueue that a workload names.
pub(crate) fn local_queue_key(workload: &Workload) -> Option<LocalQueueKey> {
    let namespace = workload.metadata.namespace.clone().unwrap_or_default();
    Some((namespace, workload.spec.queue_name.clone()?))
}

//! ClusterQueues, Cohorts, LocalQueues and `ResourceFlavor`s as the watches show them.

use super::output::ObjectRef;
use super::rate_limit::StatusThrottle;
use super::status::conditions::find;
use super::write_tracker::WriteTracker;
use crate::key::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::ObjectError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object with the state of its writes.
#[derive(Debug)]
pub(super) struct TrackedObject<T> {
    pub(super) object: Arc<T>,
    pub(super) tracker: WriteTracker,
    /// Why the core rejects it.
    pub(super) rejection: Option<ObjectError>,
    /// Limits how often its status is computed.
    pub(super) status_throttle: StatusThrottle,
}

#[allow(
    clippy::struct_field_names,
    reason = "the fields are named as the kinds are"
)]
#[derive(Debug, Default)]
pub(super) struct QueueStore {
    pub(super) cluster_queues: BTreeMap<String, TrackedObject<ClusterQueue>>,
    pub(super) cohorts: BTreeMap<String, TrackedObject<Cohort>>,
    pub(super) local_queues: BTreeMap<ObjectKey, TrackedObject<LocalQueue>>,
    pub(super) flavors: BTreeMap<String, TrackedObject<ResourceFlavor>>,
}

/// Stores a version, unless a newer one is stored already.
fn upsert<K: Ord, T>(
    all: &mut BTreeMap<K, TrackedObject<T>>,
    key: K,
    object: Arc<T>,
    metadata: fn(&T) -> &ObjectMeta,
    rejection: Option<ObjectError>,
) {
    let version = metadata(&object).resource_version.as_deref();
    let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
    let entry = all.entry(key).or_insert_with(|| TrackedObject {
        object: Arc::clone(&object),
        tracker: WriteTracker::default(),
        rejection: None,
        status_throttle: StatusThrottle::default(),
    });
    entry.tracker.observe(version);
    // A restarted watch may deliver an older version than the one before.
    if entry.tracker.version == version {
        if metadata(&entry.object).generation != metadata(&object).generation {
            entry.status_throttle.reset();
        }
        entry.object = object;
        entry.rejection = rejection;
    }
}

impl QueueStore {
    /// The message of a ClusterQueue's condition `Active`, if that is false.
    pub(super) fn inactive_reason(&self, name: &str) -> Option<&str> {
        inactive_message(&self.cluster_queues.get(name)?.object)
    }

    pub(super) fn upsert_cluster_queue(
        &mut self,
        queue: Arc<ClusterQueue>,
        rejection: Option<ObjectError>,
    ) {
        let name = queue.metadata.name.clone().unwrap_or_default();
        upsert(
            &mut self.cluster_queues,
            name,
            queue,
            |it| &it.metadata,
            rejection,
        );
    }

    /// The cohorts of a ClusterQueue that exist as objects, from the inner to the outer one.
    pub(super) fn cohorts_above(&self, cluster_queue: &str) -> Vec<String> {
        let queue = self.cluster_queues.get(cluster_queue);
        let mut next = queue.and_then(|it| it.object.spec.cohort_name.as_deref());
        let mut found: Vec<String> = Vec::new();
        // Cohorts may form a cycle.
        while let Some(name) = next.filter(|name| !found.iter().any(|it| it == name)) {
            let cohort = self.cohorts.get(name);
            found.extend(cohort.map(|_| name.to_owned()));
            next = cohort.and_then(|it| it.object.spec.parent_name.as_deref());
        }
        found
    }

    pub(super) fn upsert_cohort(&mut self, cohort: Arc<Cohort>, rejection: Option<ObjectError>) {
        let name = ObjectKey::from_metadata(&cohort.metadata).name().to_owned();
        upsert(
            &mut self.cohorts,
            name,
            cohort,
            |it| &it.metadata,
            rejection,
        );
    }

    pub(super) fn upsert_local_queue(&mut self, queue: Arc<LocalQueue>) {
        let name = ObjectKey::from_metadata(&queue.metadata);
        upsert(&mut self.local_queues, name, queue, |it| &it.metadata, None);
    }

    pub(super) fn upsert_flavor(&mut self, flavor: Arc<ResourceFlavor>) {
        let name = ObjectKey::from_metadata(&flavor.metadata).name().to_owned();
        upsert(&mut self.flavors, name, flavor, |it| &it.metadata, None);
    }

    pub(super) fn remove(&mut self, object: &ObjectRef) {
        match object {
            ObjectRef::ClusterQueue(name) => drop(self.cluster_queues.remove(name)),
            ObjectRef::Cohort(name) => drop(self.cohorts.remove(name)),
            ObjectRef::LocalQueue(name) => drop(self.local_queues.remove(name)),
            ObjectRef::ResourceFlavor(name) => drop(self.flavors.remove(name)),
            ObjectRef::Workload(_)
            | ObjectRef::Job(_)
            | ObjectRef::JobKind(_)
            | ObjectRef::Event(_)
            | ObjectRef::VictimPod(_) => {}
        }
    }

    pub(super) fn object_refs(&self) -> Vec<ObjectRef> {
        let queues = self.cluster_queues.keys().cloned();
        let cohorts = self.cohorts.keys().cloned();
        let local = self.local_queues.keys().cloned();
        let flavors = self.flavors.keys().cloned();
        queues
            .map(ObjectRef::ClusterQueue)
            .chain(cohorts.map(ObjectRef::Cohort))
            .chain(local.map(ObjectRef::LocalQueue))
            .chain(flavors.map(ObjectRef::ResourceFlavor))
            .collect()
    }

    /// Forgets the versions of all queues, cohorts and flavors.
    pub(super) fn forget_versions(&mut self) {
        let cluster_queues = self.cluster_queues.values_mut().map(|it| &mut it.tracker);
        let cohorts = self.cohorts.values_mut().map(|it| &mut it.tracker);
        let local_queues = self.local_queues.values_mut().map(|it| &mut it.tracker);
        let flavors = self.flavors.values_mut().map(|it| &mut it.tracker);
        for tracker in cluster_queues
            .chain(cohorts)
            .chain(local_queues)
            .chain(flavors)
        {
            tracker.forget_versions();
        }
    }

    pub(super) fn tracker(&self, object: &ObjectRef) -> Option<&WriteTracker> {
        match object {
            ObjectRef::ClusterQueue(name) => self.cluster_queues.get(name).map(|it| &it.tracker),
            ObjectRef::Cohort(name) => self.cohorts.get(name).map(|it| &it.tracker),
            ObjectRef::LocalQueue(name) => self.local_queues.get(name).map(|it| &it.tracker),
            ObjectRef::ResourceFlavor(name) => self.flavors.get(name).map(|it| &it.tracker),
            ObjectRef::Workload(_)
            | ObjectRef::Job(_)
            | ObjectRef::JobKind(_)
            | ObjectRef::Event(_)
            | ObjectRef::VictimPod(_) => None,
        }
    }

    pub(super) fn tracker_mut(&mut self, object: &ObjectRef) -> Option<&mut WriteTracker> {
        match object {
            ObjectRef::ClusterQueue(name) => {
                self.cluster_queues.get_mut(name).map(|it| &mut it.tracker)
            }
            ObjectRef::Cohort(name) => self.cohorts.get_mut(name).map(|it| &mut it.tracker),
            ObjectRef::LocalQueue(name) => {
                self.local_queues.get_mut(name).map(|it| &mut it.tracker)
            }
            ObjectRef::ResourceFlavor(name) => self.flavors.get_mut(name).map(|it| &mut it.tracker),
            ObjectRef::Workload(_)
            | ObjectRef::Job(_)
            | ObjectRef::JobKind(_)
            | ObjectRef::Event(_)
            | ObjectRef::VictimPod(_) => None,
        }
    }

    pub(super) fn status_throttle_mut(
        &mut self,
        object: &ObjectRef,
    ) -> Option<&mut StatusThrottle> {
        match object {
            ObjectRef::ClusterQueue(name) => {
                let entry = self.cluster_queues.get_mut(name);
                entry.map(|it| &mut it.status_throttle)
            }
            ObjectRef::Cohort(name) => {
                let entry = self.cohorts.get_mut(name);
                entry.map(|it| &mut it.status_throttle)
            }
            ObjectRef::LocalQueue(key) => {
                let entry = self.local_queues.get_mut(key);
                entry.map(|it| &mut it.status_throttle)
            }
            _ => None,
        }
    }
}

/// Whether two versions belong to one object (the same uid), and both or neither are being deleted.
pub(super) fn is_same_object(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.uid == b.uid && a.deletion_timestamp.is_some() == b.deletion_timestamp.is_some()
}

/// The message of `Active=False`.
pub(crate) fn inactive_message(queue: &ClusterQueue) -> Option<&str> {
    let conditions = queue.status.as_ref()?.conditions.as_slice();
    let active = find(conditions, "Active").filter(|it| it.status == "False")?;
    Some(&active.message)
}

/// The ClusterQueue that has admitted a workload.
pub(super) fn admitting_cluster_queue(workload: &Workload) -> Option<&str> {
    let admission = workload.status.as_ref()?.admission.as_ref()?;
    Some(admission.cluster_queue.as_str())
}

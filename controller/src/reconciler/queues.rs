//! ClusterQueues, Cohorts, LocalQueues and `ResourceFlavor`s as they are seen.

use super::conditions::find;
use super::input::{Change, ObjectKey};
use super::output::ObjectRef;
use super::status_throttle::StatusThrottle;
use super::{Reconciler, WriteTracker};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::ObjectError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One of them.
#[derive(Debug)]
pub(super) struct TrackedObject<T> {
    pub(super) object: Arc<T>,
    pub(super) tracker: WriteTracker,
    /// Why the core does not take it.
    pub(super) rejection: Option<ObjectError>,
    /// When its status may be made up again.
    pub(super) status_throttle: StatusThrottle,
}

/// All of them.
#[allow(
    clippy::struct_field_names,
    reason = "the fields are named as the kinds are"
)]
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub(super) cluster_queues: BTreeMap<String, TrackedObject<ClusterQueue>>,
    pub(super) cohorts: BTreeMap<String, TrackedObject<Cohort>>,
    pub(super) local_queues: BTreeMap<ObjectKey, TrackedObject<LocalQueue>>,
    pub(super) flavors: BTreeMap<String, TrackedObject<ResourceFlavor>>,
}

fn upsert<K: Ord, T>(
    all: &mut BTreeMap<K, TrackedObject<T>>,
    key: K,
    seen: Arc<T>,
    metadata: fn(&T) -> &ObjectMeta,
    refused: Option<ObjectError>,
) {
    let version = metadata(&seen).resource_version.as_deref();
    let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
    let entry = all.entry(key).or_insert_with(|| TrackedObject {
        object: Arc::clone(&seen),
        tracker: WriteTracker::default(),
        rejection: None,
        status_throttle: StatusThrottle::default(),
    });
    entry.tracker.observe(version);
    if entry.tracker.version == version {
        if metadata(&entry.object).generation != metadata(&seen).generation {
            entry.status_throttle.reset();
        }
        entry.object = seen;
        entry.rejection = refused;
    }
}

impl Queues {
    /// What a ClusterQueue says of itself, if it says that it admits nobody.
    pub(super) fn inactive_reason(&self, name: &str) -> Option<&str> {
        inactive_message(&self.cluster_queues.get(name)?.object)
    }

    pub(super) fn upsert_cluster_queue(
        &mut self,
        queue: Arc<ClusterQueue>,
        refused: Option<ObjectError>,
    ) {
        let name = queue.metadata.name.clone().unwrap_or_default();
        upsert(
            &mut self.cluster_queues,
            name,
            queue,
            |it| &it.metadata,
            refused,
        );
    }

    pub(super) fn upsert_cohort(&mut self, cohort: Arc<Cohort>, refused: Option<ObjectError>) {
        let name = ObjectKey::from_metadata(&cohort.metadata).name().to_owned();
        upsert(&mut self.cohorts, name, cohort, |it| &it.metadata, refused);
    }

    pub(super) fn upsert_local_queue(&mut self, queue: Arc<LocalQueue>) {
        let name = ObjectKey::from_metadata(&queue.metadata);
        upsert(&mut self.local_queues, name, queue, |it| &it.metadata, None);
    }

    pub(super) fn upsert_flavor(&mut self, flavor: Arc<ResourceFlavor>) {
        let name = ObjectKey::from_metadata(&flavor.metadata).name().to_owned();
        upsert(&mut self.flavors, name, flavor, |it| &it.metadata, None);
    }

    pub(super) fn remove(&mut self, target: &ObjectRef) {
        match target {
            ObjectRef::ClusterQueue(name) => drop(self.cluster_queues.remove(name)),
            ObjectRef::Cohort(name) => drop(self.cohorts.remove(name)),
            ObjectRef::LocalQueue(name) => drop(self.local_queues.remove(name)),
            ObjectRef::ResourceFlavor(name) => drop(self.flavors.remove(name)),
            ObjectRef::Workload(_) | ObjectRef::Job(_) | ObjectRef::Event(_) => {}
        }
    }

    pub(super) fn object_refs(&self) -> Vec<ObjectRef> {
        let queues = self.cluster_queues.keys().cloned();
        let cohorts = self.cohorts.keys().cloned();
        let local = self.local_queues.keys().cloned();
        let flavors = self.flavors.keys().cloned();
        let queues = queues.map(ObjectRef::ClusterQueue);
        let queues = queues.chain(cohorts.map(ObjectRef::Cohort));
        let queues = queues.chain(local.map(ObjectRef::LocalQueue));
        queues
            .chain(flavors.map(ObjectRef::ResourceFlavor))
            .collect()
    }

    pub(super) fn tracker(&self, target: &ObjectRef) -> Option<&WriteTracker> {
        match target {
            ObjectRef::ClusterQueue(name) => self.cluster_queues.get(name).map(|it| &it.tracker),
            ObjectRef::Cohort(name) => self.cohorts.get(name).map(|it| &it.tracker),
            ObjectRef::LocalQueue(name) => self.local_queues.get(name).map(|it| &it.tracker),
            ObjectRef::ResourceFlavor(name) => self.flavors.get(name).map(|it| &it.tracker),
            ObjectRef::Workload(_) | ObjectRef::Job(_) | ObjectRef::Event(_) => None,
        }
    }

    pub(super) fn tracker_mut(&mut self, target: &ObjectRef) -> Option<&mut WriteTracker> {
        match target {
            ObjectRef::ClusterQueue(name) => {
                self.cluster_queues.get_mut(name).map(|it| &mut it.tracker)
            }
            ObjectRef::Cohort(name) => self.cohorts.get_mut(name).map(|it| &mut it.tracker),
            ObjectRef::LocalQueue(name) => {
                self.local_queues.get_mut(name).map(|it| &mut it.tracker)
            }
            ObjectRef::ResourceFlavor(name) => self.flavors.get_mut(name).map(|it| &mut it.tracker),
            ObjectRef::Workload(_) | ObjectRef::Job(_) | ObjectRef::Event(_) => None,
        }
    }
}

impl Reconciler {
    pub(super) fn observe_cluster_queue(&mut self, change: Change<Box<ClusterQueue>>) {
        let name = match change {
            Change::Applied(queue) => {
                let queue: Arc<ClusterQueue> = Arc::from(queue);
                let name = queue.metadata.name.clone().unwrap_or_default();
                let before = self.queues.cluster_queues.get(&name);
                if before.is_some_and(|it| {
                    it.object.spec == queue.spec
                        && is_same_object(&it.object.metadata, &queue.metadata)
                }) {
                    // Only its status: nothing that decisions depend on.
                    let refused = before.and_then(|it| it.rejection.clone());
                    let is_news = before
                        .is_some_and(|it| inactive_message(&it.object) != inactive_message(&queue));
                    self.queues.upsert_cluster_queue(queue, refused);
                    if is_news {
                        self.enqueue_pending_in(&name);
                    }
                    self.work_queue.enqueue(ObjectRef::ClusterQueue(name));
                    return;
                }
                let refused = self.objects.set_cluster_queue(Arc::clone(&queue)).err();
                let name = queue.metadata.name.clone().unwrap_or_default();
                self.queues.upsert_cluster_queue(queue, refused);
                name
            }
            Change::Deleted(name) => {
                self.objects.remove_cluster_queue(name.name());
                self.queues
                    .remove(&ObjectRef::ClusterQueue(name.name().to_owned()));
                name.name().to_owned()
            }
        };
        self.is_cycle_due = true;
        self.drop_stale_decisions();
        self.work_queue
            .enqueue(ObjectRef::ClusterQueue(name.clone()));
        let cohorts = self.queues.cohorts.keys().cloned();
        let flavors = self
            .queues
            .flavors
            .keys()
            .cloned()
            .map(ObjectRef::ResourceFlavor);
        for target in cohorts.map(ObjectRef::Cohort).chain(flavors) {
            self.work_queue.enqueue(target);
        }
        self.enqueue_pending_in(&name);
        // Who runs in it, through whichever door.
        for (workload, known) in &self.workloads {
            if admitting_cluster_queue(&known.object) == Some(name.as_str()) {
                self.work_queue
                    .enqueue(ObjectRef::Workload(workload.clone()));
            }
        }
    }

    /// The LocalQueues of a ClusterQueue, and their workloads.
    fn enqueue_pending_in(&mut self, name: &str) {
        let doors = self.queues.local_queues.iter();
        let doors = doors.filter(|(_, it)| it.object.spec.cluster_queue == name);
        let doors: Vec<ObjectKey> = doors.map(|(door, _)| door.clone()).collect();
        for door in doors {
            self.enqueue_workloads_of(&door);
            self.work_queue.enqueue(ObjectRef::LocalQueue(door));
        }
    }

    pub(super) fn observe_flavor(&mut self, change: Change<Box<ResourceFlavor>>) {
        self.is_cycle_due = true;
        let name = match change {
            Change::Applied(flavor) => {
                self.objects.set_resource_flavor(&flavor);
                let name = ObjectKey::from_metadata(&flavor.metadata).name().to_owned();
                self.queues.upsert_flavor(Arc::from(flavor));
                name
            }
            Change::Deleted(name) => {
                self.objects.remove_resource_flavor(name.name());
                self.queues
                    .remove(&ObjectRef::ResourceFlavor(name.name().to_owned()));
                name.name().to_owned()
            }
        };
        self.drop_stale_decisions();
        let users = self.objects.queues_using_flavor(&name);
        for user in users {
            self.work_queue
                .enqueue(ObjectRef::ClusterQueue(user.to_owned()));
        }
        self.work_queue.enqueue(ObjectRef::ResourceFlavor(name));
    }

    /// The queues whose figures a workload is in.
    pub(super) fn enqueue_queues_of(&mut self, workload: &Workload) {
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let door = workload.spec.queue_name.as_deref();
        if let Some(door) = door {
            if let Some(it) = self.objects.local_queue(namespace, door) {
                let queue = it.cluster_queue.clone();
                self.work_queue.enqueue(ObjectRef::ClusterQueue(queue));
            }
            self.work_queue
                .enqueue(ObjectRef::LocalQueue(ObjectKey::new(namespace, door)));
        }
        if let Some(queue) = admitting_cluster_queue(workload) {
            self.work_queue
                .enqueue(ObjectRef::ClusterQueue(queue.to_owned()));
        }
    }
}

/// Whether two versions of an object are of one object, and both are to stay or both to go.
pub(super) fn is_same_object(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.uid == b.uid && a.deletion_timestamp.is_some() == b.deletion_timestamp.is_some()
}

/// The message of `Active=False`.
fn inactive_message(queue: &ClusterQueue) -> Option<&str> {
    let conditions = queue.status.as_ref()?.conditions.as_slice();
    let active = find(conditions, "Active").filter(|it| it.status == "False")?;
    Some(&active.message)
}

/// The ClusterQueue whose quota a workload holds.
fn admitting_cluster_queue(workload: &Workload) -> Option<&str> {
    let admission = workload.status.as_ref()?.admission.as_ref()?;
    Some(admission.cluster_queue.as_str())
}

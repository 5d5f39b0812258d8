//! ClusterQueues, Cohorts, LocalQueues and `ResourceFlavor`s as they are seen.

use super::conditions::find;
use super::input::{Change, Name};
use super::output::Target;
use super::pace::Pace;
use super::{Reconciler, Track};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_snapshot::objects::ObjectError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One of them.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) seen: Arc<T>,
    pub(super) track: Track,
    /// Why the core does not take it.
    pub(super) refused: Option<ObjectError>,
    /// When its status may be made up again.
    pub(super) pace: Pace,
}

/// All of them.
#[allow(
    clippy::struct_field_names,
    reason = "the fields are named as the kinds are"
)]
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub(super) cluster_queues: BTreeMap<String, Entry<ClusterQueue>>,
    pub(super) cohorts: BTreeMap<String, Entry<Cohort>>,
    pub(super) local_queues: BTreeMap<Name, Entry<LocalQueue>>,
    pub(super) flavors: BTreeMap<String, Entry<ResourceFlavor>>,
}

fn see<K: Ord, T>(
    all: &mut BTreeMap<K, Entry<T>>,
    key: K,
    seen: Arc<T>,
    metadata: fn(&T) -> &ObjectMeta,
    refused: Option<ObjectError>,
) {
    let version = metadata(&seen).resource_version.as_deref();
    let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
    let entry = all.entry(key).or_insert_with(|| Entry {
        seen: Arc::clone(&seen),
        track: Track::default(),
        refused: None,
        pace: Pace::default(),
    });
    entry.track.see(version);
    if entry.track.version == version {
        if metadata(&entry.seen).generation != metadata(&seen).generation {
            entry.pace.hurry();
        }
        entry.seen = seen;
        entry.refused = refused;
    }
}

impl Queues {
    /// What a ClusterQueue says of itself, if it says that it admits nobody.
    pub(super) fn why_inactive(&self, name: &str) -> Option<&str> {
        inactive(&self.cluster_queues.get(name)?.seen)
    }

    pub(super) fn see_cluster_queue(
        &mut self,
        queue: Arc<ClusterQueue>,
        refused: Option<ObjectError>,
    ) {
        let name = queue.metadata.name.clone().unwrap_or_default();
        see(
            &mut self.cluster_queues,
            name,
            queue,
            |it| &it.metadata,
            refused,
        );
    }

    pub(super) fn see_cohort(&mut self, cohort: Arc<Cohort>, refused: Option<ObjectError>) {
        let name = Name::of(&cohort.metadata).name().to_owned();
        see(&mut self.cohorts, name, cohort, |it| &it.metadata, refused);
    }

    pub(super) fn see_local_queue(&mut self, queue: Arc<LocalQueue>) {
        let name = Name::of(&queue.metadata);
        see(&mut self.local_queues, name, queue, |it| &it.metadata, None);
    }

    pub(super) fn see_flavor(&mut self, flavor: Arc<ResourceFlavor>) {
        let name = Name::of(&flavor.metadata).name().to_owned();
        see(&mut self.flavors, name, flavor, |it| &it.metadata, None);
    }

    pub(super) fn lose(&mut self, target: &Target) {
        match target {
            Target::ClusterQueue(name) => drop(self.cluster_queues.remove(name)),
            Target::Cohort(name) => drop(self.cohorts.remove(name)),
            Target::LocalQueue(name) => drop(self.local_queues.remove(name)),
            Target::ResourceFlavor(name) => drop(self.flavors.remove(name)),
            Target::Workload(_) | Target::Job(_) | Target::Event(_) => {}
        }
    }

    pub(super) fn targets(&self) -> Vec<Target> {
        let queues = self.cluster_queues.keys().cloned();
        let cohorts = self.cohorts.keys().cloned();
        let local = self.local_queues.keys().cloned();
        let flavors = self.flavors.keys().cloned();
        let queues = queues.map(Target::ClusterQueue);
        let queues = queues.chain(cohorts.map(Target::Cohort));
        let queues = queues.chain(local.map(Target::LocalQueue));
        queues.chain(flavors.map(Target::ResourceFlavor)).collect()
    }

    pub(super) fn track(&self, target: &Target) -> Option<&Track> {
        match target {
            Target::ClusterQueue(name) => self.cluster_queues.get(name).map(|it| &it.track),
            Target::Cohort(name) => self.cohorts.get(name).map(|it| &it.track),
            Target::LocalQueue(name) => self.local_queues.get(name).map(|it| &it.track),
            Target::ResourceFlavor(name) => self.flavors.get(name).map(|it| &it.track),
            Target::Workload(_) | Target::Job(_) | Target::Event(_) => None,
        }
    }

    pub(super) fn track_mut(&mut self, target: &Target) -> Option<&mut Track> {
        match target {
            Target::ClusterQueue(name) => self.cluster_queues.get_mut(name).map(|it| &mut it.track),
            Target::Cohort(name) => self.cohorts.get_mut(name).map(|it| &mut it.track),
            Target::LocalQueue(name) => self.local_queues.get_mut(name).map(|it| &mut it.track),
            Target::ResourceFlavor(name) => self.flavors.get_mut(name).map(|it| &mut it.track),
            Target::Workload(_) | Target::Job(_) | Target::Event(_) => None,
        }
    }
}

impl Reconciler {
    pub(super) fn take_cluster_queue(&mut self, change: Change<Box<ClusterQueue>>) {
        let name = match change {
            Change::Seen(queue) => {
                let queue: Arc<ClusterQueue> = Arc::from(queue);
                let name = queue.metadata.name.clone().unwrap_or_default();
                let before = self.queues.cluster_queues.get(&name);
                if before.is_some_and(|it| {
                    it.seen.spec == queue.spec && is_same_object(&it.seen.metadata, &queue.metadata)
                }) {
                    // Only its status: nothing that decisions depend on.
                    let refused = before.and_then(|it| it.refused.clone());
                    let is_news = before.is_some_and(|it| inactive(&it.seen) != inactive(&queue));
                    self.queues.see_cluster_queue(queue, refused);
                    if is_news {
                        self.mark_who_waits_for(&name);
                    }
                    self.schedule.mark(Target::ClusterQueue(name));
                    return;
                }
                let refused = self.objects.set_cluster_queue(Arc::clone(&queue)).err();
                let name = queue.metadata.name.clone().unwrap_or_default();
                self.queues.see_cluster_queue(queue, refused);
                name
            }
            Change::Gone(name) => {
                self.objects.remove_cluster_queue(name.name());
                self.queues
                    .lose(&Target::ClusterQueue(name.name().to_owned()));
                name.name().to_owned()
            }
        };
        self.has_moved = true;
        self.drop_stale_orders();
        self.schedule.mark(Target::ClusterQueue(name.clone()));
        let cohorts = self.queues.cohorts.keys().cloned();
        let flavors = self
            .queues
            .flavors
            .keys()
            .cloned()
            .map(Target::ResourceFlavor);
        for target in cohorts.map(Target::Cohort).chain(flavors) {
            self.schedule.mark(target);
        }
        self.mark_who_waits_for(&name);
        // Who runs in it, through whichever door.
        for (workload, known) in &self.workloads {
            if admitted_by(&known.seen) == Some(name.as_str()) {
                self.schedule.mark(Target::Workload(workload.clone()));
            }
        }
    }

    /// The LocalQueues of a ClusterQueue, and their workloads.
    fn mark_who_waits_for(&mut self, name: &str) {
        let doors = self.queues.local_queues.iter();
        let doors = doors.filter(|(_, it)| it.seen.spec.cluster_queue == name);
        let doors: Vec<Name> = doors.map(|(door, _)| door.clone()).collect();
        for door in doors {
            self.mark_workloads_of(&door);
            self.schedule.mark(Target::LocalQueue(door));
        }
    }

    pub(super) fn take_flavor(&mut self, change: Change<Box<ResourceFlavor>>) {
        self.has_moved = true;
        let name = match change {
            Change::Seen(flavor) => {
                self.objects.set_resource_flavor(&flavor);
                let name = Name::of(&flavor.metadata).name().to_owned();
                self.queues.see_flavor(Arc::from(flavor));
                name
            }
            Change::Gone(name) => {
                self.objects.remove_resource_flavor(name.name());
                self.queues
                    .lose(&Target::ResourceFlavor(name.name().to_owned()));
                name.name().to_owned()
            }
        };
        self.drop_stale_orders();
        let users = self.objects.users_of_flavor(&name);
        for user in users {
            self.schedule.mark(Target::ClusterQueue(user.to_owned()));
        }
        self.schedule.mark(Target::ResourceFlavor(name));
    }

    /// The queues whose figures a workload is in.
    pub(super) fn mark_queues_of(&mut self, workload: &Workload) {
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let door = workload.spec.queue_name.as_deref();
        if let Some(door) = door {
            if let Some(it) = self.objects.local_queue(namespace, door) {
                let queue = it.cluster_queue.clone();
                self.schedule.mark(Target::ClusterQueue(queue));
            }
            self.schedule
                .mark(Target::LocalQueue(Name::new(namespace, door)));
        }
        if let Some(queue) = admitted_by(workload) {
            self.schedule.mark(Target::ClusterQueue(queue.to_owned()));
        }
    }
}

/// Whether two versions of an object are of one object, and both are to stay or both to go.
pub(super) fn is_same_object(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.uid == b.uid && a.deletion_timestamp.is_some() == b.deletion_timestamp.is_some()
}

/// The message of `Active=False`.
fn inactive(queue: &ClusterQueue) -> Option<&str> {
    let conditions = queue.status.as_ref()?.conditions.as_slice();
    let active = find(conditions, "Active").filter(|it| it.status == "False")?;
    Some(&active.message)
}

/// The ClusterQueue whose quota a workload holds.
fn admitted_by(workload: &Workload) -> Option<&str> {
    let admission = workload.status.as_ref()?.admission.as_ref()?;
    Some(admission.cluster_queue.as_str())
}

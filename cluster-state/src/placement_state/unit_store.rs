//! The core's state, with the workload of each pod and the reservations of each workload.

use super::changed_nodes::ChangedNodes;
use super::pod_values::PodValues;
use super::request::WorkloadUnit;
use super::resource_names::add_standard_resources;
use super::workload_entry::{
    Properties, Reservation, WorkloadEntry, object_key, pod_group, split_key,
};
use lockkeeper_preemption::gang::{GangCluster, GangOptions, GroupSpec, MemberSpec};
use lockkeeper_preemption::placement::{PodPreemption, PodSpec};
use lockkeeper_preemption::{GroupId, PodId};
use std::collections::{BTreeMap, BTreeSet};

/// The namespace and the uid of an owner of pods. A tenant can write any uid into a label of its own namespace, so the
/// uid alone does not identify the owner.
type OwnerKey = (String, String);

/// A bound pod in the core.
#[derive(Clone, Debug)]
pub(super) struct PodEntry {
    pub(super) values: PodValues,
    /// The key of its workload.
    pub(super) workload: Option<String>,
    pub(super) departure: Departure,
    id: PodId,
}

/// Whether a pod is expected to release its room although it is not terminating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Departure {
    #[default]
    None,
    /// It was evicted; another component deletes it.
    Requested,
    /// It was expected to terminate, and has not done so within the bound: its room counts as taken.
    Overdue,
}

/// The pods, workloads and reservations.
#[derive(Clone, Debug)]
pub(super) struct UnitStore {
    pub(super) cluster: GangCluster,
    /// By `namespace/name`.
    pub(super) pods: BTreeMap<String, PodEntry>,
    /// The keys of pods that request resources which no node has.
    pub(super) pods_with_unknown: BTreeSet<String>,
    /// By `namespace/name`.
    pub(super) workloads: BTreeMap<String, WorkloadEntry>,
    workloads_by_group: BTreeMap<GroupId, String>,
    /// The keys of the workloads with this owner; usually one.
    workloads_by_owner: BTreeMap<OwnerKey, BTreeSet<String>>,
    pods_by_owner: BTreeMap<OwnerKey, BTreeSet<String>>,
    /// The group of pods that are never victims.
    exempt: GroupId,
    /// The group of pods that are about to terminate.
    leaving: GroupId,
    pub(super) revision: u64,
    pub(super) changed: ChangedNodes,
    /// How many ids of the core were in use when the unused ones were released.
    pub(super) ids_in_use: usize,
}

impl UnitStore {
    pub(super) fn new() -> Self {
        let mut cluster = GangCluster::new(GangOptions::default());
        add_standard_resources(&mut cluster);
        // No preemptor has a priority above the first.
        let exempt = set_single_pods(&mut cluster, "/exempt", i32::MAX);
        // The search for the lowest sufficient priority considers these pods before all others.
        let leaving = set_single_pods(&mut cluster, "/leaving", i32::MIN);
        Self {
            cluster,
            pods: BTreeMap::new(),
            pods_with_unknown: BTreeSet::new(),
            workloads: BTreeMap::new(),
            workloads_by_group: BTreeMap::new(),
            workloads_by_owner: BTreeMap::new(),
            pods_by_owner: BTreeMap::new(),
            exempt,
            leaving,
            revision: 0,
            changed: ChangedNodes::default(),
            ids_in_use: 0,
        }
    }

    /// Records that there may be more room.
    pub(super) fn grow_revision(&mut self) {
        self.revision = self.revision.saturating_add(1);
    }

    /// The workload of a group.
    pub(super) fn workload_of_group(&self, group: GroupId) -> Option<(&str, &WorkloadEntry)> {
        let key = self.workloads_by_group.get(&group)?;
        Some((key, self.workloads.get(key)?))
    }

    /// Adds or updates a bound pod.
    pub(super) fn set_pod(&mut self, key: &str, values: PodValues) {
        let before = self.pods.get(key).map(|it| &it.values);
        if before == Some(&values) {
            return;
        }
        let host_before = before.map(|it| it.host);
        if let Some(uid) = before.map(|it| &it.uid) {
            if *uid == values.uid {
                self.unindex_owners(key);
                if let Some(host) = host_before {
                    self.changed.add(host);
                }
                // The pod may have moved or terminated.
                self.grow_revision();
            } else {
                // Another pod with the same name, which may take a reservation of its workload.
                self.remove_pod(key);
            }
        }
        let namespace = split_key(key).0;
        for uid in &values.owner_uids {
            let owner = (namespace.to_owned(), uid.clone());
            self.pods_by_owner
                .entry(owner)
                .or_default()
                .insert(key.to_owned());
        }
        if values.unknown_requests.is_empty() {
            self.pods_with_unknown.remove(key);
        } else {
            self.pods_with_unknown.insert(key.to_owned());
        }
        let before = self.pods.get(key);
        let departure = before.map(|it| it.departure).unwrap_or_default();
        let workload = before.and_then(|it| it.workload.clone());
        let entry = PodEntry {
            values,
            workload,
            departure,
            // Set when the core has the pod.
            id: PodId::default(),
        };
        self.pods.insert(key.to_owned(), entry);
        self.assign_workload(key);
    }

    /// Removes a pod, if it is known.
    pub(super) fn remove_pod(&mut self, key: &str) {
        self.unindex_owners(key);
        self.pods_with_unknown.remove(key);
        let Some(entry) = self.pods.remove(key) else {
            return;
        };
        self.changed.add(entry.values.host);
        self.cluster.remove_pod(entry.id);
        if let Some(workload) = entry.workload.and_then(|it| self.workloads.get_mut(&it)) {
            workload.pods.remove(key);
        }
        self.grow_revision();
    }

    fn unindex_owners(&mut self, key: &str) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let namespace = split_key(key).0;
        for uid in &entry.values.owner_uids {
            let owner = (namespace.to_owned(), uid.clone());
            remove_from_index(&mut self.pods_by_owner, &owner, key);
        }
    }

    /// Adds or updates a workload, and assigns its pods to it. Costs the pods of the workload.
    pub(super) fn set_workload(&mut self, unit: &WorkloadUnit<'_>) {
        let key = object_key(unit.namespace, unit.name);
        let properties = Properties::from_unit(unit);
        let before = self.workloads.get(&key);
        if before.is_some_and(|it| it.properties == properties) {
            return;
        }
        let group = properties.group(unit.namespace, unit.name);
        let group = self.cluster.set_group(&group);
        self.workloads_by_group.insert(group, key.clone());
        let mut changed = self.unindex_workload(&key);
        for uid in &properties.owner_uids {
            let owner = (unit.namespace.to_owned(), uid.clone());
            changed.extend(
                self.pods_by_owner
                    .get(&owner)
                    .into_iter()
                    .flatten()
                    .cloned(),
            );
            self.workloads_by_owner
                .entry(owner)
                .or_default()
                .insert(key.clone());
        }
        let entry = self.workloads.entry(key.clone());
        let entry = entry.or_insert_with(|| WorkloadEntry {
            group,
            properties: properties.clone(),
            pods: BTreeSet::new(),
            reservations: BTreeMap::new(),
        });
        entry.properties = properties;
        let has_reservation = !entry.reservations.is_empty();
        for pod in &changed {
            let is_member = self.find_workload(pod).as_ref() == Some(&key);
            if unit.is_evicted && !is_member {
                self.expect_departure(pod);
            }
            self.assign_workload(pod);
        }
        let reservations = self.take_reservations(&key);
        self.add_reservations(&key, reservations.into_iter());
        // An evicted workload, or one of lower priority, makes room.
        if has_reservation || !changed.is_empty() {
            self.grow_revision();
        }
    }

    /// Removes a workload with its reservations. Each of its pods becomes a unit, or belongs to another workload with
    /// the same owner. Costs the pods of the workload.
    pub(super) fn remove_workload(&mut self, key: &str) {
        let pods = self.unindex_workload(key);
        let reservations = self.take_reservations(key);
        let Some(entry) = self.workloads.remove(key) else {
            return;
        };
        self.workloads_by_group.remove(&entry.group);
        for pod in &pods {
            if entry.properties.is_evicted {
                self.expect_departure(pod);
            }
            self.assign_workload(pod);
        }
        self.cluster.remove_group(entry.group);
        if !pods.is_empty() || !reservations.is_empty() {
            self.grow_revision();
        }
    }

    /// Removes a workload from the index of owners. Returns its pods.
    fn unindex_workload(&mut self, key: &str) -> BTreeSet<String> {
        let Some(entry) = self.workloads.get(key) else {
            return BTreeSet::new();
        };
        let namespace = split_key(key).0;
        for uid in &entry.properties.owner_uids {
            let owner = (namespace.to_owned(), uid.clone());
            remove_from_index(&mut self.workloads_by_owner, &owner, key);
        }
        entry.pods.clone()
    }

    /// Sets whether a workload counts as evicted. Returns whether that has changed. Costs the pods of the workload.
    pub(super) fn set_evicted(&mut self, key: &str, is_evicted: bool) -> bool {
        let Some(entry) = self.workloads.get_mut(key) else {
            return false;
        };
        if std::mem::replace(&mut entry.properties.is_evicted, is_evicted) == is_evicted {
            return false;
        }
        for pod in entry.pods.clone() {
            self.sync_pod(&pod);
        }
        let reservations = self.take_reservations(key);
        self.add_reservations(key, reservations.into_iter());
        true
    }

    /// Sets whether a pod is expected to release its room.
    pub(super) fn set_departure(&mut self, key: &str, departure: Departure) {
        if let Some(entry) = self.pods.get_mut(key) {
            entry.departure = departure;
            self.sync_pod(key);
            self.grow_revision();
        }
    }

    /// Whether a pod is expected to release its room.
    pub(super) fn is_leaving(&self, key: &str) -> bool {
        let Some(pod) = self.pods.get(key) else {
            return false;
        };
        let workloads = self.cluster.workloads();
        workloads.is_terminating_by_preemption(pod.id)
    }

    /// A pod leaves its evicted workload, before its own events show that it terminates: it is expected to release its room,
    /// and is no unit that would have to be preempted.
    fn expect_departure(&mut self, key: &str) {
        if let Some(entry) = self.pods.get_mut(key)
            && entry.departure == Departure::None
        {
            entry.departure = Departure::Requested;
        }
    }

    /// The workload that has an owner of a pod.
    fn find_workload(&self, key: &str) -> Option<String> {
        let namespace = split_key(key).0;
        let owners = self.pods.get(key)?.values.owner_uids.iter();
        let mut workloads = owners.filter_map(|uid| {
            let owner = (namespace.to_owned(), uid.clone());
            self.workloads_by_owner.get(&owner)?.last()
        });
        workloads.next().cloned()
    }

    /// Finds the workload of a pod, and brings the core up to date with the pod.
    fn assign_workload(&mut self, key: &str) {
        let workload = self.find_workload(key);
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let is_joining = entry.workload != workload;
        let before = entry.workload.clone().filter(|_| is_joining);
        if let Some(before) = before.and_then(|it| self.workloads.get_mut(&it)) {
            before.pods.remove(key);
        }
        if let Some(entry) = self.pods.get_mut(key) {
            entry.workload.clone_from(&workload);
        }
        let is_leaving = self.sync_pod(key);
        let Some(workload) = workload.filter(|_| is_joining) else {
            return;
        };
        if let Some(entry) = self.workloads.get_mut(&workload) {
            entry.pods.insert(key.to_owned());
        }
        if !is_leaving {
            self.replace_reservation(&workload, key);
        }
    }

    /// Brings the core up to date with a pod. Returns whether the pod is about to terminate.
    pub(super) fn sync_pod(&mut self, key: &str) -> bool {
        let Some(entry) = self.pods.get_mut(key) else {
            return false;
        };
        self.changed.add(entry.values.host);
        let (namespace, name) = split_key(key);
        let values = &entry.values;
        let workload = entry.workload.as_ref();
        let workload = workload.and_then(|it| self.workloads.get(it));
        let is_evicted = workload.is_some_and(|it| it.properties.is_evicted)
            || entry.departure == Departure::Requested;
        let is_overdue = entry.departure == Departure::Overdue;
        let is_leaving = (values.is_terminating || is_evicted && !values.is_exempt) && !is_overdue;
        let is_non_preemptible = workload.is_some_and(|it| it.properties.is_non_preemptible);
        let group = match workload {
            _ if is_leaving => Some(self.leaving),
            _ if values.is_exempt || is_overdue || is_non_preemptible => Some(self.exempt),
            workload => workload.map(|it| it.group),
        };
        entry.id = self.cluster.set_pod(MemberSpec {
            pod: PodSpec {
                namespace,
                name,
                host: Some(values.host),
                shape: values.shape,
                labels: values.labels.clone(),
                priority: values.priority,
                preemption: values.preemption,
                started_at_ns: values.started_at_ns,
                is_terminating: is_leaving,
            },
            group,
            nominated: None,
            is_preempted: is_leaving,
            // The disruption has happened already: no budget is charged for it again.
            has_budgets: !is_leaving,
        });
        is_leaving
    }

    /// Adds reservations of a workload.
    pub(super) fn add_reservations(
        &mut self,
        key: &str,
        reservations: impl Iterator<Item = Reservation>,
    ) {
        let Some(entry) = self.workloads.get_mut(key) else {
            return;
        };
        let is_evicted = entry.properties.is_evicted;
        let group = if is_evicted {
            self.leaving
        } else if entry.properties.is_non_preemptible {
            self.exempt
        } else {
            entry.group
        };
        for reservation in reservations {
            self.changed.add(reservation.host);
            let id = self.cluster.set_pod(MemberSpec {
                pod: PodSpec {
                    namespace: split_key(key).0,
                    name: &reservation.name,
                    host: Some(reservation.host),
                    shape: reservation.shape,
                    labels: reservation.labels.clone(),
                    priority: entry.properties.priority,
                    preemption: PodPreemption::default(),
                    started_at_ns: None,
                    is_terminating: is_evicted,
                },
                group: Some(group),
                nominated: None,
                is_preempted: is_evicted,
                has_budgets: false,
            });
            entry.reservations.insert(reservation, id);
        }
    }

    /// Removes the reservations of a workload, and returns them.
    pub(super) fn take_reservations(&mut self, key: &str) -> Vec<Reservation> {
        let entry = self.workloads.get_mut(key);
        let reservations = entry.map(|it| std::mem::take(&mut it.reservations));
        let reservations = reservations.unwrap_or_default().into_iter();
        let removed = reservations.map(|(reservation, id)| {
            self.changed.add(reservation.host);
            self.cluster.remove_pod(id);
            reservation
        });
        removed.collect()
    }

    /// The keys of the bound pods of a workload that are not about to terminate.
    pub(super) fn running_pods(&self, workload: &str) -> Vec<String> {
        let Some(entry) = self.workloads.get(workload) else {
            return Vec::new();
        };
        let is_running = |key: &&String| {
            let pod = self.pods.get(*key);
            pod.is_some_and(|it| !it.values.is_terminating)
        };
        let pods = entry.pods.iter().filter(is_running);
        pods.filter(|_| !entry.properties.is_evicted)
            .cloned()
            .collect()
    }

    /// Replaces a reservation of a workload with its bound pod: one on the node of the pod, else one with the same
    /// requests, else any. Costs the reservations of the workload.
    pub(super) fn replace_reservation(&mut self, workload: &str, pod: &str) {
        let Some(pod) = self.pods.get(pod).map(|it| &it.values) else {
            return;
        };
        let Some(entry) = self.workloads.get_mut(workload) else {
            return;
        };
        let cluster = self.cluster.cluster();
        let requests = &cluster.shape_of(pod.shape).requests;
        let reservations = entry.reservations.keys();
        // The shapes may differ in tolerations that the API server adds to pods.
        let best = reservations.max_by_key(|it| {
            let is_same = cluster.shape_of(it.shape).requests == *requests;
            // `Reverse`: the first of equals.
            (it.host == pod.host, is_same, std::cmp::Reverse(*it))
        });
        let Some(best) = best.cloned() else {
            return;
        };
        let is_moved = best.host != pod.host;
        if let Some(id) = entry.reservations.remove(&best) {
            self.changed.add(best.host);
            self.cluster.remove_pod(id);
        }
        // The reserved node has more room.
        if is_moved {
            self.grow_revision();
        }
    }
}

fn remove_from_index(
    index: &mut BTreeMap<OwnerKey, BTreeSet<String>>,
    owner: &OwnerKey,
    key: &str,
) {
    if let Some(keys) = index.get_mut(owner) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(owner);
        }
    }
}

/// A group of single pods with a priority for scheduling and preemption. No object has a name with a slash.
fn set_single_pods(cluster: &mut GangCluster, name: &str, priority: i32) -> GroupId {
    cluster.set_group(&GroupSpec {
        priority: Some(priority),
        ..pod_group("", name)
    })
}

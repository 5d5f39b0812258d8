//! The observer: takes the changes of objects, and compares decisions.

use crate::change::{Change, ObjectKind};
use crate::history::{Entry, admitted_s, end_of_second_ms, preempted_s, written_s};
use crate::known_state::apply;
use crate::missing_decisions::MissingDecisions;
use crate::pending_index::PendingIndex;
use crate::preemptors::Preemptors;
use crate::queue_objects::QueueObjects;
use crate::queue_trees::QueueTrees;
use crate::report::{Difference, Report, rfc3339};
use crate::settings::ObserveSettings;
use crate::unchecked_decisions::{DecidedChange, UncheckedDecisions};
use crate::workload_facts::{has_quota, is_pending, preempted, uid};
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::pod_default_objects::{
    remove_limit_range, remove_runtime_class, set_limit_range, set_runtime_class,
};
use lockkeeper_cluster_state::{ClusterState, Completeness, PreemptionMessage, workload_key};
use lockkeeper_explain::{KueueObject, ReadKueueObject};
use lockkeeper_preemption::{Compatibility, Damping};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The most decisions that a poll compares, so that changes are taken in between.
const COMPARED_MAX: usize = 4;

/// Compares the decisions of a live Kueue with those of the core.
#[derive(Clone, Debug)]
pub struct Observer {
    pub(crate) settings: ObserveSettings,
    /// The queues, and the workloads with quota before the history.
    pub(crate) base: ClusterState,
    pub(crate) trees: QueueTrees,
    pub(crate) pending: PendingIndex,
    pub(crate) workloads: BTreeMap<Arc<str>, Arc<Workload>>,
    /// The keys of the workloads by uid.
    pub(crate) keys: BTreeMap<String, Arc<str>>,
    pub(crate) history: VecDeque<Entry>,
    pub(crate) preemptors: Preemptors,
    pub(crate) queue_objects: QueueObjects,
    /// The fields of objects that are not considered, by kind and name.
    pub(crate) not_considered: BTreeMap<(ObjectKind, String), Vec<String>>,
    pub(crate) unchecked: UncheckedDecisions,
    pub(crate) missing: MissingDecisions,
    /// Since when decisions are compared, in milliseconds since 1970.
    pub(crate) started_ms: Option<i64>,
    /// The last change of queues, cohorts and flavors.
    pub(crate) queues_changed_ms: i64,
    /// When a watch last delivered a change too late.
    pub(crate) late_until_ms: i64,
    /// The last change that the history does not have any more because it has too many.
    pub(crate) dropped_until_ms: i64,
    pub(crate) next_seq: u64,
    pub(crate) report: Report,
}

impl Observer {
    /// Creates an observer without objects.
    #[must_use]
    pub fn new(settings: ObserveSettings) -> Self {
        let mut options = settings.options.clone();
        options.compatibility = Compatibility::Kueue;
        options.damping = Damping::Off;
        let mut base = ClusterState::new(options, settings.requeue.clone(), Completeness::Complete);
        base.exclude_resources(settings.excluded_resource_prefixes.clone());
        // As Kueue, whose reservations in memory have nanoseconds: a new one is the newest of its second.
        base.state_mut().treat_new_as_newest();
        Self {
            report: Report {
                not_considered: settings.not_considered.clone(),
                ..Report::default()
            },
            settings,
            base,
            trees: QueueTrees::default(),
            pending: PendingIndex::default(),
            workloads: BTreeMap::new(),
            keys: BTreeMap::new(),
            history: VecDeque::new(),
            preemptors: Preemptors::default(),
            queue_objects: QueueObjects::default(),
            not_considered: BTreeMap::new(),
            unchecked: UncheckedDecisions::default(),
            missing: MissingDecisions::default(),
            started_ms: None,
            queues_changed_ms: i64::MIN,
            late_until_ms: i64::MIN,
            dropped_until_ms: i64::MIN,
            next_seq: 0,
        }
    }

    /// Begins the comparison: all lists are complete.
    pub fn start(&mut self, now_ms: i64) {
        if self.started_ms.is_none() {
            self.started_ms = Some(now_ms);
            self.report.since = Some(rfc3339(now_ms.div_euclid(1000)));
            self.rebuild_pending();
            let waiting = self.workloads.values();
            let waiting = waiting
                .filter_map(|it| self.preemptor_of(it))
                .collect::<Vec<_>>();
            for key in waiting {
                self.preemptors.record(&key);
            }
        }
    }

    /// Counts an object that cannot be read.
    pub const fn count_unreadable(&mut self) {
        self.report.unreadable = self.report.unreadable.saturating_add(1);
    }

    /// Takes a change that a watch has delivered at `now_ms`, in milliseconds since 1970.
    pub fn apply(&mut self, now_ms: i64, change: Change) {
        match change {
            Change::Applied(read) => self.apply_object(now_ms, read),
            Change::Deleted {
                kind,
                namespace,
                name,
            } => self.delete_object(now_ms, kind, &namespace, &name),
        }
    }

    /// Compares decisions that have settled, and returns the new differences. Compares the rest next time if there are many.
    pub fn poll(&mut self, now_ms: i64) -> Vec<Difference> {
        let mut found = Vec::new();
        for _ in 0..COMPARED_MAX {
            let settle_ms = self.settings.settle_ms;
            let Some(decision) = self.unchecked.take_settled(now_ms, settle_ms) else {
                break;
            };
            found.extend(self.compare(&decision));
        }
        found.extend(self.compare_missing(now_ms));
        self.prune(now_ms);
        found
    }

    /// Whether decisions have settled that the next poll compares.
    #[must_use]
    pub fn is_behind(&self, now_ms: i64) -> bool {
        let settled = self.unchecked.settled(now_ms, self.settings.settle_ms);
        settled.is_some()
    }

    /// The results so far.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            waiting: self.unchecked.len(),
            ..self.report.clone()
        }
    }

    fn apply_object(&mut self, now_ms: i64, read: ReadKueueObject) {
        if let KueueObject::Workload(workload) = read.object {
            let key: Arc<str> = Arc::from(workload_key(&workload));
            self.set_not_considered(ObjectKind::Workload, &key, read.not_considered);
            self.apply_workload(now_ms, key, workload);
            return;
        }
        let (kind, name) = identity(&read.object);
        self.set_not_considered(kind, &name, read.not_considered);
        if !self.queue_objects.update(kind, &name, &read.object) {
            return;
        }
        let base = &mut self.base;
        match read.object {
            // An invalid queue keeps its state: the API server has rejected it.
            KueueObject::ClusterQueue(queue) => drop(base.set_cluster_queue(queue)),
            KueueObject::Cohort(cohort) => drop(base.set_cohort(&cohort)),
            KueueObject::ResourceFlavor(flavor) => base.set_resource_flavor(&flavor),
            KueueObject::LocalQueue(queue) => base.set_local_queue(&queue),
            KueueObject::PriorityClass(class) => base.set_priority_class(&class),
            KueueObject::Namespace(namespace) => {
                base.set_namespace(&name, namespace.metadata.labels.unwrap_or_default());
            }
            KueueObject::LimitRange(limit_range) => set_limit_range(base, &limit_range),
            KueueObject::RuntimeClass(class) => set_runtime_class(base, &class),
            KueueObject::Workload(_) => {}
        }
        self.note_queue_change(now_ms, kind);
    }

    fn delete_object(&mut self, now_ms: i64, kind: ObjectKind, namespace: &str, name: &str) {
        let key = if namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{namespace}/{name}")
        };
        self.queue_objects.remove(kind, &key);
        self.not_considered.remove(&(kind, key.clone()));
        let base = &mut self.base;
        match kind {
            ObjectKind::Workload => {
                self.delete_workload(now_ms, &key);
                return;
            }
            ObjectKind::ClusterQueue => base.remove_cluster_queue(name),
            ObjectKind::Cohort => base.remove_cohort(name),
            ObjectKind::ResourceFlavor => base.remove_resource_flavor(name),
            ObjectKind::LocalQueue => base.remove_local_queue(namespace, name),
            ObjectKind::PriorityClass => base.remove_priority_class(name),
            ObjectKind::Namespace => base.remove_namespace(name),
            ObjectKind::LimitRange => remove_limit_range(base, namespace, name),
            ObjectKind::RuntimeClass => remove_runtime_class(base, name),
        }
        self.note_queue_change(now_ms, kind);
    }

    fn set_not_considered(&mut self, kind: ObjectKind, name: &str, fields: Vec<String>) {
        let key = (kind, name.to_owned());
        if fields.is_empty() {
            self.not_considered.remove(&key);
        } else {
            self.not_considered.insert(key, fields);
        }
    }

    fn note_queue_change(&mut self, now_ms: i64, kind: ObjectKind) {
        self.trees.reset();
        if self.started_ms.is_none() {
            return;
        }
        self.queues_changed_ms = now_ms;
        // Other objects do not decide in which ClusterQueue a workload waits.
        if kind == ObjectKind::LocalQueue {
            self.rebuild_pending();
        }
    }

    fn apply_workload(&mut self, now_ms: i64, key: Arc<str>, after: Arc<Workload>) {
        let before = self.workloads.insert(Arc::clone(&key), Arc::clone(&after));
        if let Some(before) = &before
            && before.metadata.resource_version == after.metadata.resource_version
        {
            return;
        }
        if !uid(&after).is_empty() {
            self.keys.insert(uid(&after).to_owned(), Arc::clone(&key));
        }
        if self.started_ms.is_none() {
            self.set_base_version(&key, Some(&after));
            return;
        }
        let old = before.as_deref();
        let admitted = admitted_s(old, &after);
        let preempted = preempted_s(old, &after);
        let seq = self.next_seq;
        let queue = self.queue_of(&after);
        let change = DecidedChange {
            at_ms: now_ms,
            seq,
            key: &key,
            version: &after,
        };
        if let Some(second) = admitted {
            self.unchecked.add_admission(&change, &queue, second);
        }
        let mut decided_on = Arc::clone(&key);
        if let Some(second) = preempted
            && let Some(preemptor) = self.preemptor_of(&after)
        {
            decided_on = Arc::clone(&preemptor);
            let known = self.workloads.get(&preemptor);
            let queue = known.map_or_else(|| Arc::from(""), |it| self.queue_of(it));
            self.unchecked
                .add_preemption(&change, &preemptor, &queue, second);
        }
        self.missing.forget(&key);
        let decided_s = admitted.or(preempted);
        let written = written_s(old, &after);
        let earliest = decided_s.or(written);
        let written_ms = written.map(end_of_second_ms);
        let at_ms = match written_ms.filter(|_| decided_s.is_none()) {
            Some(written_ms) => {
                if now_ms.saturating_sub(written_ms) > self.settings.lag_ms {
                    self.late_until_ms = now_ms;
                }
                written_ms.min(now_ms)
            }
            None => now_ms,
        };
        let earliest_ms = earliest.map(|it| it.saturating_mul(1000));
        self.push(Entry {
            delivered_ms: now_ms,
            at_ms,
            earliest_ms: earliest_ms.unwrap_or_else(|| self.earliest_ms(now_ms)),
            seq,
            key,
            before,
            after: Some(after),
            queue,
            decided_s,
            decided_on,
        });
    }

    fn delete_workload(&mut self, now_ms: i64, key: &str) {
        let Some((key, before)) = self.workloads.remove_entry(key) else {
            return;
        };
        self.keys.remove(uid(&before));
        if self.started_ms.is_none() {
            self.set_base_version(&key, None);
            return;
        }
        let entry = Entry {
            delivered_ms: now_ms,
            at_ms: now_ms,
            earliest_ms: self.earliest_ms(now_ms),
            seq: self.next_seq,
            queue: self.queue_of(&before),
            decided_on: Arc::clone(&key),
            key,
            before: Some(before),
            after: None,
            decided_s: None,
        };
        self.push(entry);
    }

    /// The earliest time at which a change without a time was written that is delivered now.
    const fn earliest_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.settings.lag_ms)
    }

    fn push(&mut self, entry: Entry) {
        self.next_seq = self.next_seq.saturating_add(1);
        self.history.push_back(entry);
        if self.history.len() > self.settings.changes_max
            && let Some(oldest) = self.history.pop_front()
        {
            self.dropped_until_ms = oldest.at_ms;
            self.end_entry(&oldest);
        }
    }

    /// The workload for which another was preempted.
    fn preemptor_of(&self, victim: &Workload) -> Option<Arc<str>> {
        let uid = PreemptionMessage::parse(&preempted(victim)?.message).uid?;
        self.keys.get(uid).map(Arc::clone)
    }

    /// The ClusterQueue of a workload; empty if it is in none.
    pub(crate) fn queue_of(&self, workload: &Workload) -> Arc<str> {
        let status = workload.status.as_ref();
        if let Some(admission) = status.and_then(|it| it.admission.as_ref()) {
            return Arc::from(admission.cluster_queue.as_str());
        }
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        let name = workload.spec.queue_name.as_deref().unwrap_or_default();
        let queue = self.base.objects().local_queue(namespace, name);
        Arc::from(queue.map_or("", |it| it.cluster_queue.as_str()))
    }

    /// Makes a version of a workload that of the state before the history.
    fn set_base_version(&mut self, key: &Arc<str>, version: Option<&Arc<Workload>>) {
        let with_quota = version.filter(|it| has_quota(it));
        apply(&mut self.base, key, with_quota);
        match version.filter(|it| is_pending(it)) {
            Some(version) => self.insert_pending(key, version),
            None => self.pending.remove(key),
        }
    }

    fn insert_pending(&mut self, key: &Arc<str>, workload: &Arc<Workload>) {
        let lifecycle = self.base.lifecycle_state(workload);
        let order_ms = lifecycle.order_time_ms(&self.settings.requeue);
        let queue = self.queue_of(workload);
        self.pending.insert(key, &queue, workload, order_ms);
    }

    /// Sorts the pending workloads into their queues again.
    fn rebuild_pending(&mut self) {
        let mut versions: BTreeMap<Arc<str>, Option<Arc<Workload>>> = BTreeMap::new();
        for entry in &self.history {
            let version = versions.entry(Arc::clone(&entry.key));
            version.or_insert_with(|| entry.before.clone());
        }
        for (key, workload) in &self.workloads {
            let version = versions.entry(Arc::clone(key));
            version.or_insert_with(|| Some(Arc::clone(workload)));
        }
        self.pending = PendingIndex::default();
        for (key, version) in versions {
            if let Some(version) = version.filter(|it| is_pending(it)) {
                self.insert_pending(&key, &version);
            }
        }
    }

    /// Drops changes that no comparison needs any more.
    fn prune(&mut self, now_ms: i64) {
        let oldest_ms = self.unchecked.oldest_ms();
        let needed_ms = oldest_ms.map_or(now_ms, |it| it.min(now_ms));
        let begin_ms = needed_ms.saturating_sub(self.settings.history_ms);
        while let Some(oldest) = self.history.front()
            && oldest.at_ms < begin_ms
            && let Some(oldest) = self.history.pop_front()
        {
            self.end_entry(&oldest);
        }
    }

    /// Makes a change part of the state before the history.
    fn end_entry(&mut self, entry: &Entry) {
        self.set_base_version(&entry.key, entry.after.as_ref());
        if entry.decided_on != entry.key {
            self.preemptors.record(&entry.decided_on);
        } else if entry.decided_s.is_some() || entry.after.is_none() {
            self.preemptors.remove(&entry.key);
        }
    }
}

/// The kind of an object, and its name: with its namespace, if it has one.
fn identity(object: &KueueObject) -> (ObjectKind, String) {
    let (kind, metadata) = match object {
        KueueObject::ClusterQueue(it) => (ObjectKind::ClusterQueue, &it.metadata),
        KueueObject::Cohort(it) => (ObjectKind::Cohort, &it.metadata),
        KueueObject::ResourceFlavor(it) => (ObjectKind::ResourceFlavor, &it.metadata),
        KueueObject::LocalQueue(it) => (ObjectKind::LocalQueue, &it.metadata),
        KueueObject::PriorityClass(it) => (ObjectKind::PriorityClass, &it.metadata),
        KueueObject::Namespace(it) => (ObjectKind::Namespace, &it.metadata),
        KueueObject::LimitRange(it) => (ObjectKind::LimitRange, &it.metadata),
        KueueObject::RuntimeClass(it) => (ObjectKind::RuntimeClass, &it.metadata),
        KueueObject::Workload(it) => (ObjectKind::Workload, &it.metadata),
    };
    let name = metadata.name.as_deref().unwrap_or_default();
    let name = match &metadata.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    (kind, name)
}

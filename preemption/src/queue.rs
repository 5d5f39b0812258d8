//! The pending workloads of a ClusterQueue, in queue order.
//!
//! Source: Kueue `pkg/cache/queue/cluster_queue.go`. A workload is in one of three places: **active**,
//! where the head is taken from; **inadmissible**, until something changes that may help it; or
//! **backing off**, until its backoff ends. Order: the sticky preemptor (`BestEffortFIFO` only), then higher
//! priority, then earlier in queue order, then uid.

use crate::backfill::Backfill;
use crate::ids::{ResourceId, WorkloadId};
use crate::job::{ElasticDefaults, PreemptionLabels};
use crate::non_preemptible::NonPreemptibleUsage;
use crate::policy::{FlavorFungibility, Preemption, QueueingStrategy};
use crate::quota::ResourceGroup;
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of inadmissible classes up to which unknown ones stay.
const UNCHECKED_CLASSES_MAX: usize = 64;

/// The settings of a ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QueueSettings {
    /// Whether the queue exists. Workloads may refer to a missing queue.
    pub(crate) is_declared: bool,
    pub(crate) groups: Vec<ResourceGroup>,
    pub(crate) preemption: Preemption,
    pub(crate) fungibility: FlavorFungibility,
    pub(crate) strategy: QueueingStrategy,
    /// Only of a `StrictFIFO` queue that is not elastic.
    pub(crate) backfill: Option<Backfill>,
    /// The defaults of an elastic queue.
    pub(crate) elastic: Option<ElasticDefaults>,
    /// False if it is stopped or one of its flavors is missing: then it admits nothing.
    pub(crate) is_active: bool,
}

/// The sort key of the queue order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    pub(crate) priority: Reverse<i32>,
    pub(crate) order_time: i64,
    /// Compared as bytes.
    pub(crate) uid: Arc<str>,
    pub(crate) id: WorkloadId,
}

/// Scheduling-equivalent workloads: equal pod sets, priority and preemption labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EquivalenceClass {
    pub(crate) pod_sets_id: u64,
    pub(crate) priority: i32,
    pub(crate) labels: PreemptionLabels,
    /// Whether the namespace selector matches them. A class out of scope is inadmissible if the same class in scope is, but
    /// nothing makes its workloads active again.
    pub(crate) is_in_scope: bool,
}

impl EquivalenceClass {
    fn with_scope(self, is_in_scope: bool) -> EquivalenceClass {
        EquivalenceClass {
            is_in_scope,
            ..self
        }
    }
}

/// The last flavors that were tried for a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastAssignment {
    pub(crate) tried_flavors: Vec<(usize, ResourceId, usize)>,
    /// The cycle of that search.
    pub(crate) cycle: u64,
    /// The queue's generation at that time.
    pub(crate) generation: u64,
}

/// The queued workloads of one class. The first is stored apart, since most classes have only one.
#[derive(Clone, Debug)]
struct ClassQueue {
    first: QueueKey,
    rest: BTreeSet<QueueKey>,
}

impl ClassQueue {
    fn contains(&self, key: &QueueKey) -> bool {
        self.first == *key || self.rest.contains(key)
    }

    fn keys(&self) -> impl Iterator<Item = &QueueKey> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

/// The pending workloads of one ClusterQueue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Shared by copies of the queue.
    pub(crate) settings: Arc<QueueSettings>,
    /// Workloads in scope without backoff. All of a class are active or all are inadmissible: if one fails
    /// at the head, all would, and moving a whole class costs one step.
    class_queues: BTreeMap<EquivalenceClass, ClassQueue>,
    /// The first workload of each active class, with its class.
    heads: BTreeMap<QueueKey, EquivalenceClass>,
    /// Classes of which a workload failed at the head, without a change since. All are in scope.
    inadmissible_classes: BTreeSet<EquivalenceClass>,
    /// The number of inadmissible classes above which unknown ones are dropped.
    classes_kept_max: usize,
    /// The number of workloads in `class_queues`.
    queued_count: usize,
    /// Workloads that the namespace selector does not match. Nothing reactivates them.
    out_of_scope: BTreeSet<QueueKey>,
    backing_off: BTreeSet<(i64, QueueKey)>,
    /// The last preemptor that waited for its victims.
    sticky: Option<(QueueKey, EquivalenceClass)>,
    /// The usage of non-preemptible workloads, if the queue is elastic and has any.
    pub(crate) non_preemptible: Option<Box<NonPreemptibleUsage>>,
    /// Rises when quota of the queue may have become free.
    pub(crate) generation: u64,
}

impl Queue {
    /// Adds a workload to its class.
    pub(crate) fn push(&mut self, key: QueueKey, class: EquivalenceClass) {
        // As in Kueue, a new workload of an inadmissible class is inadmissible immediately.
        let is_open = !self.inadmissible_classes.contains(&class.with_scope(true));
        if !is_open && !class.is_in_scope {
            self.out_of_scope.insert(key);
            return;
        }
        match self.class_queues.entry(class) {
            Entry::Vacant(entry) => {
                if is_open {
                    self.heads.insert(key.clone(), class);
                }
                let rest = BTreeSet::new();
                entry.insert(ClassQueue { first: key, rest });
            }
            Entry::Occupied(entry) => {
                let class_queue = entry.into_mut();
                if class_queue.contains(&key) {
                    return;
                }
                if key < class_queue.first {
                    let later = std::mem::replace(&mut class_queue.first, key.clone());
                    if is_open {
                        self.heads.remove(&later);
                        self.heads.insert(key, class);
                    }
                    class_queue.rest.insert(later);
                } else {
                    class_queue.rest.insert(key);
                }
            }
        }
        self.queued_count = self.queued_count.saturating_add(1);
    }

    /// Removes a workload from its `class_queue`; returns whether it was there.
    fn remove_from_class(&mut self, key: &QueueKey, class: EquivalenceClass) -> bool {
        let Entry::Occupied(mut entry) = self.class_queues.entry(class) else {
            return false;
        };
        let class_queue = entry.get_mut();
        if class_queue.first == *key {
            // `heads` contains the first workloads of active classes only.
            let is_open = self.heads.remove(key).is_some();
            match class_queue.rest.pop_first() {
                Some(next) => {
                    class_queue.first = next.clone();
                    if is_open {
                        self.heads.insert(next, class);
                    }
                }
                None => drop(entry.remove()),
            }
        } else if !class_queue.rest.remove(key) {
            return false;
        }
        self.queued_count = self.queued_count.saturating_sub(1);
        true
    }

    pub(crate) fn push_backing_off(&mut self, until_s: i64, key: QueueKey) {
        self.backing_off.insert((until_s, key));
    }

    /// Makes an inadmissible workload and its class active.
    pub(crate) fn reactivate_class_of(&mut self, key: &QueueKey, class: EquivalenceClass) {
        let class_queue = self.class_queues.get(&class);
        if class_queue.is_some_and(|class_queue| class_queue.contains(key)) {
            self.reactivate_class(class);
        }
    }

    /// Drops inadmissible classes whose pod sets are not known any more: their ids are never used again. Costs constant
    /// time on average, since it runs only when the number of classes has doubled.
    pub(crate) fn drop_unknown_classes(&mut self, is_known: impl Fn(u64) -> bool) {
        if self.inadmissible_classes.len() > self.classes_kept_max.max(UNCHECKED_CLASSES_MAX) {
            self.inadmissible_classes
                .retain(|class| is_known(class.pod_sets_id));
            self.classes_kept_max = self.inadmissible_classes.len().saturating_mul(2);
        }
    }

    /// Returns the number of inadmissible classes, including those without a workload.
    pub(crate) fn inadmissible_class_count(&self) -> usize {
        self.inadmissible_classes.len()
    }

    /// Makes a class inadmissible.
    pub(crate) fn mark_inadmissible(&mut self, class: EquivalenceClass) {
        if self.inadmissible_classes.insert(class)
            && let Some(class_queue) = self.class_queues.get(&class)
        {
            self.heads.remove(&class_queue.first);
        }
        if let Some(class_queue) = self.class_queues.remove(&class.with_scope(false)) {
            self.heads.remove(&class_queue.first);
            let moved = class_queue.rest.len().saturating_add(1);
            self.queued_count = self.queued_count.saturating_sub(moved);
            self.out_of_scope.extend(class_queue.rest);
            self.out_of_scope.insert(class_queue.first);
        }
    }

    fn reactivate_class(&mut self, class: EquivalenceClass) {
        if self.inadmissible_classes.remove(&class)
            && let Some(class_queue) = self.class_queues.get(&class)
        {
            self.heads.insert(class_queue.first.clone(), class);
        }
    }

    /// Makes all inadmissible classes active. Costs one step per class.
    pub(crate) fn reactivate(&mut self) {
        for class in std::mem::take(&mut self.inadmissible_classes) {
            if let Some(class_queue) = self.class_queues.get(&class) {
                self.heads.insert(class_queue.first.clone(), class);
            }
        }
    }

    /// Removes a workload, whether it is active, inadmissible, backing off or out of scope.
    pub(crate) fn remove(
        &mut self,
        key: &QueueKey,
        class: EquivalenceClass,
        backoff_until_s: Option<i64>,
    ) {
        self.remove_from_class(key, class);
        self.out_of_scope.remove(key);
        if let Some(until_s) = backoff_until_s {
            self.backing_off.remove(&(until_s, key.clone()));
        }
    }

    /// Clears the sticky preemptor if it is this workload.
    pub(crate) fn clear_sticky(&mut self, id: WorkloadId) {
        if self.is_sticky(id) {
            self.sticky = None;
        }
    }

    /// Sets the preemptor that waits for its victims.
    pub(crate) fn set_sticky(&mut self, key: QueueKey, class: EquivalenceClass) {
        self.sticky = Some((key, class));
    }

    /// The sticky preemptor.
    pub(crate) fn sticky(&self) -> Option<WorkloadId> {
        self.sticky.as_ref().map(|(key, _)| key.id)
    }

    pub(crate) fn is_sticky(&self, id: WorkloadId) -> bool {
        let sticky = self.sticky.as_ref();
        sticky.is_some_and(|(key, _)| key.id == id)
    }

    /// The sticky preemptor, if it is active and comes first.
    fn sticky_head(&self) -> Option<&(QueueKey, EquivalenceClass)> {
        // In Kueue the sticky preemptor does not affect the order of a `StrictFIFO` queue.
        if self.settings.strategy != QueueingStrategy::BestEffortFifo {
            return None;
        }
        let sticky = self.sticky.as_ref()?;
        let (key, class) = sticky;
        // An inadmissible one stays sticky and is first again when it becomes active (Kueue).
        self.is_active(key, *class).then_some(sticky)
    }

    /// Returns an active workload that comes ahead of all others, unless the queue is `StrictFIFO`.
    pub(crate) fn preferred_head(
        &self,
        key: &QueueKey,
        class: EquivalenceClass,
    ) -> Option<WorkloadId> {
        let is_strict = self.settings.strategy == QueueingStrategy::StrictFifo;
        (!is_strict && self.is_active(key, class)).then_some(key.id)
    }

    /// Returns the head. It stays in the queue: only an admission or a failure moves it.
    pub(crate) fn head(&self) -> Option<WorkloadId> {
        let sticky = self.sticky_head().map(|(key, _)| key);
        let first = || self.heads.first_key_value().map(|(key, _)| key);
        sticky.or_else(first).map(|key| key.id)
    }

    /// Moves a head that the namespace selector does not match.
    pub(crate) fn move_out_of_scope(&mut self, key: QueueKey, class: EquivalenceClass) {
        self.remove_from_class(&key, class);
        self.out_of_scope.insert(key);
    }

    /// Requeues the workloads with an expired backoff.
    pub(crate) fn requeue_expired_backoffs(
        &mut self,
        now_s: i64,
        mut class: impl FnMut(WorkloadId) -> Option<EquivalenceClass>,
    ) -> Vec<WorkloadId> {
        let mut released = Vec::new();
        while let Some((until_s, _)) = self.backing_off.first()
            && *until_s <= now_s
            && let Some((_, key)) = self.backing_off.pop_first()
        {
            released.push(key.id);
            if let Some(class) = class(key.id) {
                self.push(key, class);
            }
        }
        released
    }

    /// The keys of the inadmissible classes, or of the active ones.
    fn class_keys(&self, are_inadmissible: bool) -> BTreeSet<&QueueKey> {
        let class_queues = self.class_queues.iter();
        let class_queues = class_queues
            .filter(|(class, _)| self.inadmissible_classes.contains(class) == are_inadmissible);
        class_queues
            .flat_map(|(_, class_queue)| class_queue.keys())
            .collect()
    }

    /// Returns the number of classes with active workloads.
    pub(crate) fn active_class_count(&self) -> usize {
        self.heads.len()
    }

    /// Returns whether a workload is active.
    pub(crate) fn is_active(&self, key: &QueueKey, class: EquivalenceClass) -> bool {
        let class_queue = self.class_queues.get(&class);
        class_queue.is_some_and(|it| it.contains(key))
            && !self.inadmissible_classes.contains(&class)
    }

    /// The active workloads in queue order.
    pub(crate) fn active(&self) -> Vec<WorkloadId> {
        self.with_sticky_first(self.class_keys(false))
    }

    /// The active and inadmissible workloads in queue order.
    pub(crate) fn pending(&self) -> Vec<WorkloadId> {
        let mut order = self.class_keys(false);
        order.extend(self.class_keys(true));
        order.extend(&self.out_of_scope);
        self.with_sticky_first(order)
    }

    /// The number of pending workloads in front of one of this key, at most `max`; those out of scope do not count. Costs the
    /// result and the number of classes.
    pub(crate) fn count_ahead(&self, key: &QueueKey, max: usize) -> usize {
        let sticky = self.sticky_head().is_some_and(|(it, _)| it > key);
        let mut ahead = usize::from(sticky);
        for class_queue in self.class_queues.values() {
            if ahead >= max {
                break;
            }
            let keys = class_queue.keys().take_while(|it| *it < key);
            let left = max.saturating_sub(ahead);
            ahead = ahead.saturating_add(keys.take(left).count());
        }
        ahead.min(max)
    }

    fn with_sticky_first(&self, order: BTreeSet<&QueueKey>) -> Vec<WorkloadId> {
        let mut order: Vec<_> = order.into_iter().map(|key| key.id).collect();
        if let Some((sticky, _)) = self.sticky_head()
            && let Some(at) = order.iter().position(|id| *id == sticky.id)
            && let Some(first) = order.get_mut(..=at)
        {
            // Moves the sticky preemptor to the front; the order of the others stays.
            first.rotate_right(1);
        }
        order
    }

    /// The inadmissible workloads in queue order.
    pub(crate) fn inadmissible(&self) -> Vec<WorkloadId> {
        let mut order = self.class_keys(true);
        order.extend(&self.out_of_scope);
        order.into_iter().map(|key| key.id).collect()
    }

    /// Returns the number of active and inadmissible workloads, and of those in backoff.
    pub(crate) fn pending_counts(&self) -> (usize, usize) {
        let queued = self.queued_count.saturating_add(self.out_of_scope.len());
        (queued, self.backing_off.len())
    }

    /// Returns the earliest end of a backoff, in seconds.
    pub(crate) fn next_backoff_end_s(&self) -> Option<i64> {
        self.backing_off.first().map(|(until_s, _)| *until_s)
    }

    /// The workloads in backoff, the earliest end first.
    pub(crate) fn backing_off(&self) -> Vec<WorkloadId> {
        self.backing_off.iter().map(|(_, key)| key.id).collect()
    }
}

/// The first `max` active workloads behind one of this key, in queue order. Costs their number times its logarithm.
pub(crate) fn active_behind(queue: &Queue, key: &QueueKey, max: usize) -> Vec<QueueKey> {
    // The first `max` workloads are in the `max` classes that begin first; one more for the class of `key`.
    let classes = queue.heads.values().take(max.saturating_add(1));
    let mut open: BTreeMap<&QueueKey, _> = BTreeMap::new();
    for class_queue in classes.filter_map(|it| queue.class_queues.get(it)) {
        let mut keys = class_queue.keys();
        if let Some(first) = keys.next() {
            open.insert(first, keys);
        }
    }
    let mut behind = Vec::new();
    while behind.len() < max
        && let Some((next, mut keys)) = open.pop_first()
    {
        if next > key {
            behind.push(next.clone());
        }
        if let Some(later) = keys.next() {
            open.insert(later, keys);
        }
    }
    behind
}

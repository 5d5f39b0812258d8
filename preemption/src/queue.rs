//! The pending workloads of a ClusterQueue: who is next, and who steps aside.
//!
//! Source: Kueue `pkg/cache/queue/cluster_queue.go`. A workload is in one of three places: **active**,
//! where the head is taken from; **parked**, until something changes that could help it; or **held**
//! until its backoff is over. Order: the sticky preemptor (`BestEffortFIFO` only), then higher
//! priority, then earlier in queue order, then uid.

use crate::ids::{ResourceId, WorkloadId};
use crate::job::{ElasticDefaults, PreemptionLabels};
use crate::non_preemptible::NonPreemptibleUsage;
use crate::policy::{FlavorFungibility, Preemption, QueueingStrategy};
use crate::quota::ResourceGroup;
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a ClusterQueue's owner has set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QueueSettings {
    /// Whether there is such a queue. Workloads may name one that is not there.
    pub(crate) is_declared: bool,
    pub(crate) groups: Vec<ResourceGroup>,
    pub(crate) preemption: Preemption,
    pub(crate) fungibility: FlavorFungibility,
    pub(crate) strategy: QueueingStrategy,
    /// Of an elastic queue.
    pub(crate) elastic: Option<ElasticDefaults>,
    /// A queue that is not takes part in nothing: it is stopped, or one of its flavors is missing.
    pub(crate) is_active: bool,
}

/// The place of a workload in queue order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    pub(crate) priority: Reverse<i32>,
    pub(crate) order_time: i64,
    /// Compared as bytes.
    pub(crate) uid: Arc<str>,
    pub(crate) id: WorkloadId,
}

/// Workloads that fare alike: equal pod sets and priority, and they say the same.
pub(crate) type EquivalenceClass = (u64, i32, PreemptionLabels);

/// The last flavors that were looked at for a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastAssignment {
    pub(crate) tried_flavors: Vec<(usize, ResourceId, usize)>,
    /// The cycle in which that was.
    pub(crate) cycle: u64,
    /// The queue's generation then.
    pub(crate) generation: u64,
}

/// Those of one class that wait, the first apart: most classes have but one.
#[derive(Clone, Debug)]
struct ClassQueue {
    first: QueueKey,
    rest: BTreeSet<QueueKey>,
}

impl ClassQueue {
    fn contains(&self, place: &QueueKey) -> bool {
        self.first == *place || self.rest.contains(place)
    }

    fn keys(&self) -> impl Iterator<Item = &QueueKey> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Shared by copies of the queue.
    pub(crate) settings: Arc<QueueSettings>,
    /// Those in scope that are not held. Of a class all are active or all are parked: they fare alike, so
    /// that one in vain at the head speaks for all, and to park or revive a thousand costs one step.
    class_queues: BTreeMap<EquivalenceClass, ClassQueue>,
    /// The first of each class that is not parked.
    heads: BTreeSet<(QueueKey, EquivalenceClass)>,
    /// A workload of these stood at the head in vain; nothing has changed since.
    inadmissible_classes: BTreeSet<EquivalenceClass>,
    /// How many there are in `lines`.
    queued_count: usize,
    /// Those that the queue does not take. Nothing revives them.
    out_of_scope: BTreeSet<QueueKey>,
    backing_off: BTreeSet<(i64, QueueKey)>,
    /// The last workload that waited for its victims to go.
    sticky: Option<(QueueKey, EquivalenceClass)>,
    /// What the non-preemptible use and ask for, if the queue is elastic and has any.
    pub(crate) non_preemptible: Option<Box<NonPreemptibleUsage>>,
    /// Rises when quota of the queue may have become free.
    pub(crate) generation: u64,
}

impl Queue {
    /// It waits with those of its class.
    pub(crate) fn push(&mut self, place: QueueKey, class: EquivalenceClass) {
        let is_open = !self.inadmissible_classes.contains(&class);
        match self.class_queues.entry(class) {
            Entry::Vacant(entry) => {
                if is_open {
                    self.heads.insert((place.clone(), class));
                }
                let rest = BTreeSet::new();
                entry.insert(ClassQueue { first: place, rest });
            }
            Entry::Occupied(entry) => {
                let line = entry.into_mut();
                if line.contains(&place) {
                    return;
                }
                if place < line.first {
                    let later = std::mem::replace(&mut line.first, place.clone());
                    if is_open {
                        self.heads.remove(&(later.clone(), class));
                        self.heads.insert((place, class));
                    }
                    line.rest.insert(later);
                } else {
                    line.rest.insert(place);
                }
            }
        }
        self.queued_count = self.queued_count.saturating_add(1);
    }

    /// Takes one out of its line. Whether it was there.
    fn remove_from_class(&mut self, place: &QueueKey, class: EquivalenceClass) -> bool {
        let Entry::Occupied(mut entry) = self.class_queues.entry(class) else {
            return false;
        };
        let line = entry.get_mut();
        if line.first == *place {
            let head = (line.first.clone(), class);
            let is_open = self.heads.remove(&head);
            match line.rest.pop_first() {
                Some(next) => {
                    line.first = next.clone();
                    if is_open {
                        self.heads.insert((next, class));
                    }
                }
                None => drop(entry.remove()),
            }
        } else if !line.rest.remove(place) {
            return false;
        }
        self.queued_count = self.queued_count.saturating_sub(1);
        true
    }

    /// Parks one that the queue does not take.
    pub(crate) fn push_out_of_scope(&mut self, place: QueueKey) {
        self.out_of_scope.insert(place);
    }

    pub(crate) fn push_backing_off(&mut self, until_s: i64, place: QueueKey) {
        self.backing_off.insert((until_s, place));
    }

    /// Takes one back that was parked, with its class.
    pub(crate) fn reactivate_class_of(&mut self, place: &QueueKey, class: EquivalenceClass) {
        let line = self.class_queues.get(&class);
        if line.is_some_and(|line| line.contains(place)) {
            self.reactivate_class(class);
        }
    }

    /// Parks a class.
    pub(crate) fn mark_inadmissible(&mut self, class: EquivalenceClass) {
        if self.inadmissible_classes.insert(class)
            && let Some(line) = self.class_queues.get(&class)
        {
            self.heads.remove(&(line.first.clone(), class));
        }
    }

    fn reactivate_class(&mut self, class: EquivalenceClass) {
        if self.inadmissible_classes.remove(&class)
            && let Some(line) = self.class_queues.get(&class)
        {
            self.heads.insert((line.first.clone(), class));
        }
    }

    /// Moves back to active what was parked and is in scope. Costs what is moved, in classes.
    pub(crate) fn reactivate(&mut self) {
        for class in std::mem::take(&mut self.inadmissible_classes) {
            if let Some(line) = self.class_queues.get(&class) {
                self.heads.insert((line.first.clone(), class));
            }
        }
    }

    /// Takes a workload out, wherever it is.
    pub(crate) fn remove(
        &mut self,
        place: &QueueKey,
        class: EquivalenceClass,
        held_until_s: Option<i64>,
    ) {
        self.remove_from_class(place, class);
        self.out_of_scope.remove(place);
        if let Some(until_s) = held_until_s {
            self.backing_off.remove(&(until_s, place.clone()));
        }
    }

    /// A workload that left the queue for good is not waited for.
    pub(crate) fn clear_sticky(&mut self, id: WorkloadId) {
        if self.is_sticky(id) {
            self.sticky = None;
        }
    }

    /// Remembers the workload that waits for its victims to go.
    pub(crate) fn set_sticky(&mut self, place: QueueKey, class: EquivalenceClass) {
        self.sticky = Some((place, class));
    }

    pub(crate) fn is_sticky(&self, id: WorkloadId) -> bool {
        let sticky = self.sticky.as_ref();
        sticky.is_some_and(|(place, _)| place.id == id)
    }

    /// The remembered workload, if it is active and goes first.
    fn sticky_head(&self) -> Option<&(QueueKey, EquivalenceClass)> {
        if self.settings.strategy != QueueingStrategy::BestEffortFifo {
            return None;
        }
        let sticky = self.sticky.as_ref()?;
        let (place, class) = sticky;
        self.is_active(place, *class).then_some(sticky)
    }

    /// Takes an active workload out before all others, unless the queue keeps its order.
    pub(crate) fn pop_preferred(
        &mut self,
        place: &QueueKey,
        class: EquivalenceClass,
    ) -> Option<WorkloadId> {
        let is_strict = self.settings.strategy == QueueingStrategy::StrictFifo;
        if is_strict || self.inadmissible_classes.contains(&class) {
            return None;
        }
        self.remove_from_class(place, class).then_some(place.id)
    }

    /// Takes the head out.
    pub(crate) fn pop(&mut self) -> Option<WorkloadId> {
        let head = self.sticky_head().or_else(|| self.heads.first());
        let (place, class) = head?.clone();
        self.remove_from_class(&place, class);
        Some(place.id)
    }

    /// Moves to active what was held until now.
    pub(crate) fn requeue_expired_backoffs(
        &mut self,
        now_s: i64,
        mut class: impl FnMut(WorkloadId) -> EquivalenceClass,
    ) -> Vec<WorkloadId> {
        let mut released = Vec::new();
        while let Some((until_s, _)) = self.backing_off.first()
            && *until_s <= now_s
            && let Some((_, place)) = self.backing_off.pop_first()
        {
            released.push(place.id);
            let class = class(place.id);
            self.push(place, class);
        }
        released
    }

    /// The places of the classes that are parked, or of those that are not.
    fn class_keys(&self, are_parked: bool) -> BTreeSet<&QueueKey> {
        let lines = self.class_queues.iter();
        let lines =
            lines.filter(|(class, _)| self.inadmissible_classes.contains(class) == are_parked);
        lines.flat_map(|(_, line)| line.keys()).collect()
    }

    /// Whether one waits that is not parked.
    pub(crate) fn is_active(&self, place: &QueueKey, class: EquivalenceClass) -> bool {
        let line = self.class_queues.get(&class);
        line.is_some_and(|it| it.contains(place)) && !self.inadmissible_classes.contains(&class)
    }

    /// The active workloads in queue order.
    pub(crate) fn active(&self) -> Vec<WorkloadId> {
        let order = self.class_keys(false);
        let mut order: Vec<_> = order.into_iter().map(|place| place.id).collect();
        if let Some((sticky, _)) = self.sticky_head()
            && let Some(at) = order.iter().position(|id| *id == sticky.id)
            && let Some(first) = order.get_mut(..=at)
        {
            first.rotate_right(1);
        }
        order
    }

    /// The parked workloads in queue order.
    pub(crate) fn inadmissible(&self) -> Vec<WorkloadId> {
        let mut order = self.class_keys(true);
        order.extend(&self.out_of_scope);
        order.into_iter().map(|place| place.id).collect()
    }

    /// How many are active or parked, and how many are held.
    pub(crate) fn pending_counts(&self) -> (usize, usize) {
        let queued = self.queued_count.saturating_add(self.out_of_scope.len());
        (queued, self.backing_off.len())
    }

    /// When the first of the held workloads is held no longer.
    pub(crate) fn next_backoff_end_s(&self) -> Option<i64> {
        self.backing_off.first().map(|(until_s, _)| *until_s)
    }

    /// The held workloads, those first that are held the shortest.
    pub(crate) fn backing_off(&self) -> Vec<WorkloadId> {
        self.backing_off.iter().map(|(_, place)| place.id).collect()
    }
}

//! The pending workloads of a ClusterQueue: who is next, and who steps aside.
//!
//! Source: Kueue `pkg/cache/queue/cluster_queue.go`. A workload is in one of three places: **active**,
//! where the head is taken from; **parked**, until something changes that could help it; or **held**
//! until its backoff is over. Order: the sticky preemptor (`BestEffortFIFO` only), then higher
//! priority, then earlier in queue order, then uid.

use crate::names::{ResourceId, WorkloadId};
use crate::policy::{FlavorFungibility, Preemption, QueueingStrategy};
use crate::quota::ResourceGroup;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a ClusterQueue's owner has set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Whether there is such a queue. Workloads may name one that is not there.
    pub(crate) is_declared: bool,
    pub(crate) groups: Vec<ResourceGroup>,
    pub(crate) preemption: Preemption,
    pub(crate) fungibility: FlavorFungibility,
    pub(crate) strategy: QueueingStrategy,
    /// A queue that is not takes part in nothing: it is stopped, or one of its flavors is missing.
    pub(crate) is_active: bool,
}

/// The place of a workload in queue order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) priority: Reverse<i32>,
    pub(crate) order_time: i64,
    /// Compared as bytes.
    pub(crate) uid: Arc<str>,
    pub(crate) id: WorkloadId,
}

/// Workloads that fare alike: equal pod sets and priority.
pub(crate) type Class = (u64, i32);

/// The last flavors that were looked at for a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) tried: Vec<(usize, ResourceId, usize)>,
    /// The cycle in which that was.
    pub(crate) cycle: u64,
    /// The queue's generation then.
    pub(crate) generation: u64,
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) settings: Settings,
    active: BTreeMap<Place, Class>,
    parked: BTreeSet<Place>,
    held: BTreeSet<(i64, Place)>,
    /// The last workload that waited for its victims to go.
    sticky: Option<Place>,
    /// A workload of these stood at the head in vain; nothing has changed since. Those in `active`
    /// count as parked.
    parked_classes: BTreeSet<Class>,
    /// Rises when quota of the queue may have become free.
    pub(crate) generation: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, place: Place, class: Class) {
        self.active.insert(place, class);
    }

    pub(crate) fn park(&mut self, place: Place) {
        self.parked.insert(place);
    }

    pub(crate) fn hold(&mut self, until_s: i64, place: Place) {
        self.held.insert((until_s, place));
    }

    /// Takes one back that was parked, and its class; nobody else.
    pub(crate) fn unpark(&mut self, place: Place, class: Class) {
        if self.parked.remove(&place) {
            self.parked_classes.remove(&class);
            self.active.insert(place, class);
        }
    }

    /// Parks all of a class with its head.
    pub(crate) fn park_class(&mut self, class: Class) {
        if self.settings.strategy == QueueingStrategy::BestEffortFifo {
            self.parked_classes.insert(class);
        }
    }

    /// Takes a workload out, wherever it is.
    pub(crate) fn remove(&mut self, place: &Place, held_until_s: Option<i64>) {
        self.active.remove(place);
        self.parked.remove(place);
        if let Some(until_s) = held_until_s {
            self.held.remove(&(until_s, place.clone()));
        }
    }

    /// A workload that left the queue for good is not waited for.
    pub(crate) fn forget(&mut self, id: WorkloadId) {
        if self.is_sticky(id) {
            self.sticky = None;
        }
    }

    /// Remembers the workload that waits for its victims to go.
    pub(crate) fn wait_for(&mut self, place: Place) {
        self.sticky = Some(place);
    }

    pub(crate) fn is_sticky(&self, id: WorkloadId) -> bool {
        self.sticky.as_ref().is_some_and(|place| place.id == id)
    }

    /// The remembered workload, if it is active and goes first.
    fn first_of_all(&self) -> Option<(&Place, &Class)> {
        if self.settings.strategy != QueueingStrategy::BestEffortFifo {
            return None;
        }
        self.active.get_key_value(self.sticky.as_ref()?)
    }

    fn counts_as_parked(&self, class: Class) -> bool {
        self.parked_classes.contains(&class)
    }

    /// Takes a workload out before all others, unless the queue keeps its order.
    pub(crate) fn pop_preferred(&mut self, place: &Place) -> Option<WorkloadId> {
        if self.settings.strategy == QueueingStrategy::StrictFifo {
            return None;
        }
        self.active.remove(place).map(|_| place.id)
    }

    /// Takes the head out. What stands before it and counts as parked is parked.
    pub(crate) fn pop(&mut self) -> Option<WorkloadId> {
        let sticky = self.first_of_all();
        if let Some((place, class)) = sticky
            && !self.counts_as_parked(*class)
        {
            let place = place.clone();
            self.active.remove(&place);
            return Some(place.id);
        }
        while let Some((place, class)) = self.active.pop_first() {
            if !self.counts_as_parked(class) {
                return Some(place.id);
            }
            self.parked.insert(place);
        }
        None
    }

    /// Moves back to active what was parked and `may_move`. Costs what is moved.
    pub(crate) fn revive(
        &mut self,
        mut may_move: impl FnMut(WorkloadId) -> Option<Class>,
        moved: &mut Vec<WorkloadId>,
    ) {
        if !self.parked_classes.is_empty() {
            let classes = std::mem::take(&mut self.parked_classes);
            let hidden = self.active.iter();
            let hidden = hidden.filter(|(_, class)| classes.contains(class));
            moved.extend(hidden.map(|(place, _)| place.id));
        }
        for place in std::mem::take(&mut self.parked) {
            match may_move(place.id) {
                Some(class) => {
                    moved.push(place.id);
                    self.active.insert(place, class);
                }
                None => {
                    self.parked.insert(place);
                }
            }
        }
    }

    /// Moves to active what was held until now.
    pub(crate) fn release(
        &mut self,
        now_s: i64,
        mut class: impl FnMut(WorkloadId) -> Class,
    ) -> Vec<WorkloadId> {
        let mut released = Vec::new();
        while let Some((until_s, _)) = self.held.first()
            && *until_s <= now_s
            && let Some((_, place)) = self.held.pop_first()
        {
            released.push(place.id);
            let class = class(place.id);
            self.active.insert(place, class);
        }
        released
    }

    /// The active workloads in queue order.
    pub(crate) fn active(&self) -> Vec<WorkloadId> {
        let open = self.active.iter();
        let open = open.filter(|(_, class)| !self.counts_as_parked(**class));
        let mut order: Vec<_> = open.map(|(place, _)| place.id).collect();
        if let Some((sticky, _)) = self.first_of_all()
            && let Some(at) = order.iter().position(|id| *id == sticky.id)
            && let Some(first) = order.get_mut(..=at)
        {
            first.rotate_right(1);
        }
        order
    }

    /// The parked workloads in queue order; those whose class is, too.
    pub(crate) fn parked(&self) -> Vec<WorkloadId> {
        let hidden = self.active.iter();
        let hidden = hidden.filter(|(_, class)| self.counts_as_parked(**class));
        let mut order: BTreeSet<&Place> = hidden.map(|(place, _)| place).collect();
        order.extend(&self.parked);
        order.into_iter().map(|place| place.id).collect()
    }

    /// How many are active or parked, and how many are held.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let queued = self.active.len().saturating_add(self.parked.len());
        (queued, self.held.len())
    }

    /// When the first of the held workloads is held no longer.
    pub(crate) fn held_until_s(&self) -> Option<i64> {
        self.held.first().map(|(until_s, _)| *until_s)
    }

    /// The held workloads, those first that are held the shortest.
    pub(crate) fn held(&self) -> Vec<WorkloadId> {
        self.held.iter().map(|(_, place)| place.id).collect()
    }
}

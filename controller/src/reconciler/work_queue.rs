//! The work queue: objects to plan now or later, and objects with a write that is ready.

use super::output::{ObjectRef, WritePriority};
use std::collections::{BTreeMap, BTreeSet};

/// Objects to plan now or later, and objects with a planned write by priority and arrival.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    dirty: BTreeSet<ObjectRef>,
    timers: BTreeSet<(i64, ObjectRef)>,
    timer_by_object: BTreeMap<ObjectRef, i64>,
    ready: BTreeSet<(WritePriority, u64, ObjectRef)>,
    ready_by_object: BTreeMap<ObjectRef, (WritePriority, u64)>,
    arrivals: u64,
}

impl WorkQueue {
    /// Plans the object at the next poll.
    pub(super) fn enqueue(&mut self, object: ObjectRef) {
        self.dirty.insert(object);
    }

    /// Plans the object at this time, or at an earlier time that was set before.
    pub(super) fn enqueue_at(&mut self, at_ms: i64, object: ObjectRef) {
        if let Some(before) = self.timer_by_object.get(&object).copied() {
            if before <= at_ms {
                return;
            }
            // One timer per object: a later one would only repeat the planning.
            self.timers.remove(&(before, object.clone()));
        }
        self.timer_by_object.insert(object.clone(), at_ms);
        self.timers.insert((at_ms, object));
    }

    /// Enqueues the objects with an expired timer.
    pub(super) fn advance_timers(&mut self, now_ms: i64) {
        while let Some((at_ms, _)) = self.timers.first()
            && *at_ms <= now_ms
            && let Some((_, object)) = self.timers.pop_first()
        {
            self.timer_by_object.remove(&object);
            self.dirty.insert(object);
        }
    }

    pub(super) fn next_timer(&self) -> Option<i64> {
        self.timers.first().map(|(at_ms, _)| *at_ms)
    }

    pub(super) fn pop_dirty(&mut self) -> Option<ObjectRef> {
        self.dirty.pop_first()
    }

    /// Sets or removes the priority of an object's planned write. An object keeps its place while its priority
    /// stays the same.
    pub(super) fn set_ready(&mut self, object: ObjectRef, priority: Option<WritePriority>) {
        match (self.ready_by_object.get(&object).copied(), priority) {
            (Some((before, _)), Some(priority)) if before == priority => return,
            (Some((before, arrival)), _) => {
                self.ready.remove(&(before, arrival, object.clone()));
                self.ready_by_object.remove(&object);
            }
            (None, _) => {}
        }
        if let Some(priority) = priority {
            self.arrivals = self.arrivals.wrapping_add(1);
            self.ready_by_object
                .insert(object.clone(), (priority, self.arrivals));
            self.ready.insert((priority, self.arrivals, object));
        }
    }

    /// The priority of the most urgent planned write.
    pub(super) fn highest_priority(&self) -> Option<WritePriority> {
        self.ready.first().map(|(priority, _, _)| *priority)
    }

    pub(super) fn pop_ready(&mut self) -> Option<ObjectRef> {
        let (_, _, object) = self.ready.pop_first()?;
        self.ready_by_object.remove(&object);
        Some(object)
    }

    /// Drops all planned writes.
    pub(super) fn clear_ready(&mut self) {
        self.ready.clear();
        self.ready_by_object.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::WritePurpose;
    use super::{ObjectRef, WorkQueue};

    fn object(name: &str) -> ObjectRef {
        ObjectRef::Cohort(name.to_owned())
    }

    #[test]
    fn work_queue_with_two_timers_keeps_the_sooner() {
        let mut queue = WorkQueue::default();
        queue.enqueue_at(20, object("a"));
        queue.enqueue_at(10, object("a"));
        queue.enqueue_at(30, object("a"));
        assert_eq!(queue.next_timer(), Some(10));
        queue.advance_timers(9);
        assert_eq!(queue.pop_dirty(), None);
        queue.advance_timers(10);
        assert_eq!(queue.pop_dirty(), Some(object("a")));
        assert_eq!(queue.next_timer(), None);
    }

    #[test]
    fn work_queue_pops_by_priority_then_arrival() {
        let mut queue = WorkQueue::default();
        let (report, urgent) = (
            WritePurpose::PendingReason.priority(),
            WritePurpose::Release.priority(),
        );
        queue.set_ready(object("a"), Some(report));
        queue.set_ready(object("c"), Some(urgent));
        queue.set_ready(object("b"), Some(urgent));
        queue.set_ready(object("a"), Some(report));
        queue.set_ready(object("d"), Some(report));
        queue.set_ready(object("a"), Some(report));
        assert_eq!(queue.highest_priority(), Some(urgent));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_ready()).collect();
        assert_eq!(order, ["c", "b", "a", "d"].map(object));
        queue.set_ready(object("a"), Some(report));
        queue.set_ready(object("a"), None);
        assert_eq!(queue.pop_ready(), None);
    }
}

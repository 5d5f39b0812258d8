//! What is to be looked at, when, and what waits to be written.

use super::output::{ObjectRef, WritePriority};
use std::collections::{BTreeMap, BTreeSet};

/// Objects to look at now or later, and objects with something to write, the most urgent first.
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
    /// Look at it now.
    pub(super) fn enqueue(&mut self, target: ObjectRef) {
        self.dirty.insert(target);
    }

    /// Look at it at this time, or at the time that was given before if that is sooner.
    pub(super) fn enqueue_at(&mut self, at_ms: i64, target: ObjectRef) {
        if let Some(before) = self.timer_by_object.get(&target).copied() {
            if before <= at_ms {
                return;
            }
            self.timers.remove(&(before, target.clone()));
        }
        self.timer_by_object.insert(target.clone(), at_ms);
        self.timers.insert((at_ms, target));
    }

    /// Whose time has come is to be looked at.
    pub(super) fn advance_timers(&mut self, now_ms: i64) {
        while let Some((at_ms, _)) = self.timers.first()
            && *at_ms <= now_ms
            && let Some((_, target)) = self.timers.pop_first()
        {
            self.timer_by_object.remove(&target);
            self.dirty.insert(target);
        }
    }

    pub(super) fn next_timer(&self) -> Option<i64> {
        self.timers.first().map(|(at_ms, _)| *at_ms)
    }

    pub(super) fn pop_dirty(&mut self) -> Option<ObjectRef> {
        self.dirty.pop_first()
    }

    /// It has something to write of this rank, or nothing. Who waits in a rank keeps the place.
    pub(super) fn set_ready(&mut self, target: ObjectRef, rank: Option<WritePriority>) {
        match (self.ready_by_object.get(&target).copied(), rank) {
            (Some((before, _)), Some(rank)) if before == rank => return,
            (Some((before, arrival)), _) => {
                self.ready.remove(&(before, arrival, target.clone()));
                self.ready_by_object.remove(&target);
            }
            (None, _) => {}
        }
        if let Some(rank) = rank {
            self.arrivals = self.arrivals.wrapping_add(1);
            self.ready_by_object
                .insert(target.clone(), (rank, self.arrivals));
            self.ready.insert((rank, self.arrivals, target));
        }
    }

    /// The rank of the most urgent one.
    pub(super) fn highest_priority(&self) -> Option<WritePriority> {
        self.ready.first().map(|(rank, _, _)| *rank)
    }

    pub(super) fn pop_ready(&mut self) -> Option<ObjectRef> {
        let (_, _, target) = self.ready.pop_first()?;
        self.ready_by_object.remove(&target);
        Some(target)
    }

    /// Nothing is to be written any more.
    pub(super) fn clear_ready(&mut self) {
        self.ready.clear();
        self.ready_by_object.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::WritePurpose;
    use super::{ObjectRef, WorkQueue};

    fn target(name: &str) -> ObjectRef {
        ObjectRef::Cohort(name.to_owned())
    }

    #[test]
    fn work_queue_with_two_timers_keeps_the_sooner() {
        let mut schedule = WorkQueue::default();
        schedule.enqueue_at(20, target("a"));
        schedule.enqueue_at(10, target("a"));
        schedule.enqueue_at(30, target("a"));
        assert_eq!(schedule.next_timer(), Some(10));
        schedule.advance_timers(9);
        assert_eq!(schedule.pop_dirty(), None);
        schedule.advance_timers(10);
        assert_eq!(schedule.pop_dirty(), Some(target("a")));
        assert_eq!(schedule.next_timer(), None);
    }

    #[test]
    fn work_queue_pops_by_priority_then_arrival() {
        let mut schedule = WorkQueue::default();
        let (late, soon) = (
            WritePurpose::PendingReason.priority(),
            WritePurpose::Release.priority(),
        );
        schedule.set_ready(target("a"), Some(late));
        schedule.set_ready(target("c"), Some(soon));
        schedule.set_ready(target("b"), Some(soon));
        schedule.set_ready(target("a"), Some(late));
        schedule.set_ready(target("d"), Some(late));
        schedule.set_ready(target("a"), Some(late));
        assert_eq!(schedule.highest_priority(), Some(soon));
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop_ready()).collect();
        assert_eq!(order, ["c", "b", "a", "d"].map(target));
        schedule.set_ready(target("a"), Some(late));
        schedule.set_ready(target("a"), None);
        assert_eq!(schedule.pop_ready(), None);
    }
}

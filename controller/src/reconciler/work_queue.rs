//! The work queue: objects to plan now or later, and objects with a write that is ready.

use super::output::{ObjectRef, WritePriority};
use std::collections::{BTreeMap, BTreeSet};

/// The number of namespaces with a turn at which those whose turn has passed are forgotten.
const TURNS_SWEPT_AT: usize = 1_024;

/// Objects to plan now or later, and objects with a planned write by priority and turn.
///
/// Within a priority the namespaces take turns: each turn has at most one write of each namespace, so that no tenant
/// waits for all writes of another.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    dirty: BTreeSet<ObjectRef>,
    timers: BTreeSet<(i64, ObjectRef)>,
    timer_by_object: BTreeMap<ObjectRef, i64>,
    ready: BTreeSet<(WritePriority, Place, ObjectRef)>,
    ready_by_object: BTreeMap<ObjectRef, (WritePriority, Place)>,
    arrivals: u64,
    /// The turn of each priority that was begun last.
    turns: BTreeMap<WritePriority, u64>,
    /// The last turn of a namespace, if it is later than the one of its priority.
    last_turns: BTreeMap<(WritePriority, String), u64>,
    /// The number of entries in `last_turns` at which outdated ones are removed.
    sweep_turns_at: usize,
}

/// The place in the queue of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    turn: u64,
    arrival: u64,
}

impl WorkQueue {
    /// Plans the object at the next poll.
    pub(super) fn enqueue(&mut self, object: ObjectRef) {
        self.dirty.insert(object);
    }

    /// Sets or removes the timer of an object: it is planned again at this time. The latest plan decides; an object that
    /// does not exist any more has no timer, however far away it was.
    pub(super) fn set_timer(&mut self, object: &ObjectRef, at_ms: Option<i64>) {
        let before = self.timer_by_object.get(object).copied();
        if before == at_ms {
            return;
        }
        if let Some(before) = before {
            self.timers.remove(&(before, object.clone()));
            self.timer_by_object.remove(object);
        }
        if let Some(at_ms) = at_ms {
            self.timer_by_object.insert(object.clone(), at_ms);
            self.timers.insert((at_ms, object.clone()));
        }
    }

    /// Forgets all objects except events. A replica that does not lead plans nothing: without this it would remember
    /// every object that it has ever observed. It plans all objects when it starts to lead.
    pub(super) fn forget_objects(&mut self) {
        self.clear_ready();
        self.timers.clear();
        self.timer_by_object.clear();
        // Events exist only here and in the recorder, which limits their number.
        self.dirty.retain(|it| matches!(it, ObjectRef::Event(_)));
    }

    /// The number of objects to plan now or later, and of planned writes.
    pub(super) fn len(&self) -> usize {
        [self.dirty.len(), self.timers.len(), self.ready.len()]
            .into_iter()
            .sum()
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
            (Some((before, place)), _) => {
                self.ready.remove(&(before, place, object.clone()));
                self.ready_by_object.remove(&object);
            }
            (None, _) => {}
        }
        if let Some(priority) = priority {
            let place = self.next_place(priority, &object);
            self.ready_by_object
                .insert(object.clone(), (priority, place));
            self.ready.insert((priority, place, object));
        }
    }

    /// The place of one more write: in the turn after the last one of its namespace.
    fn next_place(&mut self, priority: WritePriority, object: &ObjectRef) -> Place {
        self.arrivals = self.arrivals.wrapping_add(1);
        let current = self.turns.get(&priority).copied().unwrap_or_default();
        let turn = match object.namespace() {
            // Objects of the cluster do not wait for each other's turns.
            None => current,
            Some(namespace) => {
                let last = (priority, namespace.to_owned());
                let turn = self.last_turns.get(&last);
                let turn = turn.map_or(current, |it| it.saturating_add(1).max(current));
                self.last_turns.insert(last, turn);
                self.sweep_turns();
                turn
            }
        };
        Place {
            turn,
            arrival: self.arrivals,
        }
    }

    /// Removes the turns that have passed: namespaces come and go, and a queue of reports may never be empty.
    fn sweep_turns(&mut self) {
        if self.last_turns.len() < self.sweep_turns_at.max(TURNS_SWEPT_AT) {
            return;
        }
        let turns = &self.turns;
        self.last_turns
            .retain(|(priority, _), turn| turns.get(priority).is_none_or(|it| *turn >= *it));
        // Next at twice the number: each insertion then costs constant time on average.
        self.sweep_turns_at = self.last_turns.len().saturating_mul(2);
    }

    /// The priority of the most urgent planned write.
    pub(super) fn highest_priority(&self) -> Option<WritePriority> {
        self.ready.first().map(|(priority, _, _)| *priority)
    }

    pub(super) fn pop_ready(&mut self) -> Option<ObjectRef> {
        let (priority, place, object) = self.ready.pop_first()?;
        self.ready_by_object.remove(&object);
        self.turns.insert(priority, place.turn);
        if self.ready.is_empty() {
            self.last_turns.clear();
        }
        Some(object)
    }

    /// Drops all planned writes.
    pub(super) fn clear_ready(&mut self) {
        self.ready.clear();
        self.ready_by_object.clear();
        self.last_turns.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::WritePurpose;
    use super::{ObjectRef, TURNS_SWEPT_AT, WorkQueue};
    use crate::key::ObjectKey;

    fn object(name: &str) -> ObjectRef {
        ObjectRef::Cohort(name.to_owned())
    }

    #[test]
    fn work_queue_keeps_the_last_timer_of_an_object() {
        let mut queue = WorkQueue::default();
        for at_ms in [20, 10, 30] {
            queue.set_timer(&object("a"), Some(at_ms));
            assert_eq!(queue.next_timer(), Some(at_ms));
        }
        queue.advance_timers(29);
        assert_eq!(queue.pop_dirty(), None);
        queue.advance_timers(30);
        assert_eq!(queue.pop_dirty(), Some(object("a")));
        assert_eq!(queue.next_timer(), None);
        queue.set_timer(&object("a"), Some(i64::MAX));
        queue.set_timer(&object("a"), None);
        assert_eq!(queue.len(), 0);
        assert!(queue.timer_by_object.is_empty());
    }

    #[test]
    fn work_queue_forgets_objects_but_not_events() {
        let mut queue = WorkQueue::default();
        queue.enqueue(object("a"));
        queue.enqueue(ObjectRef::Event(1));
        queue.set_timer(&object("b"), Some(1));
        queue.set_ready(object("c"), Some(WritePurpose::Evict.priority()));
        assert_eq!(queue.len(), 4);
        queue.forget_objects();
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.pop_dirty(), Some(ObjectRef::Event(1)));
        assert!(queue.timer_by_object.is_empty() && queue.ready_by_object.is_empty());
    }

    /// A report that is never written keeps the queue from becoming empty.
    #[test]
    fn work_queue_forgets_namespaces_whose_turn_has_passed() {
        let mut queue = WorkQueue::default();
        let report = Some(WritePurpose::PendingReason.priority());
        queue.set_ready(object("waits"), report);
        let priority = Some(WritePurpose::CreateWorkload.priority());
        for number in 0..TURNS_SWEPT_AT * 4 {
            for _ in 0..2 {
                let key = ObjectKey::new(&format!("n{number}"), "w");
                queue.set_ready(ObjectRef::Workload(key), priority);
                assert_ne!(queue.pop_ready(), None);
            }
        }
        assert!(queue.last_turns.len() <= TURNS_SWEPT_AT);
    }

    #[test]
    fn work_queue_namespaces_take_turns_within_priority() {
        let in_namespace = |namespace: &str, number: usize| {
            ObjectRef::Workload(ObjectKey::new(namespace, &format!("w{number}")))
        };
        let priority = Some(WritePurpose::CreateWorkload.priority());
        let mut queue = WorkQueue::default();
        for number in 0..1_000 {
            queue.set_ready(in_namespace("large", number), priority);
        }
        for number in 0..2 {
            queue.set_ready(in_namespace("small", number), priority);
        }
        let mut pop = |count| -> Vec<ObjectRef> {
            std::iter::from_fn(|| queue.pop_ready())
                .take(count)
                .collect()
        };
        let first = pop(4);
        assert_eq!(
            first,
            [("large", 0), ("small", 0), ("large", 1), ("small", 1)]
                .map(|(namespace, number)| in_namespace(namespace, number))
        );
        assert_eq!(pop(1), [in_namespace("large", 2)]);
        // A namespace that was idle does not catch up on turns that it missed.
        queue.set_ready(in_namespace("late", 0), priority);
        queue.set_ready(in_namespace("late", 1), priority);
        let next: Vec<_> = std::iter::from_fn(|| queue.pop_ready()).take(4).collect();
        assert_eq!(
            next,
            [("late", 0), ("large", 3), ("late", 1), ("large", 4)]
                .map(|(namespace, number)| in_namespace(namespace, number))
        );
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

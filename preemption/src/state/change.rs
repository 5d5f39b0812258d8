//! A workload that is known changes.

use super::State;
use crate::amount::Amount;
use crate::names::{FlavorResource, WorkloadId};
use crate::spec::{Reservation, WorkloadSpec};
use std::sync::Arc;

impl State {
    /// A workload that is known, by its new spec. It keeps its number, its quota, its time of being held
    /// and what damping knows of it; what was tried for it and that it is parked it keeps only if nothing
    /// of this changed. Its name stays what it is.
    pub fn change(&mut self, id: WorkloadId, spec: WorkloadSpec<'_>) {
        let queue = self.queue_node(spec.queue);
        let Some(record) = self.records.get(id) else {
            return;
        };
        let is_same = record.queue == queue
            && *record.uid == *spec.uid
            && record.priority == spec.priority
            && record.order_time == spec.order_time
            && record.is_in_scope == spec.is_in_scope
            && record.says == spec.says
            && *record.pod_sets == *spec.pod_sets;
        if is_same {
            return;
        }
        let until_s = record.held_until_s;
        let held = self.held_by(id);
        // Both need its old place and uid.
        let freed = self.give_back(id);
        self.dequeue(id);
        let unkept = self.untally(id);
        let (pod_sets, shape) = self.shapes.acquire(spec.pod_sets);
        let Some(record) = self.records.get_mut(id) else {
            return;
        };
        let left = record.queue;
        let old = std::mem::replace(&mut record.pod_sets, pod_sets);
        record.shape = shape;
        record.queue = queue;
        record.uid = Arc::from(spec.uid);
        record.priority = spec.priority;
        record.order_time = spec.order_time;
        record.is_in_scope = spec.is_in_scope;
        record.says = spec.says;
        record.held_until_s = until_s;
        record.progress = None;
        self.shapes.release(&old);
        self.tally(id);
        if let Some(queue) = self.queues.get_mut(left.index()) {
            queue.forget(id);
        }
        if let Some(it) = held {
            self.take_quota(id, &it.usage, it.reserved_at_s, it.is_evicted);
            // Who takes quota leaves the queue, and this time with it. Here it held both.
            if let Some(record) = self.records.get_mut(id) {
                record.held_until_s = until_s;
            }
        } else {
            self.holds.end(id);
            self.enqueue(id);
        }
        if let Some(freed) = freed.filter(|freed| *freed != queue).or(unkept) {
            self.revive(freed);
        }
        self.revive_where_holds_ended();
    }

    /// The quota that a workload holds; sorted, nothing of zero. `None` if it holds none.
    #[must_use]
    pub fn held_by(&self, id: WorkloadId) -> Option<Reservation> {
        let running = self.records.get(id)?.running.as_ref()?;
        let group = self.index.group(running.queue, running.group);
        let amounts = running.amounts.as_slice().iter();
        Some(Reservation {
            usage: group.of.iter().copied().zip(amounts.copied()).collect(),
            reserved_at_s: running.reserved_at_s,
            is_evicted: running.is_evicted,
        })
    }

    /// The same without a copy: since when it holds it, in seconds, and what.
    #[must_use]
    pub fn holding(
        &self,
        id: WorkloadId,
    ) -> Option<(i64, impl Iterator<Item = (FlavorResource, Amount)> + '_)> {
        let running = self.records.get(id)?.running.as_ref()?;
        let group = self.index.group(running.queue, running.group);
        let amounts = running.amounts.as_slice().iter().copied();
        let usage = group.of.iter().copied().zip(amounts);
        Some((running.reserved_at_s, usage))
    }

    /// Until when a workload is held, in seconds; `None` if it is not.
    #[must_use]
    pub fn held_until_s(&self, id: WorkloadId) -> Option<i64> {
        self.records.get(id)?.held_until_s
    }
}

#[cfg(test)]
mod tests {
    use crate::job::Says;
    use crate::{Amount, FlavorResource, Reservation, State, WorkloadSpec};

    fn spec(queue: &'static str, priority: i32) -> WorkloadSpec<'static> {
        WorkloadSpec {
            name: "one",
            uid: "1",
            queue,
            priority,
            order_time: 0,
            pod_sets: Vec::new(),
            is_in_scope: true,
            says: Says::default(),
        }
    }

    fn held(state: &mut State) -> Reservation {
        let (flavor, resource) = (state.flavor("f"), state.resource("cpu"));
        Reservation {
            usage: vec![(FlavorResource { flavor, resource }, Amount::new(7))],
            reserved_at_s: 3,
            is_evicted: true,
        }
    }

    #[test]
    fn quota_moves_with_its_workload() {
        let mut state = State::default();
        let held = held(&mut state);
        let id = state.add_running(spec("a", 0), &held);
        state.hold(id, 9);
        state.change(id, spec("b", 5));
        assert_eq!(state.held_by(id), Some(held.clone()));
        assert_eq!(state.held_until_s(id), Some(9));
        assert_eq!(state.priority(id), 5);
        let [a, b] = ["a", "b"].map(|name| state.queue(name).unwrap());
        assert_eq!(state.usage(a), [(held.usage[0].0, Amount::ZERO)]);
        assert_eq!(state.usage(b), held.usage);
        state.release(id);
        assert_eq!(state.usage(b), [(held.usage[0].0, Amount::ZERO)]);
        assert_eq!((state.held(a), state.held(b)), (vec![], vec![id]));
    }

    #[test]
    fn who_waits_takes_its_new_place() {
        let mut state = State::default();
        let id = state.add_pending(spec("a", 0));
        let other = state.add_pending(WorkloadSpec {
            name: "other",
            ..spec("a", 1)
        });
        let a = state.queue("a").unwrap();
        assert_eq!(state.active(a), [other, id]);
        state.change(id, spec("a", 2));
        assert_eq!(state.active(a), [id, other]);
        state.change(id, spec("b", 2));
        let b = state.queue("b").unwrap();
        assert_eq!((state.active(a), state.active(b)), (vec![other], vec![id]));
        state.remove(id);
        assert_eq!(state.active(b), []);
    }
}

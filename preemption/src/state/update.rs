//! A workload that is known changes.

use super::State;
use crate::amount::Amount;
use crate::ids::{FlavorResource, WorkloadId};
use crate::spec::{Reservation, WorkloadSpec};
use std::sync::Arc;

impl State {
    /// A workload that is known, by its new spec. It keeps its number, its quota, its time of being held
    /// and what damping knows of it; what was tried for it and that it is parked it keeps only if nothing
    /// of this changed. Its name stays what it is.
    pub fn update_workload(&mut self, id: WorkloadId, spec: WorkloadSpec<'_>) {
        let queue = self.queue_node(spec.queue);
        let Some(record) = self.workloads.get(id) else {
            return;
        };
        let is_same = record.queue == queue
            && *record.uid == *spec.uid
            && record.priority == spec.priority
            && record.order_time == spec.order_time
            && record.is_in_scope == spec.is_in_scope
            && record.preemption_labels == spec.preemption_labels
            && *record.pod_sets == *spec.pod_sets;
        if is_same {
            return;
        }
        let until_s = record.backoff_until_s;
        let held = self.reservation_of(id);
        // Both need its old place and uid.
        let freed = self.release_usage(id);
        self.dequeue(id);
        let unkept = self.remove_non_preemptible_usage(id);
        let (pod_sets, shape) = self.pod_set_interner.acquire(spec.pod_sets);
        let Some(record) = self.workloads.get_mut(id) else {
            return;
        };
        let left = record.queue;
        let old = std::mem::replace(&mut record.pod_sets, pod_sets);
        record.pod_sets_id = shape;
        record.queue = queue;
        record.uid = Arc::from(spec.uid);
        record.priority = spec.priority;
        record.order_time = spec.order_time;
        record.is_in_scope = spec.is_in_scope;
        record.preemption_labels = spec.preemption_labels;
        record.backoff_until_s = until_s;
        record.last_assignment = None;
        self.pod_set_interner.release(&old);
        self.add_non_preemptible_usage(id);
        if let Some(queue) = self.queues.get_mut(left.index()) {
            queue.clear_sticky(id);
        }
        if let Some(it) = held {
            self.reserve_usage(id, &it.usage, it.reserved_at_s, it.is_evicted);
            // Who takes quota leaves the queue, and this time with it. Here it held both.
            if let Some(record) = self.workloads.get_mut(id) {
                record.backoff_until_s = until_s;
            }
        } else {
            self.holds.end(id);
            self.enqueue(id);
        }
        if let Some(freed) = freed.filter(|freed| *freed != queue).or(unkept) {
            self.reactivate(freed);
        }
        self.reactivate_where_holds_ended();
    }

    /// The quota that a workload holds; sorted, nothing of zero. `None` if it holds none.
    #[must_use]
    pub fn reservation_of(&self, id: WorkloadId) -> Option<Reservation> {
        let running = self.workloads.get(id)?.admitted.as_ref()?;
        let group = self
            .admitted_index
            .group(running.queue, running.usage_group);
        let amounts = running.amounts.as_slice().iter();
        Some(Reservation {
            usage: group
                .flavor_resources
                .iter()
                .copied()
                .zip(amounts.copied())
                .collect(),
            reserved_at_s: running.reserved_at_s,
            is_evicted: running.is_evicted,
        })
    }

    /// The same without a copy: since when it holds it, in seconds, and what.
    #[must_use]
    pub fn reserved_usage_of(
        &self,
        id: WorkloadId,
    ) -> Option<(i64, impl Iterator<Item = (FlavorResource, Amount)> + '_)> {
        let running = self.workloads.get(id)?.admitted.as_ref()?;
        let group = self
            .admitted_index
            .group(running.queue, running.usage_group);
        let amounts = running.amounts.as_slice().iter().copied();
        let usage = group.flavor_resources.iter().copied().zip(amounts);
        Some((running.reserved_at_s, usage))
    }

    /// Until when a workload is held, in seconds; `None` if it is not.
    #[must_use]
    pub fn backoff_until_s(&self, id: WorkloadId) -> Option<i64> {
        self.workloads.get(id)?.backoff_until_s
    }
}

#[cfg(test)]
mod tests {
    use crate::job::PreemptionLabels;
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
            preemption_labels: PreemptionLabels::default(),
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
    fn update_workload_admitted_moves_its_quota() {
        let mut state = State::default();
        let held = held(&mut state);
        let id = state.add_admitted(spec("a", 0), &held);
        state.set_backoff(id, 9);
        state.update_workload(id, spec("b", 5));
        assert_eq!(state.reservation_of(id), Some(held.clone()));
        assert_eq!(state.backoff_until_s(id), Some(9));
        assert_eq!(state.priority(id), 5);
        let [a, b] = ["a", "b"].map(|name| state.queue(name).unwrap());
        assert_eq!(state.usage(a), [(held.usage[0].0, Amount::ZERO)]);
        assert_eq!(state.usage(b), held.usage);
        state.release(id);
        assert_eq!(state.usage(b), [(held.usage[0].0, Amount::ZERO)]);
        assert_eq!(
            (state.backing_off(a), state.backing_off(b)),
            (vec![], vec![id])
        );
    }

    #[test]
    fn update_workload_pending_moves_to_new_queue_position() {
        let mut state = State::default();
        let id = state.add_pending(spec("a", 0));
        let other = state.add_pending(WorkloadSpec {
            name: "other",
            ..spec("a", 1)
        });
        let a = state.queue("a").unwrap();
        assert_eq!(state.active(a), [other, id]);
        state.update_workload(id, spec("a", 2));
        assert_eq!(state.active(a), [id, other]);
        state.update_workload(id, spec("b", 2));
        let b = state.queue("b").unwrap();
        assert_eq!((state.active(a), state.active(b)), (vec![other], vec![id]));
        state.remove(id);
        assert_eq!(state.active(b), []);
    }
}

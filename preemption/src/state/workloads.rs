//! Adds, updates and removes workloads.

use super::model::State;
use super::nodes::queue_node;
use super::non_preemptible::{add_non_preemptible_usage, remove_non_preemptible_usage};
use super::reactivation::{reactivate, reactivate_where_holds_ended};
use super::usage::{dequeue, enqueue, release_usage, reserve_usage};
use super::workload_view::WorkloadView;
use crate::admitted::{AdmittedLookup, NO_END};
use crate::ids::WorkloadId;
use crate::spec::WorkloadSpec;
use crate::workload_table::WorkloadRow;
use std::sync::Arc;

/// Adds a workload without a place in its queue. One with the same name is removed first.
pub(crate) fn add_workload(state: &mut State, spec: WorkloadSpec<'_>) -> WorkloadId {
    if let Some(known) = state.by_name.get(spec.name).copied() {
        remove(state, known);
    }
    let queue = queue_node(state, spec.queue);
    let preemption_priority = preemption_priority(&spec);
    let (pod_sets, pod_sets_id) = state.pod_set_interner.acquire(spec.pod_sets);
    let name: Arc<str> = spec.name.into();
    let id = state.workloads.insert(WorkloadRow {
        name: Arc::clone(&name),
        uid: spec.uid.into(),
        queue,
        priority: spec.priority,
        preemption_priority,
        order_time: spec.order_time,
        waiting_since_s: spec.waiting_since_s,
        execution_time_max_s: NO_END,
        pod_sets,
        pod_sets_id,
        is_in_scope: spec.is_in_scope,
        preemption_labels: spec.preemption_labels,
        backoff_until_s: None,
        last_assignment: None,
        nomination: None,
        admitted: None,
    });
    state.by_name.insert(name, id);
    add_non_preemptible_usage(state, id);
    id
}

/// The preemption priority; one below the scheduling priority would permit two workloads to preempt each other in turn.
fn preemption_priority(spec: &WorkloadSpec<'_>) -> i32 {
    let given = spec.preemption_priority;
    given.map_or(spec.priority, |it| it.max(spec.priority))
}

/// Removes a workload and frees its quota.
pub(crate) fn remove(state: &mut State, id: WorkloadId) {
    let freed = release_usage(state, id);
    dequeue(state, id);
    state.holds.end(id);
    state.histories.remove_workload(id);
    let unreserved = remove_non_preemptible_usage(state, id);
    if let Some(row) = state.workloads.remove(id) {
        state.by_name.remove(&row.name);
        state.pod_set_interner.release(&row.pod_sets);
        if let Some(queue) = state.queues.get_mut(row.queue.index()) {
            queue.clear_sticky(id);
        }
    }
    // Quota kept for a pending non-preemptible workload becomes free as well.
    if let Some(queue) = freed.or(unreserved) {
        reactivate(state, queue);
    }
    reactivate_where_holds_ended(state);
}

/// Replaces the spec of a workload, see [`State::update_workload`].
pub(crate) fn update_workload(state: &mut State, id: WorkloadId, spec: WorkloadSpec<'_>) {
    let queue = queue_node(state, spec.queue);
    let preemption_priority = preemption_priority(&spec);
    let Some(row) = state.workloads.get_mut(id) else {
        return;
    };
    // It changes with each eviction, and must not touch the quota that is still reserved then.
    row.waiting_since_s = spec.waiting_since_s;
    let is_same = row.queue == queue
        && *row.uid == *spec.uid
        && row.priority == spec.priority
        && row.preemption_priority == preemption_priority
        && row.order_time == spec.order_time
        && row.is_in_scope == spec.is_in_scope
        && row.preemption_labels == spec.preemption_labels
        && *row.pod_sets == *spec.pod_sets;
    // An update without effect must not reset the tried flavors or the sticky preemptor.
    if is_same {
        return;
    }
    let until_s = row.backoff_until_s;
    let reservation = WorkloadView::new(state, id).reservation();
    // Both look the workload up by its old queue, key and uid.
    let freed = release_usage(state, id);
    dequeue(state, id);
    let unreserved = remove_non_preemptible_usage(state, id);
    let (pod_sets, pod_sets_id) = state.pod_set_interner.acquire(spec.pod_sets);
    let Some(row) = state.workloads.get_mut(id) else {
        return;
    };
    let old_queue = row.queue;
    let old_pod_sets = std::mem::replace(&mut row.pod_sets, pod_sets);
    row.pod_sets_id = pod_sets_id;
    row.queue = queue;
    row.uid = Arc::from(spec.uid);
    row.preemption_priority = preemption_priority;
    row.priority = spec.priority;
    row.order_time = spec.order_time;
    row.is_in_scope = spec.is_in_scope;
    row.preemption_labels = spec.preemption_labels;
    row.backoff_until_s = until_s;
    row.last_assignment = None;
    row.nomination = None;
    state.pod_set_interner.release(&old_pod_sets);
    add_non_preemptible_usage(state, id);
    if let Some(queue) = state.queues.get_mut(old_queue.index()) {
        queue.clear_sticky(id);
    }
    if let Some(reservation) = reservation {
        reserve_usage(
            state,
            id,
            &reservation.usage,
            reservation.reserved_at_s,
            reservation.is_evicted,
        );
        // Reserving quota ends the backoff; here the workload had both before.
        if let Some(row) = state.workloads.get_mut(id) {
            row.backoff_until_s = until_s;
        }
    } else {
        // The quota was held for the old request.
        state.holds.end(id);
        enqueue(state, id);
    }
    if let Some(freed) = freed.filter(|freed| *freed != queue).or(unreserved) {
        reactivate(state, freed);
    }
    reactivate_where_holds_ended(state);
}

/// Takes an admitted workload out of the candidates: it does not release its quota, so no preemptor may count on it.
/// It keeps its quota until [`State::release`]. Reserving quota for it again makes it a candidate again.
pub fn mark_stuck(state: &mut State, id: WorkloadId) {
    state.mark_evicted(id);
    if let Some(admitted) = state.workloads.admitted(id) {
        state
            .admitted_index
            .mark_stuck(&state.tree, &state.workloads, id, admitted);
    }
}

/// Sets the most seconds that a workload runs once quota is reserved for it: its enforced maximum execution time, less the
/// time that earlier runs have used. `None` is no limit. An admitted workload keeps its latest end.
pub fn set_execution_time_max(state: &mut State, id: WorkloadId, max_s: Option<i64>) {
    if let Some(row) = state.workloads.get_mut(id) {
        row.execution_time_max_s = max_s.unwrap_or(NO_END);
    }
}

/// Sets the second at which an admitted workload ends at the latest; `None` is not known. A reservation sets it to its own
/// time plus the maximum execution time.
pub fn set_latest_end(state: &mut State, id: WorkloadId, ends_by_s: Option<i64>) {
    let admitted = state
        .workloads
        .get_mut(id)
        .and_then(|it| it.admitted.as_mut());
    if let Some(admitted) = admitted {
        admitted.ends_by_s = ends_by_s.unwrap_or(NO_END);
    }
}

/// Makes a pending workload the preemptor that waits for its victims, for a state built from objects whose conditions name
/// it; cycles do so themselves. In a `BestEffortFIFO` queue it comes first until it leaves the queue or another preemptor
/// replaces it.
///
/// Source: Kueue `pkg/cache/queue/cluster_queue.go`, the sticky workload.
pub fn mark_preemptor(state: &mut State, id: WorkloadId) {
    if state.options.kueue_bugs.forgets_preemptors {
        return;
    }
    let row = state.workloads.get(id).filter(|it| it.admitted.is_none());
    let Some(row) = row else {
        return;
    };
    let (queue, key, class) = (row.queue, row.queue_key(id), row.equivalence_class());
    if let Some(queue) = state.queues.get_mut(queue.index()) {
        queue.set_sticky(key, class);
    }
}

#[cfg(test)]
mod tests {
    use crate::job::PreemptionLabels;
    use crate::{Amount, FlavorResource, Reservation, State, WorkloadSpec, mark_preemptor};

    fn spec(queue: &'static str, priority: i32) -> WorkloadSpec<'static> {
        WorkloadSpec {
            name: "one",
            uid: "1",
            queue,
            priority,
            preemption_priority: None,
            order_time: 0,
            waiting_since_s: 0,
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
    fn mark_preemptor_moves_a_pending_workload_to_the_head() {
        let mut state = State::default();
        let first = state.add_pending(spec("a", 1));
        let preemptor = state.add_pending(WorkloadSpec {
            name: "preemptor",
            ..spec("a", 0)
        });
        let a = state.queue("a").unwrap();
        assert_eq!(state.node_view(a).pending(), [first, preemptor]);
        mark_preemptor(&mut state, preemptor);
        assert_eq!(state.node_view(a).pending(), [preemptor, first]);
        // An admitted workload waits for no victims.
        let held = held(&mut state);
        state.reserve(first, &held);
        mark_preemptor(&mut state, first);
        state.release(first);
        assert_eq!(state.node_view(a).pending(), [preemptor, first]);
    }

    #[test]
    fn update_workload_admitted_moves_its_quota() {
        let mut state = State::default();
        let held = held(&mut state);
        let id = state.add_admitted(spec("a", 0), &held);
        state.set_backoff(id, 9);
        state.update_workload(id, spec("b", 5));
        assert_eq!(state.workload_view(id).reservation(), Some(held.clone()));
        assert_eq!(state.workload_view(id).backoff_until_s(), Some(9));
        assert_eq!(state.workload_view(id).priority(), 5);
        let [a, b] = ["a", "b"].map(|name| state.queue(name).unwrap());
        assert_eq!(
            state.node_view(a).usage(),
            [(held.usage[0].0, Amount::ZERO)]
        );
        assert_eq!(state.node_view(b).usage(), held.usage);
        state.release(id);
        assert_eq!(
            state.node_view(b).usage(),
            [(held.usage[0].0, Amount::ZERO)]
        );
        assert_eq!(
            (
                state.node_view(a).backing_off(),
                state.node_view(b).backing_off()
            ),
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
        assert_eq!(state.node_view(a).active(), [other, id]);
        state.update_workload(id, spec("a", 2));
        assert_eq!(state.node_view(a).active(), [id, other]);
        state.update_workload(id, spec("b", 2));
        let b = state.queue("b").unwrap();
        assert_eq!(
            (state.node_view(a).active(), state.node_view(b).active()),
            (vec![other], vec![id])
        );
        state.remove(id);
        assert_eq!(state.node_view(b).active(), []);
    }
}

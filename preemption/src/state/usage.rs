//! Reserves and releases the quota of workloads, and moves workloads into and out of their queues.

use super::model::State;
use super::non_preemptible::{add_non_preemptible_usage, remove_non_preemptible_usage};
use super::reactivation::apply_changes;
use crate::admitted::{AdmittedLookup, AdmittedWorkload};
use crate::amount::Amount;
use crate::ids::{FlavorResource, NodeId, WorkloadId};
use crate::small_amounts::SmallAmounts;
use std::sync::Arc;

/// Reserves quota for a workload, without reactivating inadmissible workloads.
pub(crate) fn reserve_usage(
    state: &mut State,
    id: WorkloadId,
    usage: &[(FlavorResource, Amount)],
    reserved_at_s: i64,
    is_evicted: bool,
) {
    // A flavor that was assigned for a request of zero counts as used: as in Kueue, the workload is a candidate for it.
    if usage.is_sorted_by(|(a, _), (b, _)| a < b) {
        // The usual case, which needs no copy.
        return reserve_sorted(state, id, usage, reserved_at_s, is_evicted);
    }
    let mut usage = usage.to_vec();
    usage.sort_unstable_by_key(|(of, _)| *of);
    reserve_sorted(state, id, &usage, reserved_at_s, is_evicted);
}

fn reserve_sorted(
    state: &mut State,
    id: WorkloadId,
    usage: &[(FlavorResource, Amount)],
    reserved_at_s: i64,
    is_evicted: bool,
) {
    state.holds.end(id);
    state.histories.record_admission(id);
    // A repeated reservation replaces the earlier one.
    release_usage(state, id);
    dequeue(state, id);
    let Some(queue) = state.workloads.get(id).map(|row| row.queue) else {
        return;
    };
    // Pending changes may remove or add cells, so they come before the check for missing cells.
    apply_changes(state);
    for (of, _) in usage {
        ensure_cell(state, queue, *of);
    }
    apply_changes(state);
    let group = state.admitted_index.group_for(&state.tree, queue, usage);
    // It counts with its requests before, and with its usage after the reservation.
    remove_non_preemptible_usage(state, id);
    let Some(row) = state.workloads.get_mut(id) else {
        return;
    };
    let admitted = AdmittedWorkload {
        queue,
        usage_group: group,
        amounts: SmallAmounts::new(usage.iter().map(|(_, amount)| *amount)),
        preemption_priority: row.preemption_priority,
        order_time: row.order_time,
        reserved_at_s,
        ends_by_s: reserved_at_s.saturating_add(row.execution_time_max_s),
        is_evicted,
        preemption_labels: row.preemption_labels,
    };
    row.last_assignment = None;
    row.nomination = None;
    state
        .admitted_index
        .insert(&state.tree, &state.workloads, id, &admitted);
    for (cell, amount) in state.admitted_index.usage(&admitted) {
        state.tree.add_usage(&mut state.usage, cell, amount);
    }
    if let Some(row) = state.workloads.get_mut(id) {
        row.admitted = Some(admitted);
    }
    add_non_preemptible_usage(state, id);
    if let Some(queue) = state.queues.get_mut(queue.index()) {
        queue.clear_sticky(id);
        // As in Kueue, where the update of the object after its admission counts as a change.
        queue.generation = queue.generation.saturating_add(1);
    }
}

/// Releases the usage of a workload; returns its queue, or `None` if it had no usage.
pub(crate) fn release_usage(state: &mut State, id: WorkloadId) -> Option<NodeId> {
    state.workloads.admitted(id)?;
    remove_non_preemptible_usage(state, id);
    let admitted = state.workloads.get_mut(id)?.admitted.take()?;
    add_non_preemptible_usage(state, id);
    for (cell, amount) in state.admitted_index.usage(&admitted) {
        state.tree.remove_usage(&mut state.usage, cell, amount);
    }
    state
        .admitted_index
        .remove(&state.tree, &state.workloads, id, &admitted);
    let queue = state.queues.get_mut(admitted.queue.index())?;
    queue.generation = queue.generation.saturating_add(1);
    Some(admitted.queue)
}

/// Puts a pending workload into its queue, or into backoff.
pub(crate) fn enqueue(state: &mut State, id: WorkloadId) {
    let Some(row) = state.workloads.get(id) else {
        return;
    };
    let key = row.queue_key(id);
    if let Some(queue) = state.queues.get_mut(row.queue.index()) {
        match row.backoff_until_s {
            Some(until_s) => queue.push_backing_off(until_s, key),
            None => queue.push(key, row.equivalence_class()),
        }
    }
}

/// Takes a workload out of its queue, and ends its backoff.
pub(crate) fn dequeue(state: &mut State, id: WorkloadId) {
    let Some(row) = state.workloads.get_mut(id) else {
        return;
    };
    let backoff_until_s = row.backoff_until_s.take();
    let (key, class) = (row.queue_key(id), row.equivalence_class());
    if let Some(queue) = state.queues.get_mut(row.queue.index()) {
        queue.remove(&key, class, backoff_until_s);
    }
}

/// Adds the cell of a flavor and resource to a queue if it is missing.
pub(crate) fn ensure_cell(state: &mut State, queue: NodeId, of: FlavorResource) {
    if state.tree.node(queue).cell(of).is_none() {
        Arc::make_mut(&mut state.tree).ensure_cell(queue, of);
    }
}

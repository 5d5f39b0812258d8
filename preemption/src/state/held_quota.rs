//! Counts held quota as used, or as free, in a view.

use super::model::State;
use crate::damping::Hold;
use crate::ids::WorkloadId;
use crate::quota::View;

/// Counts all held quota as used.
pub(crate) fn apply_holds(state: &State, view: &mut View<'_>) {
    for (holder, hold) in state.holds.iter() {
        apply_hold(state, view, holder, hold);
    }
}

/// Counts the quota of one hold as used.
pub(crate) fn apply_hold(state: &State, view: &mut View<'_>, holder: WorkloadId, hold: &Hold) {
    let amounts = hold.amounts(
        holder,
        &state.histories,
        &state.admitted_index,
        &state.workloads,
    );
    for (cell, amount) in hold.cell_amounts(view, &amounts) {
        view.add(cell, amount);
    }
}

/// Counts the quota held for a preemptor as free.
pub(crate) fn release_hold(state: &State, view: &mut View<'_>, holder: WorkloadId) {
    if let Some(hold) = state.holds.get(holder) {
        let amounts = hold.amounts(
            holder,
            &state.histories,
            &state.admitted_index,
            &state.workloads,
        );
        for (cell, amount) in hold.cell_amounts(view, &amounts) {
            view.remove(cell, amount);
        }
    }
}

/// Counts the quota held for a preemptor as used again.
pub(crate) fn reapply_hold(state: &State, view: &mut View<'_>, holder: WorkloadId) {
    if let Some(hold) = state.holds.get(holder) {
        apply_hold(state, view, holder, hold);
    }
}

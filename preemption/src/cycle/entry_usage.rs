//! The usage of an entry or a workload in a view.

use super::nominate::NominatedEntry;
use crate::admitted::AdmittedLookup;
use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, WorkloadId};
use crate::quota::View;
use crate::state::State;

/// Returns the usage of a nominated entry at the cells of its queue.
pub(super) fn entry_cells<'a>(
    view: &View<'a>,
    nominee: &'a NominatedEntry,
) -> impl Iterator<Item = (FlavorResource, CellId, Amount)> + use<'a> {
    let node = view.tree.node(nominee.queue);
    let usage = nominee.assignment.usage.iter();
    usage.filter_map(move |(of, amount)| Some((*of, node.cell(*of)?, *amount)))
}

pub(super) fn remove_usage(state: &State, view: &mut View<'_>, id: WorkloadId) {
    if let Some(running) = state.workloads.admitted(id) {
        for (cell, amount) in state.admitted_index.usage(running) {
            view.remove(cell, amount);
        }
    }
}

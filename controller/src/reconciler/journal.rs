//! The events of the cluster state for the decision log.

use super::event_batch::EventBatch;
use super::state::{ReconcilerState, empty_cluster};
use lockkeeper_cluster_state::FlavorSearches;
use lockkeeper_cluster_state::journal::{
    has_assumed_admissions, restart_journal, stop_journal, take_events,
};

/// Begins the journal again if that is due and no decision is pending. True if cycles have to wait for that.
pub(super) fn begin_journal(state: &mut ReconcilerState) -> bool {
    if !state.journal.is_due {
        return false;
    }
    if state.model.pending_decisions() > 0 || has_assumed_admissions(&state.cluster) {
        return true;
    }
    take_batch(state, false);
    let fresh = empty_cluster(&state.settings);
    restart_journal(&mut state.cluster, fresh);
    take_batch(state, true);
    state.journal.is_due = false;
    // All pending workloads count as not tried.
    state.cycle.searches = FlavorSearches::default();
    state.cycle.is_due = true;
    false
}

/// Ends the journal.
pub(super) fn end_journal(state: &mut ReconcilerState) {
    take_batch(state, false);
    stop_journal(&mut state.cluster);
    state.journal.is_due = false;
}

/// The events since the last call.
pub(super) fn take_batches(state: &mut ReconcilerState) -> Vec<EventBatch> {
    take_batch(state, false);
    std::mem::take(&mut state.journal.batches)
}

fn take_batch(state: &mut ReconcilerState, is_start: bool) {
    let events = take_events(&mut state.cluster);
    if is_start || !events.is_empty() {
        state.journal.batches.push(EventBatch { is_start, events });
    }
}

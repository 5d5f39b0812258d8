//! The events of the cluster state that the decision log has not got yet.

use lockkeeper_cluster_state::journal::ClusterEvent;

/// Events of the cluster state, in order.
#[derive(Clone, Debug, Default)]
pub struct EventBatch {
    /// Whether they begin with all objects, and depend on no events before.
    pub is_start: bool,
    /// The events.
    pub events: Vec<ClusterEvent>,
}

/// What is left to do for the decision log.
#[derive(Debug, Default)]
pub(super) struct JournalState {
    /// Whether the journal has to begin again.
    pub(super) is_due: bool,
    pub(super) batches: Vec<EventBatch>,
}

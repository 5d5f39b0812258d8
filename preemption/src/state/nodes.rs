//! Nodes of the quota tree by name; an unknown name gets a node without quota.

use super::model::State;
use crate::ids::NodeId;
use crate::queue::Queue;
use std::sync::Arc;

/// Returns the node of a ClusterQueue; adds it if it is missing.
pub(crate) fn queue_node(state: &mut State, name: &str) -> NodeId {
    if let Some(id) = state.queue_names.get(name) {
        return *id;
    }
    let id = Arc::make_mut(&mut state.tree).add(name, true);
    Arc::make_mut(&mut state.queue_names).insert(name.into(), id);
    state
        .queues
        .resize_with(id.index().saturating_add(1), Queue::default);
    id
}

/// Returns the node of a cohort; adds it if it is missing.
pub(crate) fn cohort_node(state: &mut State, name: &str) -> NodeId {
    if let Some(id) = state.cohort_names.get(name) {
        return *id;
    }
    let id = Arc::make_mut(&mut state.tree).add(name, false);
    Arc::make_mut(&mut state.cohort_names).insert(name.into(), id);
    id
}

//! Tries waiting workloads again.

use super::node_placement::NodePlacement;
use crate::reconciler::state::ReconcilerState;
use lockkeeper_cluster_state::end_hold;

/// Puts waiting workloads into their queues again after nodes have changed.
pub(in crate::reconciler) fn retry_waiting(state: &mut ReconcilerState, now_ms: i64) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    if !state.model.lists.has_node_lists() {
        return;
    }
    let NodePlacement { nodes, waiting, .. } = &mut **placement;
    let batch = waiting.next_batch(nodes.revision(), now_ms);
    for key in batch {
        if let Some(placement) = &mut state.placement {
            placement.waiting.remove(&key);
        }
        end_hold(&mut state.cluster, key.key());
        state.cycle.is_due = true;
    }
}

/// Tries all waiting workloads again: something else than nodes has changed that they depend on.
pub(in crate::reconciler) fn retry_all_waiting(state: &mut ReconcilerState) {
    if let Some(placement) = &mut state.placement {
        placement.waiting.retry_all();
    }
}

//! Applies changes of the quota tree, and returns inadmissible workloads to the active queue.

use super::model::State;
use crate::ids::NodeId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rebuilds the tree and its indexes, see [`State::apply_changes`].
pub(crate) fn apply_changes(state: &mut State) {
    if state.tree.is_dirty() {
        let changed = std::mem::take(&mut state.changed);
        reactivate_changed(state, &changed);
        Arc::make_mut(&mut state.tree).rebuild(&mut state.usage);
        // Resized here, so that copies of the state need not allocate.
        state.overlay.resize(state.usage.len());
        state.overlay_now.resize(state.usage.len());
        state.admitted_index.rebuild(&state.tree);
        state.inadmissible.rebuild(&state.tree);
        reactivate_changed(state, &changed);
    }
}

fn reactivate_changed(state: &mut State, changed: &[NodeId]) {
    // Both the old and the new trees: this runs before and after the rebuild.
    let roots = changed.iter().map(|id| state.tree.node(*id).root);
    let roots: BTreeSet<NodeId> = roots.collect();
    let mut open: Vec<NodeId> = roots.iter().copied().collect();
    while let Some(id) = open.pop() {
        open.extend(&state.tree.node(id).children);
        if let Some(queue) = state.queues.get_mut(id.index()) {
            // The search for flavors restarts: flavors that were tried may fit now.
            queue.generation = queue.generation.saturating_add(1);
        }
    }
    drop_history_below(state, &roots);
    for root in roots {
        reactivate_below(state, root);
    }
}

/// Drops the preemption history in changed trees, and the holds of queues there that admit nothing.
fn drop_history_below(state: &mut State, roots: &BTreeSet<NodeId>) {
    let tree = &state.tree;
    let is_below = |queue: NodeId| roots.contains(&tree.node(queue).root);
    if !state.histories.is_empty() {
        let workloads = &state.workloads;
        let is_in_tree = |id| workloads.get(id).is_some_and(|it| is_below(it.queue));
        state.histories.drop_victims_where(is_in_tree);
    }
    let queues = &state.queues;
    state.holds.end_where(|hold| {
        let queue = queues.get(hold.queue.index());
        is_below(hold.queue) && !queue.is_some_and(|it| it.settings.is_active)
    });
}

/// Returns the inadmissible workloads in the tree of a node to the active queue.
pub(crate) fn reactivate(state: &mut State, node: NodeId) {
    apply_changes(state);
    let root = state.tree.node(node).root;
    reactivate_below(state, root);
}

fn reactivate_below(state: &mut State, root: NodeId) {
    let queues = &mut state.queues;
    state.inadmissible.drain(root, |id| {
        if let Some(queue) = queues.get_mut(id.index()) {
            queue.reactivate();
        }
    });
}

/// Reactivates the trees in which holds have ended; returns whether there were any.
pub(crate) fn reactivate_where_holds_ended(state: &mut State) -> bool {
    let ended = state.holds.take_ended();
    let is_any = !ended.is_empty();
    for queue in ended {
        reactivate(state, queue);
    }
    is_any
}

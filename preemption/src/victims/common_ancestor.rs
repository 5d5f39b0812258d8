//! The lowest common ancestor of two queues in the quota tree.

use crate::ids::NodeId;
use crate::quota::View;
use std::collections::BTreeSet;

/// Returns all cohorts above a queue.
pub(super) fn ancestors(view: &View<'_>, queue: NodeId) -> BTreeSet<NodeId> {
    let up = |id: &NodeId| view.tree.node(*id).parent;
    std::iter::successors(up(&queue), up).collect()
}

/// Returns the two children of the lowest common ancestor of two queues that contain them.
pub(super) fn below_common(view: &View<'_>, ours: NodeId, theirs: NodeId) -> (NodeId, NodeId) {
    let above = ancestors(view, ours);
    let up = |id: NodeId| view.tree.node(id).parent;
    let mut below_theirs = theirs;
    while let Some(parent) = up(below_theirs)
        && !above.contains(&parent)
    {
        below_theirs = parent;
    }
    let common = up(below_theirs);
    let mut below_ours = ours;
    while up(below_ours) != common {
        let Some(parent) = up(below_ours) else {
            break;
        };
        below_ours = parent;
    }
    (below_ours, below_theirs)
}

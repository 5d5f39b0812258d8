//! The queues with inadmissible workloads, so that an event need not visit every queue of a tree.
//!
//! Workloads out of scope stay inadmissible whatever happens, and are not counted.

use crate::ids::NodeId;
use crate::quota::Tree;

/// The queues that may have inadmissible workloads, by the root of their tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct InadmissibleIndex {
    queues: Vec<Vec<NodeId>>,
    is_listed: Vec<bool>,
}

impl InadmissibleIndex {
    /// Adds a queue.
    pub(crate) fn insert(&mut self, tree: &Tree, queue: NodeId) {
        let needed = queue.index().saturating_add(1);
        if self.is_listed.len() < needed {
            self.is_listed.resize(needed, false);
        }
        let Some(is_listed) = self.is_listed.get_mut(queue.index()) else {
            return;
        };
        if std::mem::replace(is_listed, true) {
            return;
        }
        let root = tree.node(queue).root;
        let needed = root.index().saturating_add(1);
        if self.queues.len() < needed {
            self.queues.resize_with(needed, Vec::new);
        }
        if let Some(queues) = self.queues.get_mut(root.index()) {
            queues.push(queue);
        }
    }

    /// Removes the queues below a root and calls `reactivate` with each.
    pub(crate) fn drain(&mut self, root: NodeId, mut reactivate: impl FnMut(NodeId)) {
        let queues = self.queues.get_mut(root.index());
        for queue in queues.into_iter().flat_map(|queues| queues.drain(..)) {
            if let Some(is_listed) = self.is_listed.get_mut(queue.index()) {
                *is_listed = false;
            }
            reactivate(queue);
        }
    }

    /// Regroups the queues after the trees have changed.
    pub(crate) fn rebuild(&mut self, tree: &Tree) {
        let all: Vec<NodeId> = self.queues.iter_mut().flat_map(std::mem::take).collect();
        self.is_listed.fill(false);
        for queue in all {
            self.insert(tree, queue);
        }
    }
}

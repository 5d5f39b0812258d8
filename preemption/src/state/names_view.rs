//! The names that a state stores, and how many.

use super::model::State;
use crate::ids::{NodeId, ResourceId};

/// The names of a state, read-only.
#[derive(Clone, Copy, Debug)]
pub struct NamesView<'a> {
    state: &'a State,
}

impl<'a> NamesView<'a> {
    /// Creates a view of `state`.
    #[must_use]
    pub const fn new(state: &'a State) -> Self {
        Self { state }
    }

    /// Looks up a resource by name, without storing the name.
    #[must_use]
    pub fn resource(self, name: &str) -> Option<ResourceId> {
        self.state.resources.get(name).map(ResourceId)
    }

    /// Returns the number of stored names of resources. Names are never released.
    #[must_use]
    pub fn resource_count(self) -> usize {
        self.state.resources.len()
    }

    /// Returns the number of nodes of the quota tree: ClusterQueues and cohorts, removed ones included.
    #[must_use]
    pub fn node_count(self) -> usize {
        self.state.tree.nodes().count()
    }

    /// Returns the number of classes of equal workloads that a queue stores as inadmissible.
    #[must_use]
    pub fn inadmissible_class_count(self, queue: NodeId) -> usize {
        let queue = self.state.queues.get(queue.index());
        queue.map_or(0, crate::queue::Queue::inadmissible_class_count)
    }
}

//! Queries that need an up-to-date quota tree.

use super::model::State;
use super::reactivation::apply_changes;
use crate::dominant_share::DominantShare;
use crate::ids::NodeId;
use crate::quota::View;

/// Queries on the quota tree, after pending changes of queues and cohorts were applied.
#[derive(Debug)]
pub struct TreeView<'a> {
    state: &'a mut State,
}

impl<'a> TreeView<'a> {
    /// Creates a view of `state`.
    pub const fn new(state: &'a mut State) -> Self {
        Self { state }
    }

    /// Returns whether a queue or cohort is in a cohort cycle or below one, and so excluded from all decisions.
    #[must_use]
    pub fn is_in_cohort_cycle(&mut self, node: NodeId) -> bool {
        apply_changes(self.state);
        self.state.tree.node(node).is_misconfigured
    }

    /// Returns the names from the root of the tree down to a queue or cohort, as `/root/cohort/queue`.
    #[must_use]
    pub fn path(&mut self, node: NodeId) -> String {
        apply_changes(self.state);
        let mut names = Vec::new();
        let mut next = Some(node);
        while let Some(id) = next {
            let node = self.state.tree.node(id);
            names.push(node.name());
            next = node.parent;
        }
        let names = names.into_iter().rev();
        names.flat_map(|name| ["/", name]).collect()
    }

    /// Returns the share of a queue or cohort under fair sharing: per mille of its cohort's lendable quota,
    /// divided by its weight and rounded up; `i64::MAX` if the weight is 0 and it borrows.
    ///
    /// Source: Kueue `pkg/cache/scheduler/fair_sharing.go`, `roundedWeightedShare`.
    #[must_use]
    pub fn weighted_share(&mut self, node: NodeId) -> i64 {
        apply_changes(self.state);
        let mut overlay = std::mem::take(&mut self.state.overlay);
        let view = View::new(&self.state.tree, &self.state.usage, &mut overlay);
        let share = DominantShare::for_node(&view, node).rounded();
        self.state.overlay = overlay;
        share
    }
}

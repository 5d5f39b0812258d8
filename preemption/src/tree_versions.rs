//! Versions of the admitted workloads of each tree, to find out whether an earlier decision is still valid.

use crate::ids::{FlavorId, NodeId};

/// The changes of one tree.
#[derive(Clone, Debug, Default)]
struct TreeChanges {
    /// The version of the last change.
    last: u64,
    /// By flavor: the version of the last change of a workload that uses it.
    by_flavor: Vec<u64>,
}

/// The versions of all trees. One number counts the changes of all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeVersions {
    version: u64,
    /// The version of the last change of queues or cohorts.
    rebuilt: u64,
    /// By root.
    trees: Vec<TreeChanges>,
}

impl TreeVersions {
    /// Returns the current version.
    pub(crate) const fn current(&self) -> u64 {
        self.version
    }

    /// Records a change of queues or cohorts.
    pub(crate) fn rebuild(&mut self, nodes: usize) {
        self.version = self.version.saturating_add(1);
        self.rebuilt = self.version;
        self.trees.clear();
        self.trees.resize_with(nodes, TreeChanges::default);
    }

    /// Records a change of a workload that uses these flavors. Costs the number of flavors.
    pub(crate) fn raise(&mut self, root: NodeId, flavors: impl Iterator<Item = FlavorId>) {
        self.version = self.version.saturating_add(1);
        let Some(tree) = self.trees.get_mut(root.index()) else {
            return;
        };
        tree.last = self.version;
        for flavor in flavors {
            let needed = flavor.index().saturating_add(1);
            if tree.by_flavor.len() < needed {
                tree.by_flavor.resize(needed, 0);
            }
            if let Some(version) = tree.by_flavor.get_mut(flavor.index()) {
                *version = self.version;
            }
        }
    }

    /// Returns whether queues or cohorts have changed since a version.
    pub(crate) const fn has_rebuilt(&self, since: u64) -> bool {
        self.rebuilt > since
    }

    /// Returns whether the tree has changed since a version.
    pub(crate) fn has_changed(&self, root: NodeId, since: u64) -> bool {
        let tree = self.trees.get(root.index());
        self.rebuilt > since || tree.is_none_or(|it| it.last > since)
    }

    /// Returns whether a workload of the tree that uses a flavor, or a queue or cohort, has changed since a version.
    pub(crate) fn has_flavor_changed(&self, root: NodeId, flavor: FlavorId, since: u64) -> bool {
        let tree = self.trees.get(root.index());
        let changed = tree.and_then(|it| it.by_flavor.get(flavor.index()));
        self.rebuilt > since || changed.is_some_and(|version| *version > since)
    }
}

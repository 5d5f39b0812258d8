//! The ClusterQueues of each tree of cohorts.

use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{NodeId, TreeView};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The queues by tree. Computed again after a change of queues or cohorts.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueTrees {
    root_of: BTreeMap<Arc<str>, Arc<str>>,
    members: BTreeMap<Arc<str>, Arc<BTreeSet<Arc<str>>>>,
    is_current: bool,
}

impl QueueTrees {
    /// Forgets the trees.
    pub(crate) const fn reset(&mut self) {
        self.is_current = false;
    }

    /// The ClusterQueues of the tree of one of them.
    pub(crate) fn tree_of(
        &mut self,
        cluster: &mut ClusterState,
        queue: &str,
    ) -> Arc<BTreeSet<Arc<str>>> {
        if !self.is_current {
            self.compute(cluster);
        }
        let root = self.root_of.get(queue);
        let members = root.and_then(|it| self.members.get(it));
        members.map_or_else(|| Arc::new(BTreeSet::from([Arc::from(queue)])), Arc::clone)
    }

    fn compute(&mut self, cluster: &mut ClusterState) {
        let queues = cluster.state().queues();
        let queues: Vec<(Arc<str>, NodeId)> =
            queues.map(|(name, id)| (Arc::from(name), id)).collect();
        let mut members: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
        self.root_of.clear();
        let mut tree = TreeView::new(cluster.state_mut());
        for (name, id) in queues {
            let path = tree.path(id);
            // A queue without a cohort is its own root, and may have the name of a cohort.
            let root: Arc<str> = match path.split('/').nth(2) {
                Some(_) => Arc::from(path.split('/').nth(1).unwrap_or_default()),
                None => Arc::from(path.as_str()),
            };
            members
                .entry(Arc::clone(&root))
                .or_default()
                .insert(Arc::clone(&name));
            self.root_of.insert(name, root);
        }
        let members = members.into_iter().map(|(root, it)| (root, Arc::new(it)));
        self.members = members.collect();
        self.is_current = true;
    }
}

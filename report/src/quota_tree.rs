//! Cohorts and ClusterQueues as trees.

use lockkeeper_simulate::timeline::JobTrace;
use std::collections::{BTreeMap, BTreeSet};

/// A cohort or a ClusterQueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeNode<'a> {
    pub(crate) name: &'a str,
    /// The index of the ClusterQueue in the trace; `None` for a cohort.
    pub(crate) queue: Option<usize>,
    /// The number of ancestors.
    pub(crate) depth: usize,
}

/// All cohorts and ClusterQueues, depth first. Queues without a cohort are at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuotaTree<'a> {
    pub(crate) nodes: Vec<TreeNode<'a>>,
}

impl<'a> QuotaTree<'a> {
    /// Returns the trees of a trace. Cohorts that only queues or other cohorts name are included.
    pub(crate) fn new(trace: &'a JobTrace) -> Self {
        let parents = trace.cohorts.iter();
        let parents: BTreeMap<&str, &str> = parents
            .filter_map(|it| Some((it.name.as_str(), it.parent.as_deref()?)))
            .collect();
        let mut names: Vec<&str> = trace.cohorts.iter().map(|it| it.name.as_str()).collect();
        names.extend(trace.cohorts.iter().filter_map(|it| it.parent.as_deref()));
        let queues = trace.cluster_queues.iter();
        names.extend(queues.filter_map(|it| it.cohort.as_deref()));
        let mut builder = TreeBuilder {
            trace,
            parents: &parents,
            names: &names,
            visited: BTreeSet::new(),
            nodes: Vec::new(),
        };
        let is_root = |name: &&&str| !parents.contains_key(**name);
        for name in names.iter().filter(is_root) {
            builder.visit(name);
        }
        builder.add_queues(None, 0);
        Self {
            nodes: builder.nodes,
        }
    }

    /// Returns a node and all below it.
    pub(crate) fn subtree(&self, at: usize) -> &[TreeNode<'a>] {
        let from = self.nodes.get(at..).unwrap_or_default();
        let Some(depth) = from.first().map(|it| it.depth) else {
            return from;
        };
        let below = from.iter().skip(1).take_while(|it| it.depth > depth);
        let count = below.count().saturating_add(1);
        from.get(..count).unwrap_or_default()
    }

    /// Returns the indices of the children of a node.
    pub(crate) fn children(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let subtree = self.subtree(at);
        let depth = subtree.first().map_or(0, |it| it.depth).saturating_add(1);
        let children = subtree.iter().enumerate();
        let children = children.filter(move |(_, it)| it.depth == depth);
        children.map(move |(offset, _)| at.saturating_add(offset))
    }
}

struct TreeBuilder<'a, 'b> {
    trace: &'a JobTrace,
    parents: &'b BTreeMap<&'a str, &'a str>,
    names: &'b [&'a str],
    visited: BTreeSet<&'a str>,
    nodes: Vec<TreeNode<'a>>,
}

impl<'a> TreeBuilder<'a, '_> {
    /// Adds a cohort and all below it, unless it is in the tree.
    fn visit(&mut self, root: &'a str) {
        // Not recursive: the depth is that of the input.
        let mut open = vec![(root, 0_usize)];
        while let Some((name, depth)) = open.pop() {
            if !self.visited.insert(name) {
                continue;
            }
            self.nodes.push(TreeNode {
                name,
                queue: None,
                depth,
            });
            let below = depth.saturating_add(1);
            self.add_queues(Some(name), below);
            let children = self.names.iter().rev();
            let children = children.filter(|it| self.parents.get(*it) == Some(&name));
            open.extend(children.map(|it| (*it, below)));
        }
    }

    fn add_queues(&mut self, cohort: Option<&str>, depth: usize) {
        let queues = self.trace.cluster_queues.iter().enumerate();
        let queues = queues.filter(|(_, it)| it.cohort.as_deref() == cohort);
        self.nodes.extend(queues.map(|(at, it)| TreeNode {
            name: &it.name,
            queue: Some(at),
            depth,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::QuotaTree;
    use lockkeeper_simulate::timeline::JobTrace;
    use serde_json::json;

    #[test]
    fn tree_has_undeclared_cohorts_and_queues_without_cohort() {
        let trace: JobTrace = serde_json::from_value(json!({
            "cohorts": [{"name": "team", "parent": "all"}],
            "clusterQueues": [
                {"name": "alone", "resourceGroups": []},
                {"name": "a", "cohort": "team", "resourceGroups": []},
                {"name": "b", "cohort": "all", "resourceGroups": []},
                {"name": "c", "cohort": "other", "resourceGroups": []},
            ],
            "jobs": [],
        }))
        .unwrap();
        let tree = QuotaTree::new(&trace);
        let nodes = tree.nodes.iter().map(|it| (it.name, it.queue, it.depth));
        let expected = [
            ("all", None, 0),
            ("b", Some(2), 1),
            ("team", None, 1),
            ("a", Some(1), 2),
            ("other", None, 0),
            ("c", Some(3), 1),
            ("alone", Some(0), 0),
        ];
        assert_eq!(nodes.collect::<Vec<_>>(), expected);
        assert_eq!(tree.subtree(0).len(), 4);
        assert_eq!(tree.children(0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(tree.children(6).count(), 0);
    }
}

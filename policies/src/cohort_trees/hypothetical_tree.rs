//! The quota that a node could borrow from its tree, and the nodes that could borrow from it.
//!
//! Kueue's arithmetic (`resource_node.go`) without usage. The subtree quota of a node is its nominal quota and the
//! quota that its children lend; quota above its lending limit stays local.

#[cfg(test)]
mod tests;

use super::by_flavor::{ByFlavor, FlavorResource, HashedKey};
use super::node::{FactsRef, Limits, NodeFacts, NodeKind, SubjectFacts};
use super::tree::Tree;
use crate::preemption_loops::{
    self, CrossQueueScope, LoopVerdict, PreemptionRules, QueuePreemption,
};
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeSet;

/// The tree of a node with hypothetical facts for that node.
pub(crate) struct HypotheticalTree<'a> {
    /// Parents come before their children.
    nodes: Vec<TreeNode<'a>>,
    /// The index of the node.
    subject: usize,
}

struct TreeNode<'a> {
    name: &'a str,
    parent: Option<usize>,
    is_queue: bool,
    /// Whether it is the subject or one of its descendants.
    is_in_subtree: bool,
    facts: FactsRef<'a>,
}

/// The facts of a cohort without an object.
static EMPTY_FACTS: NodeFacts = NodeFacts {
    parent: None,
    quotas: ByFlavor::new(),
    has_checks: false,
    preempts_equals: false,
    preemption: QueuePreemption {
        preempts_within_queue: false,
        cross_queue_scope: CrossQueueScope::Never,
        may_borrow: false,
    },
    allowed_priority_classes: None,
};

/// The quota of one resource of one flavor in a tree.
pub(crate) struct ResourceTotals<'w, 'a> {
    tree: &'w HypotheticalTree<'a>,
    /// The limits and the subtree quota of each node.
    nodes: Vec<(Option<&'a Limits>, Quantity)>,
}

/// The names from a cohort up to the root of its tree.
pub(crate) enum CohortPath<'a> {
    /// The path ends at the root.
    ReachesRoot(Vec<&'a str>),
    /// The path returns to its first cohort.
    ReturnsToStart(Vec<&'a str>),
    /// The path runs into a cycle further up.
    CycleAbove,
}

/// The path from a cohort to its root, as far as the objects are unambiguous. Costs its length.
pub(crate) fn path_to_root<'a>(
    tree: &'a Tree,
    from: &'a str,
    parent: Option<&'a str>,
) -> CohortPath<'a> {
    let mut names = vec![from];
    let mut seen = BTreeSet::from([from]);
    let mut next = parent;
    while let Some(name) = next {
        names.push(name);
        if name == from {
            return CohortPath::ReturnsToStart(names);
        }
        if !seen.insert(name) {
            return CohortPath::CycleAbove;
        }
        let cohort = tree.node(NodeKind::Cohort, name);
        // With two versions of a cohort its parent is unknown, so the path ends there.
        let certain = cohort.filter(|_| !tree.is_ambiguous());
        next = certain.and_then(|it| it.parent.as_deref());
    }
    CohortPath::ReachesRoot(names)
}

/// The tree is not defined: its cohorts form a cycle, or the objects are ambiguous.
pub(super) struct UndefinedTree;

/// The root cohort of a node with these facts; `None` for a queue without cohort.
/// Costs the depth of the tree.
pub(super) fn root_cohort<'a>(
    tree: &'a Tree,
    kind: NodeKind,
    name: &'a str,
    facts: &'a SubjectFacts<'_>,
) -> Result<Option<&'a str>, UndefinedTree> {
    if tree.is_ambiguous() {
        return Err(UndefinedTree);
    }
    let first = match (kind, facts.parent()) {
        (NodeKind::Queue, None) => return Ok(None),
        (NodeKind::Queue, Some(above)) => {
            let cohort = tree.node(NodeKind::Cohort, above);
            (above, cohort.and_then(|it| it.parent.as_deref()))
        }
        (NodeKind::Cohort, above) => (name, above),
    };
    match path_to_root(tree, first.0, first.1) {
        CohortPath::ReachesRoot(names) => Ok(names.last().copied()),
        CohortPath::ReturnsToStart(_) | CohortPath::CycleAbove => Err(UndefinedTree),
    }
}

impl<'a> HypotheticalTree<'a> {
    /// The tree of a node with these facts, which replace the stored ones. `None` if its cohorts form a cycle, or the
    /// tree is ambiguous. Costs the size of the tree.
    pub(crate) fn for_node(
        tree: &'a Tree,
        kind: NodeKind,
        name: &'a str,
        facts: &'a SubjectFacts<'_>,
    ) -> Option<Self> {
        let root = root_cohort(tree, kind, name, facts).ok()?;
        let mut whole = Self {
            nodes: Vec::new(),
            subject: 0,
        };
        match root {
            None => whole.push((kind, name), None, facts.as_ref(), true),
            Some(root) => whole.add_tree(tree, root, (kind, name), facts.as_ref()),
        }
        Some(whole)
    }

    fn push(
        &mut self,
        (kind, name): (NodeKind, &'a str),
        above: Option<usize>,
        facts: FactsRef<'a>,
        is_it: bool,
    ) {
        if is_it {
            self.subject = self.nodes.len();
        }
        let parent = above.and_then(|it| self.nodes.get(it));
        let is_inside = is_it || parent.is_some_and(|it| it.is_in_subtree);
        self.nodes.push(TreeNode {
            name,
            parent: above,
            is_queue: kind == NodeKind::Queue,
            is_in_subtree: is_inside,
            facts,
        });
    }

    /// Adds all nodes from the root down.
    fn add_tree(
        &mut self,
        tree: &'a Tree,
        root: &'a str,
        node: (NodeKind, &'a str),
        facts: FactsRef<'a>,
    ) {
        let known = |it: (NodeKind, &str)| {
            if it == node {
                return facts;
            }
            // As in Kueue, a cohort exists as soon as a queue or cohort names it as its parent.
            FactsRef::Stored(tree.node(it.0, it.1).unwrap_or(&EMPTY_FACTS))
        };
        let root = (NodeKind::Cohort, root);
        self.push(root, None, known(root), root == node);
        let mut next = 0;
        while let Some(entry) = self.nodes.get(next) {
            let (name, is_queue) = (entry.name, entry.is_queue);
            if !is_queue {
                for (kind, child) in tree.children(name) {
                    let child = (*kind, child.as_str());
                    // The stored version of the subject is replaced below.
                    if child != node {
                        self.push(child, Some(next), known(child), false);
                    }
                }
                if facts.parent() == Some(name) {
                    self.push(node, Some(next), facts, true);
                }
            }
            next = next.saturating_add(1);
        }
    }

    /// The queues with their names, in a stable order.
    pub(super) fn queues(&self) -> impl Iterator<Item = (&'a str, FactsRef<'a>)> {
        let queues = self.nodes.iter().filter(|it| it.is_queue);
        queues.map(|it| (it.name, it.facts))
    }

    /// Whether a cohort is in another one.
    pub(super) fn is_nested(&self) -> bool {
        let mut cohorts = self.nodes.iter().filter(|it| !it.is_queue);
        cohorts.any(|it| it.parent.is_some())
    }

    /// Whether the policies of the tree alone rule out preemption loops.
    pub(super) fn loop_verdict(&self, rules: PreemptionRules) -> LoopVerdict {
        let policies: Vec<QueuePreemption> =
            self.queues().map(|(_, facts)| facts.preemption()).collect();
        preemption_loops::loop_verdict(&policies, self.is_nested(), rules)
    }

    /// Whether a queue outside the subtree could borrow this quota.
    pub(super) fn has_borrower(&self, of: FlavorResource<'_>) -> bool {
        let key = HashedKey::new(of);
        let mut others = self
            .nodes
            .iter()
            .filter(|it| it.is_queue && !it.is_in_subtree);
        others.any(|other| {
            let limits = other.facts.limits(key);
            limits.is_some_and(|it| it.borrowing.is_none_or(|limit| !limit.is_zero()))
        })
    }

    /// The nominal quotas of the descendants, without zeros.
    pub(crate) fn nominal_quotas_below(&self, of: FlavorResource<'_>) -> Vec<Quantity> {
        let key = HashedKey::new(of);
        let all = self.nodes.iter().enumerate();
        let below = all.filter(|(index, it)| it.is_in_subtree && *index != self.subject);
        below
            .filter_map(|(_, it)| Some(it.facts.limits(key)?.nominal))
            .filter(|it| !it.is_zero())
            .collect()
    }

    /// The quota of the tree. `None` on overflow. Costs the size of the tree.
    pub(crate) fn totals(&self, of: FlavorResource<'_>) -> Option<ResourceTotals<'_, 'a>> {
        let key = HashedKey::new(of);
        let limits = self.nodes.iter().map(|it| it.facts.limits(key));
        let mut sums = ResourceTotals {
            tree: self,
            nodes: limits.map(|it| (it, Quantity::ZERO)).collect(),
        };
        // Children come after their parents, so in reverse each subtree is complete when read.
        for (index, entry) in self.nodes.iter().enumerate().rev() {
            let nominal = sums.limits(index).map_or(Quantity::ZERO, |it| it.nominal);
            let subtree = sums.subtree(index).checked_add(nominal)?;
            sums.set_subtree(index, subtree);
            if let Some(above) = entry.parent {
                let shared = subtree.checked_sub(sums.local_quota(index)?)?;
                let total = sums.subtree(above).checked_add(shared)?;
                sums.set_subtree(above, total);
            }
        }
        Some(sums)
    }
}

impl<'a> ResourceTotals<'_, 'a> {
    fn subtree(&self, index: usize) -> Quantity {
        self.nodes.get(index).map_or(Quantity::ZERO, |it| it.1)
    }

    fn limits(&self, index: usize) -> Option<&'a Limits> {
        self.nodes.get(index)?.0
    }

    fn set_subtree(&mut self, index: usize, to: Quantity) {
        if let Some((_, subtree)) = self.nodes.get_mut(index) {
            *subtree = to;
        }
    }

    /// The quota that a node does not lend (Kueue's `localQuota`).
    fn local_quota(&self, index: usize) -> Option<Quantity> {
        match self.limits(index).and_then(|it| it.lending) {
            None => Some(Quantity::ZERO),
            Some(limit) => Some(self.subtree(index).checked_sub(limit)?.max(Quantity::ZERO)),
        }
    }

    /// The most that a node could use (Kueue's `potentialAvailable`). Costs the depth of the tree.
    fn potential_available(&self, index: usize) -> Option<Quantity> {
        let mut way = vec![index];
        let mut node = self.tree.nodes.get(index)?;
        while let Some(above) = node.parent {
            way.push(above);
            node = self.tree.nodes.get(above)?;
        }
        let mut most = None;
        // From the root down: the quota of a node depends on that of its parent.
        for index in way.into_iter().rev() {
            let subtree = self.subtree(index);
            let Some(above) = most else {
                most = Some(subtree);
                continue;
            };
            let borrowing = self.limits(index).and_then(|it| it.borrowing);
            let all = self.local_quota(index)?.checked_add(above)?;
            most = Some(match borrowing {
                Some(limit) => all.min(subtree.checked_add(limit)?),
                None => all,
            });
        }
        most
    }

    /// The subtree quota of the subject.
    pub(crate) fn subtree_quota(&self) -> Quantity {
        self.subtree(self.tree.subject)
    }

    /// The most that the subject could borrow if no other node used quota: the quota that its parent could use, less
    /// the part that the subject lends. `None` without a parent, or on overflow.
    pub(super) fn max_borrowable(&self) -> Option<Quantity> {
        self.max_borrowable_at(self.tree.subject)
    }

    /// The same for each queue, in their order.
    pub(super) fn max_borrowable_per_queue(&self) -> impl Iterator<Item = Option<Quantity>> {
        let nodes = self.tree.nodes.iter().enumerate();
        let queues = nodes.filter(|(_, it)| it.is_queue);
        queues.map(|(at, _)| self.max_borrowable_at(at))
    }

    fn max_borrowable_at(&self, at: usize) -> Option<Quantity> {
        let above = self.tree.nodes.get(at)?.parent?;
        // The parent counts the quota that the node lends; using that part is not borrowing.
        let shared = self.subtree(at).checked_sub(self.local_quota(at)?)?;
        self.potential_available(above)?.checked_sub(shared)
    }
}

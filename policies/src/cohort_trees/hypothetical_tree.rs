//! The quota that a node could borrow from its tree, and the nodes that could borrow from it.
//!
//! Kueue's arithmetic (`resource_node.go`) without usage. The subtree quota of a node is its nominal quota and the
//! quota that its children lend; quota above its lending limit stays local.

#[cfg(test)]
mod tests;

use super::by_flavor::{ByFlavor, FlavorResource, HashedKey};
use super::lending::{lent_quota, potential_available};
use super::node::{Limits, NodeFacts, NodeKind, SubjectFacts};
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
    /// The quotas of the node if they are those of an object.
    object_quotas: ByFlavor<Limits, &'a str>,
}

/// A node with facts that replace its stored ones.
type Subject<'a> = ((NodeKind, &'a str), SubjectFacts<'a>);

struct TreeNode<'a> {
    name: &'a str,
    parent: Option<usize>,
    is_queue: bool,
    /// Whether it is the subject or one of its descendants.
    is_in_subtree: bool,
    facts: SubjectFacts<'a>,
}

/// The facts of a cohort without an object.
static EMPTY_FACTS: NodeFacts = NodeFacts {
    parent: None,
    quotas: ByFlavor::new(),
    has_checks: false,
    preempts_equals: false,
    places_on_nodes: false,
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
    nodes: Vec<(Option<&'w Limits>, Quantity)>,
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
    facts: SubjectFacts<'a>,
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
        facts: SubjectFacts<'a>,
    ) -> Option<Self> {
        let root = root_cohort(tree, kind, name, facts).ok()?;
        let mut whole = Self::new();
        if let SubjectFacts::Object(_) = facts {
            whole.object_quotas = facts.quotas().collect();
        }
        let subject = (kind, name);
        match root {
            None => whole.push(subject, None, facts, true),
            Some(root) => whole.add_tree(tree, root, Some((subject, facts))),
        }
        Some(whole)
    }

    /// The stored tree below this root, whose subject is the root. Costs the size of the tree.
    pub(super) fn stored(tree: &'a Tree, root: &'a str) -> Self {
        let mut whole = Self::new();
        whole.add_tree(tree, root, None);
        whole
    }

    const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            subject: 0,
            object_quotas: ByFlavor::new(),
        }
    }

    fn limits(&self, node: &TreeNode<'a>, key: HashedKey<'_>) -> Option<&Limits> {
        match node.facts {
            SubjectFacts::Stored(facts) => facts.quotas.get_hashed(key),
            SubjectFacts::Object(_) => self.object_quotas.get_hashed(key),
        }
    }

    fn push(
        &mut self,
        (kind, name): (NodeKind, &'a str),
        above: Option<usize>,
        facts: SubjectFacts<'a>,
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

    /// Adds all nodes from the root down. The facts of the subject replace the stored ones.
    fn add_tree(&mut self, tree: &'a Tree, root: &'a str, subject: Option<Subject<'a>>) {
        let known = |it: (NodeKind, &str)| match subject {
            Some((node, facts)) if it == node => facts,
            // As in Kueue, a cohort exists as soon as a queue or cohort names it as its parent.
            _ => SubjectFacts::Stored(tree.node(it.0, it.1).unwrap_or(&EMPTY_FACTS)),
        };
        let is_subject = |it| subject.is_some_and(|(node, _)| node == it);
        let root = (NodeKind::Cohort, root);
        self.push(root, None, known(root), is_subject(root));
        let mut next = 0;
        while let Some(entry) = self.nodes.get(next) {
            let (name, is_queue) = (entry.name, entry.is_queue);
            if !is_queue {
                for (kind, child) in tree.children(name) {
                    let child = (*kind, child.as_str());
                    // The stored version of the subject is replaced below.
                    if !is_subject(child) {
                        self.push(child, Some(next), known(child), false);
                    }
                }
                if let Some((node, facts)) = subject
                    && facts.parent() == Some(name)
                {
                    self.push(node, Some(next), facts, true);
                }
            }
            next = next.saturating_add(1);
        }
    }

    /// The cohorts with the positions of their parents among them, parents first.
    pub(super) fn cohorts(&self) -> impl Iterator<Item = (&'a str, Option<usize>)> {
        let mut positions = vec![None; self.nodes.len()];
        let mut count = 0_usize;
        let cohorts = self.nodes.iter().enumerate();
        cohorts.filter(|(_, it)| !it.is_queue).map(move |(at, it)| {
            if let Some(position) = positions.get_mut(at) {
                *position = Some(count);
            }
            count = count.saturating_add(1);
            let parent = it.parent.and_then(|at| *positions.get(at)?);
            (it.name, parent)
        })
    }

    /// The resources that cohorts have quota for, some several times.
    pub(super) fn cohort_resources(&self) -> impl Iterator<Item = FlavorResource<'a>> {
        let cohorts = self.nodes.iter().filter(|it| !it.is_queue);
        cohorts.flat_map(|it| it.facts.quotas().map(|(of, _)| of))
    }

    /// The queues with their names, in a stable order.
    pub(super) fn queues(&self) -> impl Iterator<Item = (&'a str, SubjectFacts<'a>)> {
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
            let limits = self.limits(other, key);
            limits.is_some_and(|it| it.borrowing.is_none_or(|limit| !limit.is_zero()))
        })
    }

    /// The nominal quotas of the descendants, without zeros.
    pub(crate) fn nominal_quotas_below(&self, of: FlavorResource<'_>) -> Vec<Quantity> {
        let key = HashedKey::new(of);
        let all = self.nodes.iter().enumerate();
        let below = all.filter(|(index, it)| it.is_in_subtree && *index != self.subject);
        below
            .filter_map(|(_, it)| Some(self.limits(it, key)?.nominal))
            .filter(|it| !it.is_zero())
            .collect()
    }

    /// The quota of the tree. `None` on overflow. Costs the size of the tree.
    pub(crate) fn totals(&self, of: FlavorResource<'_>) -> Option<ResourceTotals<'_, 'a>> {
        let key = HashedKey::new(of);
        let limits = self.nodes.iter().map(|it| self.limits(it, key));
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
                let lent = lent_quota(sums.limits(index), subtree)?;
                let total = sums.subtree(above).checked_add(lent)?;
                sums.set_subtree(above, total);
            }
        }
        Some(sums)
    }
}

impl<'w> ResourceTotals<'w, '_> {
    fn subtree(&self, index: usize) -> Quantity {
        self.nodes.get(index).map_or(Quantity::ZERO, |it| it.1)
    }

    fn limits(&self, index: usize) -> Option<&'w Limits> {
        self.nodes.get(index)?.0
    }

    fn set_subtree(&mut self, index: usize, to: Quantity) {
        if let Some((_, subtree)) = self.nodes.get_mut(index) {
            *subtree = to;
        }
    }

    /// The most that a node could use. Costs the depth of the tree.
    fn potential_available(&self, index: usize) -> Option<Quantity> {
        let mut path = vec![index];
        let mut node = self.tree.nodes.get(index)?;
        while let Some(above) = node.parent {
            path.push(above);
            node = self.tree.nodes.get(above)?;
        }
        let path = path
            .into_iter()
            .map(|it| (self.limits(it), self.subtree(it)));
        potential_available(path.rev())
    }

    /// The limits and subtree quotas of the cohorts, in the order of [`HypotheticalTree::cohorts`].
    pub(super) fn cohort_quotas(&self) -> impl Iterator<Item = (Option<Limits>, Quantity)> {
        let nodes = self.tree.nodes.iter().zip(&self.nodes);
        let cohorts = nodes.filter(|(node, _)| !node.is_queue);
        cohorts.map(|(_, (limits, subtree))| (limits.copied(), *subtree))
    }

    /// The subtree quota of the subject.
    pub(crate) fn subtree_quota(&self) -> Quantity {
        self.subtree(self.tree.subject)
    }

    /// The most that the subject could borrow if no other node used quota: the quota that its parent could use, less
    /// the part that the subject lends. `None` without a parent, or on overflow.
    pub(super) fn max_borrowable(&self) -> Option<Quantity> {
        let subject = self.tree.subject;
        let above = self.tree.nodes.get(subject)?.parent?;
        // The parent counts the quota that the node lends; using that part is not borrowing.
        let lent = lent_quota(self.limits(subject), self.subtree(subject))?;
        self.potential_available(above)?.checked_sub(lent)
    }
}

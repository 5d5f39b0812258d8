//! A queue within its tree.
//!
//! Rules about trees run for each queue. Walking the whole tree each time would cost the square of its size, so what they
//! need of the tree is computed once and cached until an object of the project changes. A queue whose facts differ from
//! the stored ones changes only the sums of the cohorts above it.

#[cfg(test)]
mod tests;

use super::by_flavor::{FlavorResource, HashedKey};
use super::hypothetical_tree::{HypotheticalTree, root_cohort};
use super::node::{Limits, NodeFacts, NodeKind, SubjectFacts};
use super::summary::{ResourceSummary, TreeSummary};
use super::tree::Tree;
use crate::preemption_loops::{self, LoopVerdict, PreemptionRules};
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node with its tree.
pub(crate) enum QueueView<'a> {
    /// A queue, with a summary of its tree.
    Summarized(QueueInTree<'a>),
    /// Any other node.
    Computed(HypotheticalTree<'a>),
}

/// A queue that is in the stored tree with the same parent, or not at all.
pub(crate) struct QueueInTree<'a> {
    tree: &'a Tree,
    name: &'a str,
    facts: SubjectFacts<'a>,
    summary: Arc<TreeSummary>,
    /// The facts and the position of its stored version.
    stored: Option<(&'a NodeFacts, usize)>,
    /// The cohorts above it, up to the root, by their positions.
    path: Vec<usize>,
}

impl<'a> QueueView<'a> {
    /// The view of a node with these facts, which replace the stored ones. `None` if its cohorts form a cycle, or the
    /// tree is ambiguous. Costs the depth of the tree if the summary is cached, otherwise its size.
    pub(crate) fn for_node(
        tree: &'a Tree,
        kind: NodeKind,
        name: &'a str,
        facts: SubjectFacts<'a>,
    ) -> Option<Self> {
        let root = root_cohort(tree, kind, name, facts).ok()?;
        let root = root.filter(|_| kind == NodeKind::Queue);
        match root.and_then(|root| QueueInTree::find(tree, root, name, facts)) {
            Some(queue) => Some(Self::Summarized(queue)),
            None => HypotheticalTree::for_node(tree, kind, name, facts).map(Self::Computed),
        }
    }

    /// Whether the policies of the tree alone rule out preemption loops.
    pub(crate) fn loop_verdict(&self, rules: PreemptionRules) -> LoopVerdict {
        match self {
            Self::Summarized(queue) => queue.loop_verdict(rules),
            Self::Computed(whole) => whole.loop_verdict(rules),
        }
    }

    /// Whether another queue of the tree could borrow this quota.
    pub(crate) fn has_borrower(&self, of: FlavorResource<'_>) -> bool {
        match self {
            Self::Summarized(queue) => {
                let position = queue.stored.map(|(_, position)| position);
                queue.summary.has_borrower(HashedKey::new(of), position)
            }
            Self::Computed(whole) => whole.has_borrower(of),
        }
    }

    /// The most that the node could borrow if no other node used quota, given its own limits. `None` without a parent,
    /// or on overflow.
    pub(crate) fn max_borrowable(
        &self,
        of: FlavorResource<'_>,
        limits: &Limits,
    ) -> Option<Quantity> {
        match self {
            Self::Summarized(queue) => queue.max_borrowable(HashedKey::new(of), limits),
            Self::Computed(whole) => whole.totals(of)?.max_borrowable(),
        }
    }
}

impl<'a> QueueInTree<'a> {
    /// `None` for a queue that moved within its tree: it changes two branches.
    fn find(tree: &'a Tree, root: &'a str, name: &'a str, facts: SubjectFacts<'a>) -> Option<Self> {
        let make = || TreeSummary::from_tree(&HypotheticalTree::stored(tree, root));
        let summary = tree.summaries.get(root, make);
        let stored = match summary.queue_position(name) {
            Some(position) => Some((tree.node(NodeKind::Queue, name)?, position)),
            None => None,
        };
        let moved = |(stored, _): (&NodeFacts, _)| stored.parent.as_deref() != facts.parent();
        if stored.is_some_and(moved) {
            return None;
        }
        Some(Self {
            path: summary.path_from(facts.parent()?)?,
            tree,
            name,
            facts,
            summary,
            stored,
        })
    }

    fn loop_verdict(&self, rules: PreemptionRules) -> LoopVerdict {
        if matches!(self.facts, SubjectFacts::Stored(_)) {
            let policies = &self.summary.preemption_policies;
            return preemption_loops::loop_verdict(policies, self.summary.is_nested, rules);
        }
        let whole = HypotheticalTree::for_node(self.tree, NodeKind::Queue, self.name, self.facts);
        whole.map_or(LoopVerdict::Unknown, |it| it.loop_verdict(rules))
    }

    fn max_borrowable(&self, key: HashedKey<'_>, limits: &Limits) -> Option<Quantity> {
        let stored = self
            .stored
            .and_then(|(facts, _)| facts.quotas.get_hashed(key));
        self.summary.max_borrowable(key, &self.path, stored, limits)
    }
}

impl TreeSummary {
    /// Costs the size of the tree times the number of its resources.
    fn from_tree(whole: &HypotheticalTree<'_>) -> Self {
        let mut out = Self {
            is_nested: whole.is_nested(),
            ..Self::default()
        };
        for (position, (name, parent)) in whole.cohorts().enumerate() {
            out.cohort_positions.insert(name.to_owned(), position);
            out.cohort_parents.push(parent);
        }
        let mut resources: BTreeMap<FlavorResource<'_>, ResourceSummary> = BTreeMap::new();
        for of in whole.cohort_resources() {
            resources.entry(of).or_default();
        }
        for (position, (name, facts)) in whole.queues().enumerate() {
            out.queue_positions.insert(name.to_owned(), position);
            if !out.preemption_policies.contains(&facts.preemption()) {
                out.preemption_policies.push(facts.preemption());
            }
            for (of, limits) in facts.quotas() {
                let borrowers = &mut resources.entry(of).or_default().borrowers;
                if borrowers.len() < 2 && limits.borrowing.is_none_or(|limit| !limit.is_zero()) {
                    borrowers.push(position);
                }
            }
        }
        for (of, resource) in &mut resources {
            let totals = whole.totals(*of);
            resource.cohorts = totals.map(|it| it.cohort_quotas().collect());
        }
        out.resources = resources.into_iter().collect();
        out
    }
}

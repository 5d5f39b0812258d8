//! A queue within its tree.
//!
//! Rules about trees run for each queue. Walking the whole tree each time would cost the square of its size, so the
//! results for all queues of a tree are computed once and cached until an object of the project changes.

#[cfg(test)]
mod tests;

use super::by_flavor::FlavorResource;
use super::hypothetical_tree::{HypotheticalTree, root_cohort};
use super::node::{NodeKind, SubjectFacts};
use super::summary::TreeSummary;
use super::tree::Tree;
use crate::preemption_loops::{self, LoopVerdict, PreemptionRules};
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node with its tree.
pub(crate) enum QueueView<'a> {
    /// A queue with the stored facts, by its index in the summary.
    Cached(Arc<TreeSummary>, usize),
    /// Any other node.
    Computed(HypotheticalTree<'a>),
}

impl<'a> QueueView<'a> {
    /// The view of a node with these facts, which replace the stored ones. `None` if its cohorts form a cycle, or the
    /// tree is ambiguous. Costs the depth of the tree if the summary is cached, otherwise its size.
    pub(crate) fn for_node(
        tree: &'a Tree,
        kind: NodeKind,
        name: &'a str,
        facts: &'a SubjectFacts<'_>,
    ) -> Option<Self> {
        let whole = || HypotheticalTree::for_node(tree, kind, name, facts);
        let root = root_cohort(tree, kind, name, facts).ok()?;
        // Facts that differ from the stored ones, as in an update, have no cached summary.
        let is_stored = matches!(facts, SubjectFacts::Stored(_));
        let Some(root) = root.filter(|_| is_stored && kind == NodeKind::Queue) else {
            return whole().map(Self::Computed);
        };
        let summary = tree
            .summaries
            .get(root, || Some(TreeSummary::from_tree(&whole()?)))?;
        let number = summary.queue_indexes.get(name).copied()?;
        Some(Self::Cached(summary, number))
    }

    /// Whether the policies of the tree alone rule out preemption loops.
    pub(crate) fn loop_verdict(&self, rules: PreemptionRules) -> LoopVerdict {
        match self {
            Self::Cached(all, _) => {
                preemption_loops::loop_verdict(&all.preemption_policies, all.is_nested, rules)
            }
            Self::Computed(whole) => whole.loop_verdict(rules),
        }
    }

    /// Whether another queue of the tree could borrow this quota.
    pub(crate) fn has_borrower(&self, of: FlavorResource<'_>) -> bool {
        match self {
            Self::Cached(all, number) => {
                let mut others = all.borrowers.get(of).into_iter().flatten();
                others.any(|other| other != number)
            }
            Self::Computed(whole) => whole.has_borrower(of),
        }
    }

    /// The most that the node could borrow if no other node used quota. `None` without a parent, or on overflow.
    pub(crate) fn max_borrowable(&self, of: FlavorResource<'_>) -> Option<Quantity> {
        match self {
            Self::Cached(all, number) => *all.borrowable.get(of)?.get(*number)?,
            Self::Computed(whole) => whole.totals(of)?.max_borrowable(),
        }
    }
}

impl TreeSummary {
    fn from_tree(whole: &HypotheticalTree<'_>) -> Self {
        let mut out = Self {
            is_nested: whole.is_nested(),
            ..Self::default()
        };
        let mut borrowers: BTreeMap<FlavorResource<'_>, Vec<usize>> = BTreeMap::new();
        for (number, (name, facts)) in whole.queues().enumerate() {
            out.queue_indexes.insert(name.to_owned(), number);
            if !out.preemption_policies.contains(&facts.preemption()) {
                out.preemption_policies.push(facts.preemption());
            }
            for (of, limits) in facts.quotas() {
                let some = borrowers.entry(of).or_default();
                // Two are enough: at most one of them is the queue itself.
                if some.len() < 2 && limits.borrowing.is_none_or(|limit| !limit.is_zero()) {
                    some.push(number);
                }
            }
        }
        let most = borrowers.keys().filter_map(|of| {
            let sums = whole.totals(*of)?;
            Some((*of, sums.max_borrowable_per_queue().collect()))
        });
        out.borrowable = most.collect();
        out.borrowers = borrowers.into_iter().collect();
        out
    }
}

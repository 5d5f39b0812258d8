//! Where a queue stands in its tree.
//!
//! Rules about trees look at each queue of it. Looking at the whole tree each time costs the square of its size,
//! so what a tree says of its queues is made once, and kept until something in the family changes.

#[cfg(test)]
mod tests;

use super::sums::{Whole, root};
use super::{FlavorResource, NodeFacts, NodeKind, Tree};
use crate::endless::{self, Hunter, Rules, Verdict};
use lockkeeper_api::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// What a tree says of one of its nodes.
pub(crate) enum Standing<'a> {
    /// Of a queue that the tree has as it is.
    Known(Arc<Summary>, &'a str),
    /// Of any other node.
    Whole(Whole<'a>),
}

/// What a tree says of its queues.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// What its policies let workloads do, each once.
    hunters: Vec<Hunter>,
    is_nested: bool,
    /// How many queues could borrow, and which.
    borrowers: BTreeMap<FlavorResource, BTreeSet<String>>,
    /// The most that each queue could borrow.
    borrowable: BTreeMap<FlavorResource, BTreeMap<String, Quantity>>,
}

/// The summaries of the trees of a family, by the names of their roots. They follow from the rest.
#[derive(Debug, Default)]
pub(super) struct Summaries(Mutex<BTreeMap<String, Arc<Summary>>>);

impl Summaries {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Something has changed.
    pub(super) fn forget(&mut self) {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.clear();
    }

    fn get(&self, root: &str, make: impl FnOnce() -> Option<Summary>) -> Option<Arc<Summary>> {
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all().get(root) {
            return Some(Arc::clone(known));
        }
        // Two who ask at once may both make it, and make the same.
        let summary = Arc::new(make()?);
        all().insert(root.to_owned(), Arc::clone(&summary));
        Some(summary)
    }
}

impl Clone for Summaries {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl PartialEq for Summaries {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Summaries {}

impl<'a> Standing<'a> {
    /// Where a node that has these facts stands, whatever the world knows of it. `None` if it hangs on a circle of
    /// cohorts, or if the tree is ambiguous. Costs the depth of the tree for a queue that the world knows as it is
    /// and that is not the first to be asked for, and the size of the tree otherwise.
    pub(crate) fn of(
        tree: &'a Tree,
        kind: NodeKind,
        name: &'a str,
        facts: &'a NodeFacts,
    ) -> Option<Self> {
        let whole = || Whole::of(tree, kind, name, facts);
        let root = root(tree, kind, name, facts).ok()?;
        let is_known = kind == NodeKind::Queue && tree.node(kind, name) == Some(facts);
        let Some(root) = root.filter(|_| is_known) else {
            return whole().map(Self::Whole);
        };
        let summary = tree.summaries.get(root, || Some(Summary::of(&whole()?)))?;
        Some(Self::Known(summary, name))
    }

    /// Whether its policies alone keep preemption in the tree from going round.
    pub(crate) fn verdict(&self, rules: Rules) -> Verdict {
        match self {
            Self::Known(all, _) => endless::verdict(&all.hunters, all.is_nested, rules),
            Self::Whole(whole) => whole.verdict(rules),
        }
    }

    /// Whether a queue elsewhere in the tree could borrow it.
    pub(crate) fn has_borrower(&self, of: &FlavorResource) -> bool {
        match self {
            Self::Known(all, name) => {
                let mut others = all.borrowers.get(of).into_iter().flatten();
                others.any(|other| other != name)
            }
            Self::Whole(whole) => whole.has_borrower(of),
        }
    }

    /// The most that the node could borrow if all the others used nothing. `None` if it has no parent, or if it is
    /// too much to be counted.
    pub(crate) fn borrowable(&self, of: &FlavorResource) -> Option<Quantity> {
        match self {
            Self::Known(all, name) => all.borrowable.get(of)?.get(*name).copied(),
            Self::Whole(whole) => whole.sums(of)?.borrowable(),
        }
    }
}

impl Summary {
    fn of(whole: &Whole<'_>) -> Self {
        let mut out = Self {
            is_nested: whole.is_nested(),
            ..Self::default()
        };
        let mut asked = BTreeSet::new();
        for (name, facts) in whole.queues() {
            if !out.hunters.contains(&facts.hunter) {
                out.hunters.push(facts.hunter);
            }
            for (of, limits) in &facts.quotas {
                asked.insert(of);
                if limits.borrowing.is_none_or(|limit| !limit.is_zero()) {
                    let borrowers = out.borrowers.entry(of.clone()).or_default();
                    borrowers.insert(name.to_owned());
                }
            }
        }
        for of in asked {
            let most = whole.sums(of).map(|sums| sums.borrowable_of_queues());
            let most = most.into_iter().flatten();
            let most = most.map(|(name, most)| (name.to_owned(), most)).collect();
            out.borrowable.insert(of.clone(), most);
        }
        out
    }
}

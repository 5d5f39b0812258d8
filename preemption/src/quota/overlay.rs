//! Hypothetical changes of usage on top of the usage of the tree.
//!
//! A decision simulates admissions and preemptions in a [`View`]. The base usage is never written, so a decision
//! does not have to restore it.

use super::tree::{Tree, UsageStore};
use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, NodeId};

/// The changed cells. Kept between decisions to reuse the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    /// By cell: the epoch of its last change.
    epochs: Vec<u32>,
    /// By cell: the usage after that change. Separate from the epochs: a state is often copied, and a vector of plain
    /// amounts is copied with one memory copy.
    usages: Vec<Amount>,
    epoch: u32,
    /// The changed cell and its usage before, for each change in order.
    log: Vec<(CellId, Amount)>,
}

impl Overlay {
    /// Sets the number of cells. If the number changes, all changes are dropped.
    pub(crate) fn resize(&mut self, cells: usize) {
        if self.epochs.len() != cells {
            self.usages.resize(cells, Amount::ZERO);
            self.epochs.resize(cells, 0);
            self.clear();
        }
    }

    /// Drops all changes.
    fn clear(&mut self) {
        self.epochs.fill(0);
        // `View::new` starts with epoch 1, so no cell counts as changed.
        self.epoch = 0;
    }

    fn usage(&self, cell: CellId) -> Option<Amount> {
        let epoch = self.epochs.get(cell.index())?;
        let usage = self.usages.get(cell.index())?;
        // A cell with an older epoch was changed in an earlier view.
        (*epoch == self.epoch).then_some(*usage)
    }

    fn set(&mut self, cell: CellId, to: Amount) {
        if let (Some(epoch), Some(usage)) = (
            self.epochs.get_mut(cell.index()),
            self.usages.get_mut(cell.index()),
        ) {
            (*epoch, *usage) = (self.epoch, to);
        }
    }
}

/// A point to roll back to.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Mark(usize);

/// The base usage with the changes of an overlay on top.
pub(crate) struct View<'a> {
    pub(crate) tree: &'a Tree,
    base: &'a Vec<Amount>,
    overlay: &'a mut Overlay,
}

impl<'a> View<'a> {
    /// Creates a view without changes.
    pub(crate) fn new(tree: &'a Tree, base: &'a Vec<Amount>, overlay: &'a mut Overlay) -> Self {
        overlay.log.clear();
        overlay.resize(base.len());
        if overlay.epoch == u32::MAX {
            // The epoch restarts, so cells with an old epoch would count as changed.
            overlay.clear();
        }
        overlay.epoch = overlay.epoch.saturating_add(1);
        Self {
            tree,
            base,
            overlay,
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.overlay.log.len())
    }

    /// Reverts all changes since the mark. Costs the number of changes.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        while self.overlay.log.len() > mark.0 {
            let Some((cell, before)) = self.overlay.log.pop() else {
                return;
            };
            // `set` writes the current epoch; the cell keeps it, since the change was in this epoch too.
            self.overlay.set(cell, before);
        }
    }

    pub(crate) fn add(&mut self, cell: CellId, amount: Amount) {
        let tree = self.tree;
        tree.add_usage(self, cell, amount);
    }

    pub(crate) fn remove(&mut self, cell: CellId, amount: Amount) {
        let tree = self.tree;
        tree.remove_usage(self, cell, amount);
    }

    /// Returns the amount that the node of the cell could use in addition; negative if it is overcommitted.
    ///
    /// Costs the depth of the tree.
    pub(crate) fn available(&self, cell: CellId) -> Amount {
        // On the way up, the result is the lesser of `available(parent) + added` and `bound`; only
        // `available(parent)` is still unknown.
        let (mut added, mut bound) = (Amount::ZERO, Amount::UNLIMITED);
        let mut at = cell;
        loop {
            let cell_quota = self.tree.cell(at);
            let usage = self.usage(at);
            let Some(parent) = cell_quota.parent else {
                return cell_quota.subtree.minus(usage).plus(added).min(bound);
            };
            added = added.plus(cell_quota.local_available(usage));
            // The borrowing limits of all nodes on the path apply, not only that of the queue.
            bound = bound.min(cell_quota.borrowable(usage).plus(added));
            at = parent;
        }
    }

    /// Returns [`Self::available`] and [`Self::borrowing_level`] in one walk.
    pub(crate) fn available_and_level(&self, cell: CellId, amount: Amount) -> (Amount, u32, bool) {
        let (mut added, mut bound) = (Amount::ZERO, Amount::UNLIMITED);
        let (mut at, mut rest) = (cell, amount);
        let mut found: Option<(u32, bool)> = None;
        loop {
            let cell_quota = self.tree.cell(at);
            let usage = self.usage(at);
            if found.is_none() {
                let covers = usage.plus(rest) <= cell_quota.subtree;
                if covers || cell_quota.parent.is_none() {
                    let height = self.tree.node(cell_quota.node).height;
                    found = Some((height, covers && cell_quota.parent.is_some()));
                }
            }
            let Some(parent) = cell_quota.parent else {
                let available = cell_quota.subtree.minus(usage).plus(added).min(bound);
                let (level, may_reclaim) = found.unwrap_or_default();
                return (available, level, may_reclaim);
            };
            let free = cell_quota.local_available(usage);
            rest = rest.minus(free).or_zero();
            added = added.plus(free);
            bound = bound.min(cell_quota.borrowable(usage).plus(added));
            at = parent;
        }
    }

    /// Returns whether the usage is at most the subtree quota: the node's own and the quota lent by its children.
    pub(crate) fn is_within_quota(&self, cell: CellId) -> bool {
        self.usage(cell) <= self.tree.cell(cell).subtree
    }

    /// Returns whether the node is within its quota of all these flavors and resources.
    pub(crate) fn is_node_within_quota(&self, node: NodeId, of: &[FlavorResource]) -> bool {
        let node = self.tree.node(node);
        of.iter()
            .filter_map(|of| node.cell(*of))
            .all(|cell| self.is_within_quota(cell))
    }

    /// Returns the height of the lowest node, from the cell's node upwards, whose quota covers the additional amount,
    /// and whether that node has a parent, so that quota could be reclaimed from other subtrees.
    ///
    /// If no node covers the amount, returns the height of the root and false.
    pub(crate) fn borrowing_level(&self, cell: CellId, amount: Amount) -> (u32, bool) {
        let (mut at, mut amount) = (cell, amount);
        loop {
            let cell_quota = self.tree.cell(at);
            let usage = self.usage(at);
            let node = self.tree.node(cell_quota.node);
            if usage.plus(amount) <= cell_quota.subtree {
                return (node.height, cell_quota.parent.is_some());
            }
            let Some(parent) = cell_quota.parent else {
                return (node.height, false);
            };
            // The parent has to cover only the part beyond the free local quota.
            amount = amount.minus(cell_quota.local_available(usage)).or_zero();
            at = parent;
        }
    }
}

impl UsageStore for View<'_> {
    fn usage(&self, cell: CellId) -> Amount {
        let changed = self.overlay.usage(cell);
        // Cells without a change in this view have the usage of the tree.
        changed.unwrap_or_else(|| self.base.usage(cell))
    }

    fn change(&mut self, cell: CellId, from: Amount, to: Amount) {
        self.overlay.log.push((cell, from));
        self.overlay.set(cell, to);
    }
}

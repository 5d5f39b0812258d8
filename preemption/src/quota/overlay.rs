//! What the tree would look like if: changes of usage beside the usage itself.
//!
//! A decision tries things out here. The usage underneath is borrowed and never written, so nothing
//! has to be put back.

use super::tree::{Tree, UsageStore};
use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, NodeId};

/// The cells that were changed. Kept between decisions for its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    /// The epochs in which cells were last changed.
    epochs: Vec<u32>,
    /// Their usage then. Apart from the epochs, since a state is often copied, and this is copied as fast as memory is.
    usages: Vec<Amount>,
    epoch: u32,
    /// What a cell was before each change.
    log: Vec<(CellId, Amount)>,
}

impl Overlay {
    /// Makes room for so many cells, of which none is changed.
    pub(crate) fn resize(&mut self, cells: usize) {
        if self.epochs.len() != cells {
            self.usages.resize(cells, Amount::ZERO);
            self.epochs.resize(cells, 0);
            self.clear();
        }
    }

    /// No cell counts as changed.
    fn clear(&mut self) {
        self.epochs.fill(0);
        self.epoch = 0;
    }

    fn usage(&self, cell: CellId) -> Option<Amount> {
        let epoch = self.epochs.get(cell.index())?;
        let usage = self.usages.get(cell.index())?;
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

/// A point to go back to.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Mark(usize);

/// The usage underneath with the changes on top.
pub(crate) struct View<'a> {
    pub(crate) tree: &'a Tree,
    base: &'a Vec<Amount>,
    overlay: &'a mut Overlay,
}

impl<'a> View<'a> {
    /// The usage as it is.
    pub(crate) fn new(tree: &'a Tree, base: &'a Vec<Amount>, overlay: &'a mut Overlay) -> Self {
        overlay.log.clear();
        overlay.resize(base.len());
        if overlay.epoch == u32::MAX {
            // Old epochs must not be taken for new ones.
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

    /// Takes back all changes since the mark.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        while self.overlay.log.len() > mark.0 {
            let Some((cell, before)) = self.overlay.log.pop() else {
                return;
            };
            // It was changed in this epoch.
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

    /// What the cell's node could use more; negative where more is used than there is.
    ///
    /// Costs the depth of the tree.
    pub(crate) fn available(&self, cell: CellId) -> Amount {
        // Going up, what is known is a function of what the next node will have:
        // the lesser of `that + added` and `bound`.
        let (mut added, mut bound) = (Amount::ZERO, Amount::UNLIMITED);
        let mut at = cell;
        loop {
            let it = self.tree.cell(at);
            let usage = self.usage(at);
            let Some(parent) = it.parent else {
                return it.subtree.minus(usage).plus(added).min(bound);
            };
            added = added.plus(it.local_available(usage));
            bound = bound.min(it.borrowable(usage).plus(added));
            at = parent;
        }
    }

    /// True if the usage is at most the node's own quota and what is lent to it from below.
    pub(crate) fn is_within_quota(&self, cell: CellId) -> bool {
        self.usage(cell) <= self.tree.cell(cell).subtree
    }

    /// True if the node is within its quota of all of these.
    pub(crate) fn is_node_within_quota(&self, node: NodeId, of: &[FlavorResource]) -> bool {
        let node = self.tree.node(node);
        of.iter()
            .filter_map(|of| node.cell(*of))
            .all(|cell| self.is_within_quota(cell))
    }

    /// The height of the lowest node above whose quota holds this much more, and whether quota could
    /// be reclaimed for it from beyond that node.
    pub(crate) fn borrowing_level(&self, cell: CellId, amount: Amount) -> (u32, bool) {
        let (mut at, mut amount) = (cell, amount);
        loop {
            let it = self.tree.cell(at);
            let usage = self.usage(at);
            let node = self.tree.node(it.node);
            if usage.plus(amount) <= it.subtree {
                return (node.height, it.parent.is_some());
            }
            let Some(parent) = it.parent else {
                return (node.height, false);
            };
            amount = amount.minus(it.local_available(usage)).or_zero();
            at = parent;
        }
    }
}

impl UsageStore for View<'_> {
    fn usage(&self, cell: CellId) -> Amount {
        let changed = self.overlay.usage(cell);
        changed.unwrap_or_else(|| self.base.usage(cell))
    }

    fn change(&mut self, cell: CellId, from: Amount, to: Amount) {
        self.overlay.log.push((cell, from));
        self.overlay.set(cell, to);
    }
}

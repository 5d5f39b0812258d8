//! Dominant resource shares: the part of its cohort's quota that a queue or cohort has borrowed.
//!
//! Source: Kueue `pkg/cache/scheduler/fair_sharing.go`, KEP-1714. Only siblings are compared, so they
//! have the same denominators. Decisions use the exact share, never a rounded one.

use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, NodeId};
use crate::quota::{UsageStore, View};
use std::cmp::Ordering;

/// The share of a node, and whether it borrows at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DominantShare {
    /// The largest share of any resource, per mille of the parent's lendable quota.
    ratio: f64,
    /// Its weight in the cohort.
    weight: f64,
    /// Whether it uses more of any resource than its own quota. The share may still be 0, if the cohort has
    /// no lendable quota.
    pub(crate) is_borrowing: bool,
}

impl DominantShare {
    /// Computes the share of a node. A node without parent has share 0 and never borrows.
    ///
    /// Costs the number of flavors and resources of the node, times its resources if it borrows.
    pub(crate) fn for_node(view: &View<'_>, id: NodeId) -> Self {
        let node = view.tree.node(id);
        let mut share = Self {
            ratio: 0.0,
            weight: node.weight,
            is_borrowing: false,
        };
        let Some(parent) = node.parent else {
            return share;
        };
        let over = |(of, cell): &(FlavorResource, CellId)| {
            let cell_quota = view.tree.cell(*cell);
            let over = view.usage(*cell).minus(cell_quota.subtree);
            // Clamped for each flavor: an idle flavor does not make up for a borrowed one.
            (cell_quota.has_quota && over > Amount::ZERO).then_some((of.resource, over))
        };
        share.is_borrowing = node.cells.iter().any(|cell| over(cell).is_some());
        if !share.is_borrowing {
            return share;
        }
        for (resource, lendable) in &view.tree.node(parent).lendable {
            let of_resource = node.cells.iter().filter_map(over);
            let of_resource = of_resource.filter(|(of, _)| of == resource);
            let over = of_resource.fold(Amount::ZERO, |sum, (_, over)| sum.plus(over));
            // Kueue: without lendable quota the node borrows, but its ratio stays 0.
            if *lendable > Amount::ZERO {
                // Resources are not added up: the largest ratio counts.
                share.ratio = share.ratio.max(float(over) * 1000.0 / float(*lendable));
            }
        }
        share
    }

    /// Compares shares; a node with weight 0 that borrows is above all others.
    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        let is_unbounded = |share: &Self| share.weight <= 0.0 && share.ratio > 0.0;
        match (is_unbounded(self), is_unbounded(other)) {
            // Both weighted shares are infinite.
            (true, true) => self.ratio.total_cmp(&other.ratio),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.weighted().total_cmp(&other.weighted()),
        }
    }

    /// Returns the share as an integer, rounded up.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a share that is too large for an i64 saturates"
    )]
    pub(crate) fn rounded(&self) -> i64 {
        if self.weight <= 0.0 && self.ratio > 0.0 {
            return i64::MAX;
        }
        self.weighted().ceil() as i64
    }

    fn weighted(&self) -> f64 {
        // With weight 0 the quotient would be NaN; without borrowing the share is 0.
        if self.ratio == 0.0 {
            return 0.0;
        }
        self.ratio / self.weight
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "Kueue compares shares as float64 of the amounts"
)]
fn float(amount: Amount) -> f64 {
    amount.get() as f64
}

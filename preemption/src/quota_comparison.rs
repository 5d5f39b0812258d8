//! Compares a requested amount with the quota of a flavor, before any search for victims.

use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource};
use crate::quota::View;
use crate::trace::FlavorVerdict;

/// A requested resource compared with the quota of a flavor.
#[derive(Clone, Copy)]
pub(crate) struct ComparedResource {
    pub(crate) of: FlavorResource,
    /// `None` if the request exceeds the quota that there could ever be.
    pub(crate) cell: Option<CellId>,
    pub(crate) requested: Amount,
    /// The borrowing level; 0 without a cell.
    pub(crate) level: u32,
    pub(crate) outcome: QuotaOutcome,
}

/// The result of a comparison with the quota.
#[derive(Clone, Copy)]
pub(crate) enum QuotaOutcome {
    Fit,
    /// It does not fit now; a search for victims decides.
    MayPreempt,
    /// It does not fit now, and preemption is not considered.
    Waits {
        available: Amount,
    },
    /// It exceeds the quota that there could ever be.
    ExceedsMax {
        potential: Amount,
    },
}

impl ComparedResource {
    /// Compares a request. Costs the depth of the tree.
    pub(crate) fn new(
        view: &View<'_>,
        (of, cell): (FlavorResource, Option<CellId>),
        requested: Amount,
        may_preempt_while_borrowing: bool,
    ) -> Self {
        let quota = cell.map(|cell| (cell, view.tree.cell(cell)));
        let potential = quota.map_or(Amount::ZERO, |(_, quota)| quota.potential);
        let Some((cell, quota)) = quota.filter(|_| requested <= potential) else {
            return Self {
                of,
                cell: None,
                requested,
                level: 0,
                outcome: QuotaOutcome::ExceedsMax { potential },
            };
        };
        let (available, level, may_reclaim) = view.available_and_level(cell, requested);
        let available = available.or_zero();
        let is_within_nominal = requested <= quota.nominal;
        let outcome = if requested <= available {
            QuotaOutcome::Fit
        } else if is_within_nominal || may_reclaim || may_preempt_while_borrowing {
            QuotaOutcome::MayPreempt
        } else {
            QuotaOutcome::Waits { available }
        };
        Self {
            of,
            cell: Some(cell),
            requested,
            level,
            outcome,
        }
    }

    /// Returns whether it fits now, or may fit after preemption.
    pub(crate) const fn has_chance(&self) -> bool {
        matches!(self.outcome, QuotaOutcome::Fit | QuotaOutcome::MayPreempt)
    }

    /// Returns the verdict on a request without a chance.
    pub(crate) fn verdict(&self) -> FlavorVerdict {
        let (of, requested) = (self.of, self.requested);
        match self.outcome {
            QuotaOutcome::ExceedsMax { potential } => FlavorVerdict::ExceedsMaxQuota {
                of,
                requested,
                potential,
            },
            QuotaOutcome::Waits { available } => FlavorVerdict::WaitingForQuota {
                of,
                requested,
                available,
            },
            // Not reached: these have a chance.
            QuotaOutcome::Fit | QuotaOutcome::MayPreempt => FlavorVerdict::NotNominated,
        }
    }
}

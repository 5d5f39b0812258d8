//! Whether a preemptor fits, and who can be let off when it does.

use super::preemptor::{Demand, Preemptor};
use super::search_context::SearchContext;
use crate::ids::WorkloadId;
use crate::quota::{UsageStore, View};
use crate::victim::{PreemptionReason, Victim};

/// Whether the request fits as things are. Without borrowing, only within nominal quota.
pub(super) fn fits(view: &View<'_>, preemptor: &Preemptor<'_>, may_borrow: bool) -> bool {
    preemptor.request.iter().all(|Demand { cell, amount, .. }| {
        let within = || view.usage(*cell).plus(*amount) <= view.tree.cell(*cell).nominal;
        (may_borrow || within()) && *amount <= view.available(*cell).or_zero()
    })
}

/// Takes all usage of a running workload off.
pub(super) fn remove(view: &mut View<'_>, context: &SearchContext<'_>, workload: WorkloadId) {
    if let Some(running) = context.admitted.admitted(workload) {
        for (cell, amount) in context.index.usage(running) {
            view.remove(cell, amount);
        }
    }
}

/// Puts it back.
pub(super) fn restore(view: &mut View<'_>, context: &SearchContext<'_>, workload: WorkloadId) {
    if let Some(running) = context.admitted.admitted(workload) {
        for (cell, amount) in context.index.usage(running) {
            view.add(cell, amount);
        }
    }
}

/// Lets off every victim that is not needed, the last one taken first; the very last is needed.
/// Kueue's `fillBackWorkloads`: whoever is let off has the last victim put into its place.
pub(super) fn fill_back(
    view: &mut View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    may_borrow: bool,
    victims: &mut Vec<(WorkloadId, PreemptionReason)>,
    mut let_off: impl FnMut(WorkloadId),
) {
    for at in (0..victims.len().saturating_sub(1)).rev() {
        let Some((workload, _)) = victims.get(at).copied() else {
            continue;
        };
        restore(view, context, workload);
        if fits(view, preemptor, may_borrow) {
            victims.swap_remove(at);
            let_off(workload);
        } else {
            remove(view, context, workload);
        }
    }
}

/// The victims as they are told.
pub(super) fn into_victims(victims: Vec<(WorkloadId, PreemptionReason)>) -> Vec<Victim> {
    victims
        .into_iter()
        .map(|(workload, reason)| Victim { workload, reason })
        .collect()
}

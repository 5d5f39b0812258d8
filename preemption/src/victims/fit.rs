//! The check whether a preemptor fits, and fill-back.

use super::preemptor::{Demand, Preemptor};
use super::search_context::SearchContext;
use crate::ids::WorkloadId;
use crate::quota::{UsageStore, View};
use crate::victim::{PreemptionReason, Victim};

/// Returns whether the request fits in the view. Without borrowing it must also stay within nominal quota.
pub(super) fn fits(view: &View<'_>, preemptor: &Preemptor<'_>, may_borrow: bool) -> bool {
    preemptor.request.iter().all(|demand| {
        let Demand { cell, amount, .. } = *demand;
        let is_within_nominal = || view.usage(cell).plus(amount) <= view.tree.cell(cell).nominal;
        let is_within_max = || {
            let most = demand.own_usage_max;
            most.is_none_or(|most| view.usage(cell) <= most)
        };
        // `available` is negative in an overcommitted tree; Kueue clamps it at the queue.
        (may_borrow || is_within_nominal())
            && is_within_max()
            && amount <= view.available(cell).or_zero()
    })
}

/// Removes the usage of an admitted workload from the view.
pub(super) fn remove(view: &mut View<'_>, context: &SearchContext<'_>, workload: WorkloadId) {
    if let Some(running) = context.admitted.admitted(workload) {
        for (cell, amount) in context.index.usage(running) {
            view.remove(cell, amount);
        }
    }
}

/// Reverts [`remove`].
pub(super) fn restore(view: &mut View<'_>, context: &SearchContext<'_>, workload: WorkloadId) {
    if let Some(running) = context.admitted.admitted(workload) {
        for (cell, amount) in context.index.usage(running) {
            view.add(cell, amount);
        }
    }
}

/// Removes every victim from the list that is not needed, the last selected first.
///
/// Source: Kueue `fillBackWorkloads`.
pub(super) fn fill_back(
    view: &mut View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    may_borrow: bool,
    victims: &mut Vec<(WorkloadId, PreemptionReason)>,
    mut on_filled_back: impl FnMut(WorkloadId),
) {
    // The last victim is never retried: without it the preemptor did not fit.
    for at in (0..victims.len().saturating_sub(1)).rev() {
        let Some((workload, _)) = victims.get(at).copied() else {
            continue;
        };
        restore(view, context, workload);
        if fits(view, preemptor, may_borrow) {
            // As in Kueue, the last victim moves here, so the order of the victims changes.
            victims.swap_remove(at);
            on_filled_back(workload);
        } else {
            remove(view, context, workload);
        }
    }
}

/// Converts pairs into victims.
pub(super) fn into_victims(victims: Vec<(WorkloadId, PreemptionReason)>) -> Vec<Victim> {
    victims
        .into_iter()
        .map(|(workload, reason)| Victim { workload, reason })
        .collect()
}

//! A cheap necessary condition for a successful search.

use super::candidate_scope::CandidateScope;
use super::preemptor::{Demand, Preemptor};
use super::search_context::SearchContext;
use crate::amount::Amount;
use crate::quota::View;
use crate::trace::{Step, Trace};

/// Returns true only if even the removal of all candidates would not make room; false does not mean that a search
/// succeeds. Costs the number of distinct priorities.
pub(crate) fn cannot_succeed(
    view: &View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
) -> bool {
    let node = view.tree.node(preemptor.queue);
    let (within, beyond) = (
        CandidateScope::for_own_queue(preemptor),
        CandidateScope::for_other_queues(preemptor),
    );
    preemptor.request.iter().any(|demand| {
        let available = view.available(demand.cell);
        if demand.amount <= available.or_zero() {
            return false;
        }
        let own = |bound| {
            context
                .index
                .used_by_queue(preemptor.queue, demand.of, bound)
        };
        let all = |bound| context.index.used_by_tree(node.root, demand.of, bound);
        let others = if beyond == CandidateScope::Empty {
            Amount::ZERO
        } else {
            // The sum of the tree includes the own queue, which has a scope of its own.
            all(beyond.priority_bound()).minus(own(beyond.priority_bound()))
        };
        let own = if within == CandidateScope::Empty {
            Amount::ZERO
        } else {
            own(within.priority_bound())
        };
        lacks_quota(available, demand, OwnAndOthers { own, others })
    })
}

/// Upper bounds of the amounts that the candidates of the own queue and of other queues use.
#[derive(Clone, Copy)]
pub(super) struct OwnAndOthers {
    pub(super) own: Amount,
    pub(super) others: Amount,
}

/// Returns whether a demand does not fit even if all candidates release their quota.
pub(super) fn lacks_quota(available: Amount, demand: &Demand, candidates: OwnAndOthers) -> bool {
    // Freeing an amount anywhere in the tree makes at most that much available at the queue.
    let freed = candidates.own.plus(candidates.others);
    demand.amount > available.or_zero() && demand.amount > available.plus(freed)
}

/// Records that a search cannot succeed, and whether it could without the priority thresholds.
pub(super) fn trace_cannot_succeed(
    view: &View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) {
    if !trace.is_on() {
        return;
    }
    trace.record(|| Step::CannotSucceed);
    let mut unlimited = *preemptor;
    let limits = std::mem::take(&mut unlimited.policy.limits);
    if !cannot_succeed(view, context, &unlimited) {
        trace.record(|| Step::Thresholds {
            within_max: limits.within_threshold_max,
            reclaim_max: limits.reclaim_threshold_max,
        });
    }
}

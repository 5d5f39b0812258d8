//! The candidates of the classical search by group, and whether they are enough for an attempt.

use super::candidate_scope::CandidateScope;
use super::feasibility::{OwnAndOthers, lacks_quota};
use super::preemptor::Preemptor;
use super::search_context::SearchContext;
use crate::admitted::UsageGroup;
use crate::amount::Amount;
use crate::ids::NodeId;
use crate::policy::BorrowWithinCohort;
use crate::quota::{UsageStore, View};

/// The list of a candidate, in the order in which the lists are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CandidateKind {
    Hierarchy,
    Priority,
    SameQueue,
}

/// The candidates of one group of a queue.
pub(super) struct CandidateGroup<'a> {
    pub(super) kind: CandidateKind,
    pub(super) queue: NodeId,
    /// The lowest common ancestor with the preemptor.
    pub(super) ancestor: NodeId,
    pub(super) group: &'a UsageGroup,
}

/// Returns true only if an attempt fails whatever candidates it selects.
pub(super) fn attempt_cannot_succeed(
    view: &View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    lists: &[CandidateGroup<'_>],
    may_borrow: bool,
) -> bool {
    let within = CandidateScope::for_own_queue(preemptor).priority_bound();
    let never_while_borrowing = preemptor.policy.borrow_within_cohort == BorrowWithinCohort::Never;
    let skips_priority = may_borrow && never_while_borrowing;
    let beyond = CandidateScope::for_other_queues(preemptor).priority_bound();
    preemptor.request.iter().any(|demand| {
        let used = |queue, bound| context.index.used_by_queue(queue, demand.of, bound);
        let own = used(preemptor.queue, within);
        let own_usage_min = view.usage(demand.cell).minus(own);
        let nominal = view.tree.cell(demand.cell).nominal;
        // Without borrowing the queue must end within its nominal quota, and only its own workloads reduce its usage.
        if !may_borrow && own_usage_min.plus(demand.amount) > nominal {
            return true;
        }
        // While borrowing, `Priority` has no victims unless `borrowWithinCohort` permits them.
        let is_counted = |list: &&CandidateGroup<'_>| match list.kind {
            CandidateKind::Hierarchy => true,
            CandidateKind::Priority => !skips_priority,
            CandidateKind::SameQueue => false,
        };
        // Groups of a queue are adjacent.
        let mut last = None;
        let mut others = Amount::ZERO;
        for list in lists.iter().filter(is_counted) {
            if last.replace(list.queue) != Some(list.queue) {
                others = others.plus(used(list.queue, beyond));
            }
        }
        lacks_quota(
            view.available(demand.cell),
            demand,
            OwnAndOthers { own, others },
        )
    })
}

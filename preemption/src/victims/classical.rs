//! Victims by priority, and from queues that borrow.
//!
//! Source: Kueue `pkg/scheduler/preemption/classical`, KEP-83 "Preemption algorithm", KEP-1337. The
//! steps in order:
//!
//! 1. **Lists.** `SameQueue` contains the workloads of the preemptor's queue. For other queues the search walks up the
//!    tree: below each ancestor it collects the workloads of queues that borrow. They are in `Hierarchy` if a subtree
//!    below that ancestor that contains the preemptor has quota for the request (then the subtree reclaims its own
//!    quota), else in `Priority`.
//! 2. **Order.** Each list is in candidate order. Workloads that are being evicted come first; within both parts the
//!    lists are in the order `Hierarchy`, `Priority`, `SameQueue`.
//! 3. **Attempts.** With borrowing, without, or both in turn. The first successful attempt ends the search.
//! 4. **One attempt** selects candidates in order until the preemptor fits. The remaining candidates of a queue are
//!    skipped once it, or a cohort between it and the common ancestor, no longer borrows.
//! 5. **Fill-back.**
//!
//! Differences from the design documents, as in current Kueue: a preemptor may borrow after preempting in its own queue
//! whatever the value of `borrowWithinCohort`; "below nominal quota" is checked only for the flavors and resources that
//! need preemption; `borrowWithinCohort` and its threshold apply only to `Priority`.

use super::candidate_group::{CandidateGroup, CandidateKind, attempt_cannot_succeed};
use super::candidate_scope::CandidateScope;
use super::feasibility::{cannot_succeed, trace_cannot_succeed};
use super::fit::{fill_back, fits, into_victims, remove};
use super::merge::Merge;
use super::preemptor::Preemptor;
use super::search_context::SearchContext;
use crate::admitted::{AdmittedWorkload, UsageGroup};
use crate::amount::Amount;
use crate::candidate_list::{CandidateKey, CandidateList};
use crate::ids::{CellId, WorkloadId};
use crate::policy::BorrowWithinCohort;
use crate::quota::{UsageStore, View};
use crate::trace::{CandidateVerdict, QueueVerdict, Step, Trace};
use crate::victim::{PreemptionReason, Victim};

pub(super) fn search(
    view: &mut View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> Vec<Victim> {
    trace.record(|| Step::Search {
        needs: preemptor.needs.to_vec(),
    });
    // Only saves time: the search would find nothing either.
    if cannot_succeed(view, context, preemptor) {
        trace_cannot_succeed(view, context, preemptor, trace);
        return Vec::new();
    }
    let lists = collect(view, context, preemptor, trace);
    if lists.is_empty() {
        trace.record(|| Step::SearchEnded { found: false });
        return Vec::new();
    }
    for may_borrow in attempts(view, preemptor, &lists).into_iter().flatten() {
        // Only saves time: a trace shows why the candidates of the attempt are not enough.
        if !trace.is_on() && attempt_cannot_succeed(view, context, preemptor, &lists, may_borrow) {
            continue;
        }
        trace.record(|| Step::Attempt { may_borrow });
        // Each attempt starts from the usage before the search; a failed one leaves nothing behind.
        let mark = view.mark();
        let victims = attempt(view, context, preemptor, &lists, may_borrow, trace);
        view.roll_back(mark);
        if let Some(victims) = victims {
            trace.record(|| Step::SearchEnded { found: true });
            return into_victims(victims);
        }
    }
    trace.record(|| Step::SearchEnded { found: false });
    Vec::new()
}

/// Collects the groups with candidates: workloads that use a needed flavor and resource and may be preempted.
fn collect<'a>(
    view: &View<'_>,
    context: &SearchContext<'a>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> Vec<CandidateGroup<'a>> {
    let mut lists = Vec::new();
    let mut add = |part, queue, ancestor, scope| {
        let groups = context.index.groups(queue).iter();
        let useful = groups.filter(|group| {
            // As in Kueue, only usage of a needed flavor and resource counts; KEP-83 compares
            // only flavors.
            if !group.uses_any(preemptor.needs) {
                return false;
            }
            let is_useful = has_candidate(context, preemptor, group, scope);
            if !is_useful {
                trace_protected(context, preemptor, group, scope, trace);
            }
            is_useful
        });
        lists.extend(useful.map(|group| CandidateGroup {
            kind: part,
            queue,
            ancestor,
            group,
        }));
    };
    add(
        CandidateKind::SameQueue,
        preemptor.queue,
        preemptor.queue,
        CandidateScope::for_own_queue(preemptor),
    );
    let beyond = CandidateScope::for_other_queues(preemptor);
    if beyond == CandidateScope::Empty {
        return lists;
    }
    let request = preemptor.request.iter();
    let mut request: Vec<(CellId, Amount)> = request.map(|it| (it.cell, it.amount)).collect();
    // Kueue's hierarchical advantage: a subtree with the queue has quota for the request.
    let mut has_quota = fits_at_node(view, &mut request);
    let mut below = preemptor.queue;
    let mut open = Vec::new();
    while let Some(ancestor) = view.tree.node(below).parent {
        let part = if has_quota {
            CandidateKind::Hierarchy
        } else {
            CandidateKind::Priority
        };
        let siblings = view.tree.node(ancestor).children.iter();
        // The subtree of `below` was collected with its own, lower ancestor.
        open.extend(siblings.filter(|it| **it != below));
        while let Some(id) = open.pop() {
            // A cohort within its quota borrows nothing from here, so its whole subtree is skipped.
            if view.is_node_within_quota(id, preemptor.needs) {
                continue;
            }
            let node = view.tree.node(id);
            if node.is_inactive {
                continue;
            }
            if node.is_queue {
                add(part, id, ancestor, beyond);
            } else {
                open.extend(&node.children);
            }
        }
        // Stays true: the subtree with quota is below all further ancestors.
        has_quota |= fits_at_node(view, &mut request);
        below = ancestor;
    }
    lists
}

/// Returns whether the node has quota for the request, and reduces the request to the part left for its parent.
fn fits_at_node(view: &View<'_>, request: &mut [(CellId, Amount)]) -> bool {
    let mut has_quota = true;
    for (cell, amount) in request {
        let cell_quota = view.tree.cell(*cell);
        let usage = view.usage(*cell);
        has_quota &= usage.plus(*amount) <= cell_quota.subtree;
        // The parent sees only the part of the request beyond the free local quota.
        *amount = amount.minus(cell_quota.local_available(usage)).or_zero();
        *cell = cell_quota.parent.unwrap_or(*cell);
    }
    has_quota
}

/// Returns for each attempt, in order, whether the preemptor may borrow.
fn attempts(
    view: &View<'_>,
    preemptor: &Preemptor<'_>,
    lists: &[CandidateGroup<'_>],
) -> [Option<bool>; 2] {
    let has = |part| lists.iter().any(|list| list.kind == part);
    let has_hierarchy = has(CandidateKind::Hierarchy);
    let never_while_borrowing = preemptor.policy.borrow_within_cohort == BorrowWithinCohort::Never;
    let node = view.tree.node(preemptor.queue);
    let mut needed = preemptor.needs.iter().filter_map(|of| node.cell(*of));
    // The current usage, strictly below. Kueue's documentation compares the request instead.
    let mut is_below_nominal = || needed.all(|it| view.usage(it) < view.tree.cell(it).nominal);
    if !has_hierarchy && !has(CandidateKind::Priority)
        || never_while_borrowing && !is_below_nominal()
    {
        [Some(true), None]
    } else if never_while_borrowing && !has_hierarchy {
        // The second attempt preempts only in the own queue: `Priority` is skipped while borrowing.
        [Some(false), Some(true)]
    } else {
        [Some(true), Some(false)]
    }
}

/// Returns whether a group has a workload that may be preempted. Costs the workloads before it in candidate order;
/// these are removed, protected, or of equal priority.
fn has_candidate(
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    group: &UsageGroup,
    scope: CandidateScope,
) -> bool {
    let protection = &context.protection;
    let may_preempt = |CandidateKey { priority, id, .. }: CandidateKey| {
        if context.removed.contains(&id) {
            return false;
        }
        if scope.includes_all_of(priority) && !protection.has_limits {
            // The usual case, which needs no lookup of the workload.
            return protection
                .damping_protection(preemptor.priority, id, priority)
                .is_none();
        }
        let may_preempt =
            |it| scope.includes(it) && context.protection(preemptor, id, it).is_none();
        context.admitted.admitted(id).is_some_and(may_preempt)
    };
    [&group.evicted, &group.not_evicted]
        .into_iter()
        .any(|ranked| {
            // The list ascends by priority, so no later workload is in scope.
            let mut near = ranked
                .iter()
                .take_while(|rank| !scope.ends_at(rank.priority));
            near.any(may_preempt)
        })
}

/// Records why the workloads of a group that the policy permits are protected.
fn trace_protected(
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    group: &UsageGroup,
    scope: CandidateScope,
    trace: &mut Trace,
) {
    if !trace.is_on() {
        return;
    }
    for ranked in [&group.evicted, &group.not_evicted] {
        let near = ranked.iter();
        for CandidateKey { id, .. } in near.take_while(|rank| !scope.ends_at(rank.priority)) {
            let running = context
                .admitted
                .admitted(id)
                .filter(|it| scope.includes(it));
            if let Some(why) = running.and_then(|it| context.protection(preemptor, id, it))
                && !context.removed.contains(&id)
            {
                let workload = id;
                trace.record(|| Step::Protected {
                    workload,
                    protection: why,
                });
            }
        }
    }
}

/// Selects candidates until the preemptor fits; `None` if it does not fit without all of them.
fn attempt(
    view: &mut View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    lists: &[CandidateGroup<'_>],
    may_borrow: bool,
    trace: &mut Trace,
) -> Option<Vec<(WorkloadId, PreemptionReason)>> {
    let mut victims = Vec::new();
    // Evicted workloads of all lists come first, so that repeated cycles find the same victims.
    for is_evicted in [true, false] {
        for part in [
            CandidateKind::Hierarchy,
            CandidateKind::Priority,
            CandidateKind::SameQueue,
        ] {
            let section = Section {
                kind: part,
                may_borrow,
                scope: match part {
                    CandidateKind::SameQueue => CandidateScope::for_own_queue(preemptor),
                    CandidateKind::Hierarchy | CandidateKind::Priority => {
                        CandidateScope::for_other_queues(preemptor)
                    }
                },
                lists,
            };
            if section.take_until_fit(view, context, preemptor, is_evicted, &mut victims, trace) {
                fill_back(
                    view,
                    context,
                    preemptor,
                    may_borrow,
                    &mut victims,
                    |workload| {
                        trace.record(|| Step::FilledBack { workload });
                    },
                );
                return Some(victims);
            }
        }
    }
    None
}

/// The candidates of one kind in one attempt.
struct Section<'a> {
    kind: CandidateKind,
    may_borrow: bool,
    scope: CandidateScope,
    lists: &'a [CandidateGroup<'a>],
}

impl<'a> Section<'a> {
    /// Selects candidates of this kind in order; returns true as soon as the preemptor fits.
    fn take_until_fit(
        &self,
        view: &mut View<'_>,
        context: &SearchContext<'a>,
        preemptor: &Preemptor<'_>,
        is_evicted: bool,
        victims: &mut Vec<(WorkloadId, PreemptionReason)>,
        trace: &mut Trace,
    ) -> bool {
        let ranked = |list: &CandidateGroup<'a>| -> &'a CandidateList {
            if is_evicted {
                &list.group.evicted
            } else {
                &list.group.not_evicted
            }
        };
        let lists = self.lists.iter().enumerate();
        let of_part = lists.filter(|(_, list)| list.kind == self.kind);
        let of_part = of_part.map(|(at, list)| (at, ranked(list)));
        let mut merge = Merge::new(context.admitted, of_part);
        while let Some(next) = merge.next() {
            let rank = next.key;
            let Some(list) = self.lists.get(next.list_position) else {
                continue;
            };
            // Without `advance_past` the rest of the list is dropped: Kueue never revisits a skip.
            if let Some(verdict) = self.skip_verdict(view, preemptor, list, rank.priority) {
                let queue = list.queue;
                trace.record(|| Step::Queue { queue, verdict });
                continue;
            }
            let Some(running) = context.admitted.admitted(rank.id) else {
                merge.advance_past(&next);
                continue;
            };
            let reason = self.reason(preemptor, running);
            let workload = rank.id;
            let mut verdict = |verdict| {
                trace.record(|| Step::Candidate {
                    workload,
                    reason,
                    verdict,
                });
            };
            if reason == PreemptionReason::InCohortReclamation
                && self.kind == CandidateKind::Priority
                && self.may_borrow
            {
                // Later workloads of the list have at least this priority, so none of them may be preempted either.
                verdict(CandidateVerdict::NotWhileBorrowing);
                continue;
            }
            merge.advance_past(&next);
            // A victim of an earlier entry of the cycle: the view no longer contains its usage.
            if context.removed.contains(&workload) {
                continue;
            }
            if !self.scope.includes(running) {
                verdict(CandidateVerdict::NotNewer);
                continue;
            }
            if let Some(why) = context.protection(preemptor, workload, running) {
                trace.record(|| Step::Protected {
                    workload,
                    protection: why,
                });
                continue;
            }
            verdict(CandidateVerdict::Selected);
            // Its whole usage, not only that of the needed flavors and resources.
            remove(view, context, workload);
            victims.push((workload, reason));
            if fits(view, preemptor, self.may_borrow) {
                return true;
            }
        }
        false
    }

    /// Returns why the remaining candidates of a list are skipped; `None` if they are not.
    fn skip_verdict(
        &self,
        view: &View<'_>,
        preemptor: &Preemptor<'_>,
        list: &CandidateGroup<'_>,
        priority: i32,
    ) -> Option<QueueVerdict> {
        if self.scope.ends_at(priority) {
            return Some(self.priority_verdict(preemptor, priority));
        }
        if self.kind == CandidateKind::SameQueue {
            return None;
        }
        let mut at = list.queue;
        loop {
            if view.is_node_within_quota(at, preemptor.needs) {
                return Some(QueueVerdict::NoLongerBorrows);
            }
            // Up to the common ancestor, which is excluded. KEP-83 checks only the queue.
            match view.tree.node(at).parent {
                Some(parent) if parent != list.ancestor => at = parent,
                _ => return None,
            }
        }
    }

    /// Returns whether the policy or a threshold ends a list at this priority.
    fn priority_verdict(&self, preemptor: &Preemptor<'_>, priority: i32) -> QueueVerdict {
        // If the list ends there without thresholds too, the threshold is not the cause.
        let mut unlimited = *preemptor;
        let limits = std::mem::take(&mut unlimited.policy.limits);
        let (scope, threshold_max) = match self.kind {
            CandidateKind::SameQueue => (
                CandidateScope::for_own_queue(&unlimited),
                limits.within_threshold_max,
            ),
            CandidateKind::Hierarchy | CandidateKind::Priority => (
                CandidateScope::for_other_queues(&unlimited),
                limits.reclaim_threshold_max,
            ),
        };
        match threshold_max {
            Some(threshold_max) if !scope.ends_at(priority) => {
                QueueVerdict::AboveThreshold { threshold_max }
            }
            _ => QueueVerdict::PriorityTooHigh,
        }
    }

    /// Returns the reason for preempting a candidate.
    fn reason(&self, preemptor: &Preemptor<'_>, running: &AdmittedWorkload) -> PreemptionReason {
        match self.kind {
            CandidateKind::SameQueue => PreemptionReason::InClusterQueue,
            CandidateKind::Hierarchy => PreemptionReason::InCohortReclamation,
            // Kueue reports the borrowing reason even if the attempt without borrowing succeeds.
            CandidateKind::Priority => match preemptor.policy.borrow_within_cohort {
                BorrowWithinCohort::LowerPriority { threshold_max }
                    if running.preemption_priority < preemptor.priority
                        && threshold_max.is_none_or(|most| running.preemption_priority <= most) =>
                {
                    PreemptionReason::InCohortReclaimWhileBorrowing
                }
                _ => PreemptionReason::InCohortReclamation,
            },
        }
    }
}

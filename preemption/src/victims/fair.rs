//! Victims by dominant resource shares: workloads of the queue with the largest share are preempted first.
//!
//! Source: Kueue `pkg/scheduler/preemption/preemption.go` and `fairsharing/`, KEP-1714.
//!
//! A tournament from the root of the tree downwards selects a queue, and the strategies decide whether its next
//! candidate is preempted.
//!
//! Differences from KEP-1714: the denominator is all quota that the parent could lend; there is no "smallest first";
//! `borrowWithinCohort` is not used.

use super::candidate_scope::CandidateScope;
use super::common_ancestor::{ancestors, below_common};
use super::fair_candidates::{NextCandidate, QueueCandidates, cmp_across, collect};
use super::feasibility::{cannot_succeed, trace_cannot_succeed};
use super::fit::{fill_back, fits, into_victims, remove};
use super::preemptor::{Demand, Preemptor};
use super::search_context::SearchContext;
use crate::admitted::AdmittedWorkload;
use crate::amount::Amount;
use crate::dominant_share::DominantShare;
use crate::ids::{FlavorResource, NodeId, WorkloadId};
use crate::policy::FairStrategy;
use crate::quota::{Tree, UsageStore, View};
use crate::trace::{CandidateVerdict, Step, Trace};
use crate::victim::{PreemptionReason, Victim};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn search(
    view: &mut View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    strategies: &[FairStrategy],
    trace: &mut Trace,
) -> Vec<Victim> {
    trace.record(|| Step::Search {
        needs: preemptor.needs.to_vec(),
    });
    if cannot_succeed(view, context, preemptor) {
        trace_cannot_succeed(view, context, preemptor, trace);
        return Vec::new();
    }
    trace.record(|| Step::Attempt { may_borrow: true });
    let (first, second) = (strategies.first().copied(), strategies.get(1));
    let first = first.unwrap_or(FairStrategy::LessThanOrEqualToFinalShare);
    let reads_all = reads_all_candidates(context, trace);
    // All shares include the request.
    add_request(view, preemptor.request);
    let within_nominal = is_within_nominal(view, preemptor);
    if !reads_all && !within_nominal && rejects_all_queues(view, context, preemptor, first) {
        return Vec::new();
    }
    // Candidates are those of the usage without the request.
    remove_request(view, preemptor.request);
    let mut queues = collect(view, context, preemptor, trace);
    add_request(view, preemptor.request);
    let mut search = FairSearch {
        context,
        preemptor,
        within_nominal,
        victims: Vec::new(),
        retry: BTreeMap::new(),
        tournament: TournamentState::new(view.tree),
        trace,
    };
    let mut found = search.first_pass(view, &mut queues, first);
    if !found && second == Some(&FairStrategy::LessThanInitialShare) {
        found = search.second_pass(view);
    }
    let mut victims = search.victims;
    if !found {
        trace.record(|| Step::SearchEnded { found: false });
        return Vec::new();
    }
    remove_request(view, preemptor.request);
    fill_back(view, context, preemptor, true, &mut victims, |workload| {
        trace.record(|| Step::FilledBack { workload });
    });
    trace.record(|| Step::SearchEnded { found: true });
    into_victims(victims)
}

/// Returns whether all candidates are read although the result is known: a trace shows them, and limits need the times at
/// which they reach their minimum run time.
fn reads_all_candidates(context: &SearchContext<'_>, trace: &Trace) -> bool {
    trace.is_on() || context.protection.has_limits || context.kueue_bugs.borrows_under_fair_sharing
}

/// Returns whether a strategy rejects all candidates below a node with the share `old`: no share without a candidate is
/// above the share with all of them.
fn rejects_share(strategy: FairStrategy, new: &DominantShare, old: &DominantShare) -> bool {
    match strategy {
        FairStrategy::LessThanInitialShare => !new.cmp(old).is_lt(),
        FairStrategy::LessThanOrEqualToFinalShare => !new.cmp(old).is_le(),
    }
}

/// Returns true only if the preemptor's queue has no candidate and a strategy rejects all other queues: then no share
/// changes, and both passes find nothing. The view includes the request. Costs the siblings of the queue and of its
/// ancestors.
fn rejects_all_queues(
    view: &View<'_>,
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    strategy: FairStrategy,
) -> bool {
    let scope = CandidateScope::for_own_queue(preemptor);
    let bound = scope.priority_bound();
    let used = |of: &FlavorResource| context.index.used_by_queue(preemptor.queue, *of, bound);
    let mut needs = preemptor.needs.iter();
    let mut groups = context.index.groups(preemptor.queue).iter();
    let mut has_zero_amounts =
        || groups.any(|it| it.has_zero_amounts && it.uses_any(preemptor.needs));
    let mut has_candidates = || needs.any(|of| used(of) != Amount::ZERO) || has_zero_amounts();
    if scope != CandidateScope::Empty && has_candidates() {
        return false;
    }
    let mut below = preemptor.queue;
    while let Some(ancestor) = view.tree.node(below).parent {
        let new = DominantShare::for_node(view, below);
        let siblings = view.tree.node(ancestor).children.iter();
        for sibling in siblings.filter(|it| **it != below) {
            let old = DominantShare::for_node(view, *sibling);
            // Only candidates below a node that borrows are eligible.
            if old.is_borrowing && !rejects_share(strategy, &new, &old) {
                return false;
            }
        }
        below = ancestor;
    }
    true
}

fn add_request(view: &mut View<'_>, request: &[Demand]) {
    for demand in request {
        view.add(demand.cell, demand.amount);
    }
}

fn remove_request(view: &mut View<'_>, request: &[Demand]) {
    for demand in request {
        view.remove(demand.cell, demand.amount);
    }
}

/// Returns whether the preemptor's queue with the request is within its own nominal quota.
fn is_within_nominal(view: &View<'_>, preemptor: &Preemptor<'_>) -> bool {
    let node = view.tree.node(preemptor.queue);
    // Only the quota of the queue: KEP-1714 also compares that of its cohorts.
    let mut cells = preemptor.needs.iter().filter_map(|of| node.cell(*of));
    cells.all(|cell| view.usage(cell) <= view.tree.cell(cell).nominal)
}

/// The state of the nodes, kept between tournaments.
struct TournamentState {
    /// By node: its share (`None` if usage has changed since), and for a queue its next candidate.
    nodes: Vec<(Option<DominantShare>, Option<NextCandidate>)>,
}

impl TournamentState {
    fn new(tree: &Tree) -> Self {
        Self {
            nodes: vec![(None, None); tree.nodes().count()],
        }
    }

    fn next_candidate(&self, queue: NodeId) -> Option<NextCandidate> {
        self.nodes.get(queue.index())?.1
    }

    /// Sets the next candidate of a queue; returns the previous one.
    fn set_next_candidate(
        &mut self,
        queue: NodeId,
        front: Option<NextCandidate>,
    ) -> Option<NextCandidate> {
        let (_, slot) = self.nodes.get_mut(queue.index())?;
        std::mem::replace(slot, front)
    }

    /// Sets the next candidates of all queues; a missing queue has none.
    fn set_next_candidates(&mut self, fronts: impl Iterator<Item = (NodeId, NextCandidate)>) {
        for (_, front) in &mut self.nodes {
            *front = None;
        }
        for (queue, front) in fronts {
            self.set_next_candidate(queue, Some(front));
        }
    }

    fn share(&mut self, view: &View<'_>, id: NodeId) -> DominantShare {
        let Some((share, _)) = self.nodes.get_mut(id.index()) else {
            return DominantShare::for_node(view, id);
        };
        *share.get_or_insert_with(|| DominantShare::for_node(view, id))
    }

    /// Drops the shares of a queue and its ancestors after the usage of the queue has changed.
    fn invalidate_shares(&mut self, tree: &Tree, queue: NodeId) {
        let up = |id: &NodeId| tree.node(*id).parent;
        for id in std::iter::successors(Some(queue), up) {
            if let Some((share, _)) = self.nodes.get_mut(id.index()) {
                *share = None;
            }
        }
    }
}

/// The usage of a rejected candidate: one with the same or more usage is rejected as well, since the share without it is
/// the same or smaller.
#[derive(Default)]
struct RejectedUsage<'a>(Option<&'a AdmittedWorkload>);

impl<'a> RejectedUsage<'a> {
    fn new(running: Option<&'a AdmittedWorkload>) -> Self {
        Self(running)
    }

    fn includes(&self, running: Option<&AdmittedWorkload>) -> bool {
        let (Some(rejected), Some(running)) = (self.0, running) else {
            return false;
        };
        let pairs = rejected.amounts.as_slice().iter();
        let mut pairs = pairs.zip(running.amounts.as_slice());
        rejected.usage_group == running.usage_group && pairs.all(|(least, amount)| amount >= least)
    }
}

/// The search over all tournaments.
struct FairSearch<'a, 'b> {
    context: &'b SearchContext<'a>,
    preemptor: &'b Preemptor<'b>,
    within_nominal: bool,
    victims: Vec<(WorkloadId, PreemptionReason)>,
    /// The first candidate of each queue that the first pass rejected.
    retry: BTreeMap<NodeId, NextCandidate>,
    tournament: TournamentState,
    trace: &'b mut Trace,
}

impl<'a> FairSearch<'a, '_> {
    fn first_pass(
        &mut self,
        view: &mut View<'_>,
        queues: &mut BTreeMap<NodeId, QueueCandidates<'a>>,
        strategy: FairStrategy,
    ) -> bool {
        let fronts = queues.iter();
        let fronts = fronts.filter_map(|(queue, candidates)| Some((*queue, candidates.next?)));
        self.tournament.set_next_candidates(fronts);
        loop {
            let Some(queue) = self.next_queue(view) else {
                return false;
            };
            let Some(candidates) = queues.get_mut(&queue) else {
                return false;
            };
            // Shares are not compared in the own queue, nor while that queue is within nominal quota.
            let selected = if queue == self.preemptor.queue {
                let front = candidates.pop(self.context, self.preemptor, self.trace);
                front.map(|front| (front, PreemptionReason::InClusterQueue))
            } else if self.within_nominal {
                let front = candidates.pop(self.context, self.preemptor, self.trace);
                front.map(|front| (front, PreemptionReason::InCohortReclamation))
            } else {
                self.first_allowed(view, queue, candidates, strategy)
            };
            self.tournament.set_next_candidate(queue, candidates.next);
            if let Some((front, reason)) = selected
                && self.take_victim(view, queue, front, reason)
            {
                return true;
            }
        }
    }

    fn first_allowed(
        &mut self,
        view: &mut View<'_>,
        queue: NodeId,
        candidates: &mut QueueCandidates<'a>,
        strategy: FairStrategy,
    ) -> Option<(NextCandidate, PreemptionReason)> {
        let (ours, theirs) = below_common(view, self.preemptor.queue, queue);
        let new = DominantShare::for_node(view, ours);
        let old = DominantShare::for_node(view, theirs);
        if self.rejects_queue(strategy, &new, &old) {
            if let Some(front) = candidates.next.take() {
                self.retry.entry(queue).or_insert(front);
            }
            return None;
        }
        let mut rejected = RejectedUsage::default();
        while let Some(front) = candidates.pop(self.context, self.preemptor, self.trace) {
            let passes = self.context.kueue_bugs.borrows_under_fair_sharing
                && self.preemptor.may_borrow_from(front.key.priority)
                || match strategy {
                    FairStrategy::LessThanInitialShare => new.cmp(&old).is_lt(),
                    FairStrategy::LessThanOrEqualToFinalShare => {
                        let running = self.context.admitted.admitted(front.key.id);
                        !rejected.includes(running) && {
                            let mark = view.mark();
                            remove(view, self.context, front.key.id);
                            let after = DominantShare::for_node(view, theirs);
                            view.roll_back(mark);
                            let passes = new.cmp(&after).is_le();
                            if !passes {
                                rejected = RejectedUsage::new(running);
                            }
                            passes
                        }
                    }
                };
            if passes {
                return Some((front, PreemptionReason::InCohortFairSharing));
            }
            self.reject(front);
            self.retry.entry(queue).or_insert(front);
        }
        None
    }

    /// Returns whether a strategy rejects all candidates of a queue, so that they need not be read.
    fn rejects_queue(
        &self,
        strategy: FairStrategy,
        new: &DominantShare,
        old: &DominantShare,
    ) -> bool {
        !reads_all_candidates(self.context, self.trace) && rejects_share(strategy, new, old)
    }

    /// Tries the rejected candidates with the second strategy, at most one of each queue.
    fn second_pass(&mut self, view: &mut View<'_>) -> bool {
        let retry = std::mem::take(&mut self.retry);
        self.tournament.set_next_candidates(retry.into_iter());
        loop {
            let Some(queue) = self.next_queue(view) else {
                return false;
            };
            let Some(front) = self.tournament.set_next_candidate(queue, None) else {
                return false;
            };
            let (ours, theirs) = below_common(view, self.preemptor.queue, queue);
            if DominantShare::for_node(view, ours)
                .cmp(&DominantShare::for_node(view, theirs))
                .is_lt()
            {
                if self.take_victim(view, queue, front, PreemptionReason::InCohortFairSharing) {
                    return true;
                }
            } else {
                self.reject(front);
            }
        }
    }

    fn reject(&mut self, front: NextCandidate) {
        let workload = front.key.id;
        self.trace.record(|| Step::Candidate {
            workload,
            reason: PreemptionReason::InCohortFairSharing,
            verdict: CandidateVerdict::ShareTooLarge,
        });
    }

    /// Adds a victim; returns whether the preemptor fits without the victims so far.
    fn take_victim(
        &mut self,
        view: &mut View<'_>,
        queue: NodeId,
        front: NextCandidate,
        reason: PreemptionReason,
    ) -> bool {
        let workload = front.key.id;
        self.trace.record(|| Step::Candidate {
            workload,
            reason,
            verdict: CandidateVerdict::Selected,
        });
        remove(view, self.context, workload);
        self.victims.push((workload, reason));
        self.tournament.invalidate_shares(view.tree, queue);
        remove_request(view, self.preemptor.request);
        let fits = fits(view, self.preemptor, true);
        add_request(view, self.preemptor.request);
        fits
    }

    /// Returns the queue of the next candidate: from the root down, always the child with the largest share.
    fn next_queue(&mut self, view: &View<'_>) -> Option<NodeId> {
        let own = self.preemptor.queue;
        let root = view.tree.node(own).root;
        if root == own {
            return self.tournament.next_candidate(own).map(|_| own);
        }
        let path = ancestors(view, own);
        let mut dead = BTreeSet::new();
        while !dead.contains(&root) {
            let mut cohort = root;
            loop {
                let (queue, child) = self.best_below(view, cohort, &path, &dead);
                match (queue, child) {
                    (None, None) => {
                        dead.insert(cohort);
                        break;
                    }
                    (Some((queue, share)), Some((_, other))) if other.cmp(&share).is_lt() => {
                        return Some(queue);
                    }
                    (_, Some((child, _))) => cohort = child,
                    (Some((queue, _)), None) => return Some(queue),
                }
            }
        }
        None
    }

    /// Returns the queue and the cohort with the largest share among the children of a cohort.
    #[allow(
        clippy::type_complexity,
        reason = "two optional pairs, destructured by the only caller"
    )]
    fn best_below(
        &mut self,
        view: &View<'_>,
        cohort: NodeId,
        path: &BTreeSet<NodeId>,
        dead: &BTreeSet<NodeId>,
    ) -> (
        Option<(NodeId, DominantShare)>,
        Option<(NodeId, DominantShare)>,
    ) {
        let mut best_queue: Option<(NodeId, DominantShare)> = None;
        let mut best_cohort: Option<(NodeId, DominantShare)> = None;
        for child in &view.tree.node(cohort).children {
            let node = view.tree.node(*child);
            let front = self.tournament.next_candidate(*child);
            if node.is_queue && front.is_none() || dead.contains(child) {
                continue;
            }
            let share = self.tournament.share(view, *child);
            let is_ours = *child == self.preemptor.queue || path.contains(child);
            if !share.is_borrowing && !is_ours {
                continue;
            }
            let best = if node.is_queue {
                &mut best_queue
            } else {
                &mut best_cohort
            };
            let is_better = best.is_none_or(|(than, least)| {
                share.cmp(&least).then_with(|| {
                    match (front, self.tournament.next_candidate(than)) {
                        (Some(a), Some(b)) => {
                            cmp_across(self.context, self.preemptor, (*child, a), (than, b))
                                .reverse()
                        }
                        // Among equal cohorts Kueue selects any; here the first by name wins.
                        _ => view.tree.node(than).name().cmp(node.name()),
                    }
                }) == Ordering::Greater
            });
            if is_better {
                *best = Some((*child, share));
            }
        }
        (best_queue, best_cohort)
    }
}

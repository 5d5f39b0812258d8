//! Victims by dominant resource shares: those with the largest share give first.
//!
//! Source: Kueue `pkg/scheduler/preemption/preemption.go` and `fairsharing/`, KEP-1714.
//!
//! The request is put on the preemptor's queue first, so that all shares count it. Then a tournament
//! goes down the tree from the root to the queue to take from; the strategies say whether a candidate of
//! it may be taken. What the preemptor takes of its own queue, and whatever it takes while it stays
//! within its nominal quota, asks no share.
//!
//! What differs from KEP-1714: the denominator is what the parent could lend at all; "reclaim" looks at
//! the preemptor's own nominal quota only, not at its cohorts'; there is no "smallest first".
//! `borrowWithinCohort` plays no part.

use super::fit::{fill_back, fits, remove, told};
use super::merge::Merge;
use super::{Demand, Preemptor, Reach, Reason, Victim, World, is_in_vain, note_in_vain};
use crate::names::{NodeId, WorkloadId};
use crate::policy::FairStrategy;
use crate::quota::{Tree, Usage, View};
use crate::ranked::{Rank, Ranked};
use crate::running::Group;
use crate::share::Share;
use crate::trace::{CandidateVerdict, Step, Trace};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn search(
    view: &mut View<'_>,
    world: &World<'_>,
    preemptor: &Preemptor<'_>,
    strategies: &[FairStrategy],
    trace: &mut Trace,
) -> Vec<Victim> {
    trace.note(|| Step::Search {
        needs: preemptor.needs.to_vec(),
    });
    if is_in_vain(view, world, preemptor) {
        note_in_vain(view, world, preemptor, trace);
        return Vec::new();
    }
    trace.note(|| Step::Attempt { may_borrow: true });
    let mut queues = collect(view, world, preemptor, trace);
    put(view, preemptor.request);
    let mut contest = Contest {
        world,
        preemptor,
        within_nominal: is_within_nominal(view, preemptor),
        victims: Vec::new(),
        retry: BTreeMap::new(),
        standings: Standings::of(view.tree),
        trace,
    };
    let (first, second) = (strategies.first().copied(), strategies.get(1));
    let first = first.unwrap_or(FairStrategy::LessThanOrEqualToFinalShare);
    let mut found = contest.first_pass(view, &mut queues, first);
    if !found && second == Some(&FairStrategy::LessThanInitialShare) {
        found = contest.second_pass(view);
    }
    let mut victims = contest.victims;
    if !found {
        trace.note(|| Step::Searched { found: false });
        return Vec::new();
    }
    take_off(view, preemptor.request);
    fill_back(view, world, preemptor, true, &mut victims, |workload| {
        trace.note(|| Step::FilledBack { workload });
    });
    trace.note(|| Step::Searched { found: true });
    told(victims)
}

fn put(view: &mut View<'_>, request: &[Demand]) {
    for demand in request {
        view.add(demand.cell, demand.amount);
    }
}

fn take_off(view: &mut View<'_>, request: &[Demand]) {
    for demand in request {
        view.remove(demand.cell, demand.amount);
    }
}

/// Whether the preemptor's queue, the request included, is within its own nominal quota.
fn is_within_nominal(view: &View<'_>, preemptor: &Preemptor<'_>) -> bool {
    let node = view.tree.node(preemptor.queue);
    let mut cells = preemptor.needs.iter().filter_map(|of| node.cell(*of));
    cells.all(|cell| view.usage(cell) <= view.tree.cell(cell).nominal)
}

/// The candidates of one queue, read from the front.
struct Candidates<'a> {
    reach: Reach,
    evicted: Merge<'a>,
    others: Merge<'a>,
    front: Option<Front>,
}

/// The candidate that is next.
#[derive(Clone, Copy)]
struct Front {
    rank: Rank,
    is_evicted: bool,
}

impl Candidates<'_> {
    fn advance(&mut self, world: &World<'_>, preemptor: &Preemptor<'_>, trace: &mut Trace) {
        for is_evicted in [true, false] {
            let merge = if is_evicted {
                &mut self.evicted
            } else {
                &mut self.others
            };
            while let Some(next) = merge.next() {
                let rank = next.rank;
                if self.reach.ends_at(rank.priority) {
                    continue;
                }
                merge.go_on(&next);
                let running = world.running.running(rank.id);
                let Some(running) = running.filter(|it| self.reach.takes(it)) else {
                    continue;
                };
                if world.gone.contains(&rank.id) {
                    continue;
                }
                if let Some(why) = world.spares(preemptor, rank.id, running) {
                    let workload = rank.id;
                    trace.note(|| Step::Spared { workload, why });
                    continue;
                }
                self.front = Some(Front { rank, is_evicted });
                return;
            }
        }
        self.front = None;
    }

    fn pop(
        &mut self,
        world: &World<'_>,
        preemptor: &Preemptor<'_>,
        trace: &mut Trace,
    ) -> Option<Front> {
        let front = self.front;
        self.advance(world, preemptor, trace);
        front
    }
}

/// The candidates of every queue that may have to give.
fn collect<'a>(
    view: &View<'_>,
    world: &World<'a>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> BTreeMap<NodeId, Candidates<'a>> {
    let mut found = BTreeMap::new();
    let mut add = |queue, reach| {
        let groups = world.index.groups(queue).iter();
        let groups: Vec<_> = groups
            .filter(|group| !group.is_empty() && group.uses_any(preemptor.needs))
            .collect();
        let merge = |of: fn(&Group) -> &Ranked| {
            let lists = groups.iter().map(|group| of(group)).enumerate();
            Merge::of(world.running, lists)
        };
        let mut candidates = Candidates {
            reach,
            evicted: merge(|it| &it.evicted),
            others: merge(|it| &it.others),
            front: None,
        };
        candidates.advance(world, preemptor, trace);
        if candidates.front.is_some() {
            found.insert(queue, candidates);
        }
    };
    add(preemptor.queue, Reach::within(preemptor));
    let reach = Reach::beyond(preemptor);
    if reach == Reach::Nobody {
        return found;
    }
    let mut open = vec![view.tree.node(preemptor.queue).root];
    while let Some(id) = open.pop() {
        let node = view.tree.node(id);
        open.extend(&node.children);
        let mut needed = preemptor.needs.iter().filter_map(|of| node.cell(*of));
        let mut borrows = || needed.any(|cell| view.usage(cell) > view.tree.cell(cell).nominal);
        if node.is_queue && id != preemptor.queue && borrows() {
            add(id, reach);
        }
    }
    found
}

/// Whether candidates of `a` come before those of `b`, which are of another queue. Among equals those
/// of the preemptor's own queue come last.
fn cmp_across(
    world: &World<'_>,
    preemptor: &Preemptor<'_>,
    a: (NodeId, Front),
    b: (NodeId, Front),
) -> Ordering {
    let key = |(queue, front): (NodeId, Front)| (!front.is_evicted, queue == preemptor.queue);
    key(a)
        .cmp(&key(b))
        .then_with(|| a.1.rank.cmp(&b.1.rank, world.running))
}

/// How the nodes stand in the tournaments, kept from one to the next.
struct Standings {
    /// By node: its share, unless it has changed; and if it is a queue, its next candidate.
    nodes: Vec<(Option<Share>, Option<Front>)>,
}

impl Standings {
    fn of(tree: &Tree) -> Self {
        Self {
            nodes: vec![(None, None); tree.nodes().count()],
        }
    }

    fn front(&self, queue: NodeId) -> Option<Front> {
        self.nodes.get(queue.index())?.1
    }

    /// Says which it was.
    fn set_front(&mut self, queue: NodeId, front: Option<Front>) -> Option<Front> {
        let (_, slot) = self.nodes.get_mut(queue.index())?;
        std::mem::replace(slot, front)
    }

    /// These, and no others.
    fn set_fronts(&mut self, fronts: impl Iterator<Item = (NodeId, Front)>) {
        for (_, front) in &mut self.nodes {
            *front = None;
        }
        for (queue, front) in fronts {
            self.set_front(queue, Some(front));
        }
    }

    fn share(&mut self, view: &View<'_>, id: NodeId) -> Share {
        let Some((share, _)) = self.nodes.get_mut(id.index()) else {
            return Share::of(view, id);
        };
        *share.get_or_insert_with(|| Share::of(view, id))
    }

    /// Usage of a queue has changed, and with it that of all above it.
    fn forget_shares(&mut self, tree: &Tree, queue: NodeId) {
        let up = |id: &NodeId| tree.node(*id).parent;
        for id in std::iter::successors(Some(queue), up) {
            if let Some((share, _)) = self.nodes.get_mut(id.index()) {
                *share = None;
            }
        }
    }
}

/// The search, between tournaments.
struct Contest<'a, 'b> {
    world: &'b World<'a>,
    preemptor: &'b Preemptor<'b>,
    within_nominal: bool,
    victims: Vec<(WorkloadId, Reason)>,
    /// The first of each queue that the first pass rejected.
    retry: BTreeMap<NodeId, Front>,
    standings: Standings,
    trace: &'b mut Trace,
}

impl<'a> Contest<'a, '_> {
    fn first_pass(
        &mut self,
        view: &mut View<'_>,
        queues: &mut BTreeMap<NodeId, Candidates<'a>>,
        strategy: FairStrategy,
    ) -> bool {
        let fronts = queues.iter();
        let fronts = fronts.filter_map(|(queue, candidates)| Some((*queue, candidates.front?)));
        self.standings.set_fronts(fronts);
        loop {
            let Some(queue) = self.next_queue(view) else {
                return false;
            };
            let Some(candidates) = queues.get_mut(&queue) else {
                return false;
            };
            let taken = if queue == self.preemptor.queue {
                let front = candidates.pop(self.world, self.preemptor, self.trace);
                front.map(|front| (front, Reason::InClusterQueue))
            } else if self.within_nominal {
                let front = candidates.pop(self.world, self.preemptor, self.trace);
                front.map(|front| (front, Reason::InCohortReclamation))
            } else {
                self.first_that_passes(view, queue, candidates, strategy)
            };
            self.standings.set_front(queue, candidates.front);
            if let Some((front, reason)) = taken
                && self.take(view, queue, front, reason)
            {
                return true;
            }
        }
    }

    fn first_that_passes(
        &mut self,
        view: &mut View<'_>,
        queue: NodeId,
        candidates: &mut Candidates<'a>,
        strategy: FairStrategy,
    ) -> Option<(Front, Reason)> {
        let (ours, theirs) = below_common(view, self.preemptor.queue, queue);
        let new = Share::of(view, ours);
        let old = Share::of(view, theirs);
        while let Some(front) = candidates.pop(self.world, self.preemptor, self.trace) {
            let passes = self.world.former.borrows_under_fair_sharing
                && self.preemptor.borrows_from(front.rank.priority)
                || match strategy {
                    FairStrategy::LessThanInitialShare => new.cmp(&old).is_lt(),
                    FairStrategy::LessThanOrEqualToFinalShare => {
                        let mark = view.mark();
                        remove(view, self.world, front.rank.id);
                        let after = Share::of(view, theirs);
                        view.roll_back(mark);
                        new.cmp(&after).is_le()
                    }
                };
            if passes {
                return Some((front, Reason::InCohortFairSharing));
            }
            self.reject(front);
            self.retry.entry(queue).or_insert(front);
        }
        None
    }

    /// Looks again at what was rejected, at most one workload of each queue.
    fn second_pass(&mut self, view: &mut View<'_>) -> bool {
        let retry = std::mem::take(&mut self.retry);
        self.standings.set_fronts(retry.into_iter());
        loop {
            let Some(queue) = self.next_queue(view) else {
                return false;
            };
            let Some(front) = self.standings.set_front(queue, None) else {
                return false;
            };
            let (ours, theirs) = below_common(view, self.preemptor.queue, queue);
            if Share::of(view, ours).cmp(&Share::of(view, theirs)).is_lt() {
                if self.take(view, queue, front, Reason::InCohortFairSharing) {
                    return true;
                }
            } else {
                self.reject(front);
            }
        }
    }

    fn reject(&mut self, front: Front) {
        let workload = front.rank.id;
        self.trace.note(|| Step::Candidate {
            workload,
            reason: Reason::InCohortFairSharing,
            verdict: CandidateVerdict::ShareTooLarge,
        });
    }

    /// True if the preemptor fits without it.
    fn take(&mut self, view: &mut View<'_>, queue: NodeId, front: Front, reason: Reason) -> bool {
        let workload = front.rank.id;
        self.trace.note(|| Step::Candidate {
            workload,
            reason,
            verdict: CandidateVerdict::Taken,
        });
        remove(view, self.world, workload);
        self.victims.push((workload, reason));
        self.standings.forget_shares(view.tree, queue);
        take_off(view, self.preemptor.request);
        let fits = fits(view, self.preemptor, true);
        put(view, self.preemptor.request);
        fits
    }

    /// The queue to take from next: down from the root, always to the largest share.
    fn next_queue(&mut self, view: &View<'_>) -> Option<NodeId> {
        let own = self.preemptor.queue;
        let root = view.tree.node(own).root;
        if root == own {
            return self.standings.front(own).map(|_| own);
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

    /// The queue and the cohort with the largest share among the children of a cohort.
    #[allow(
        clippy::type_complexity,
        reason = "two optional pairs, taken apart at once"
    )]
    fn best_below(
        &mut self,
        view: &View<'_>,
        cohort: NodeId,
        path: &BTreeSet<NodeId>,
        dead: &BTreeSet<NodeId>,
    ) -> (Option<(NodeId, Share)>, Option<(NodeId, Share)>) {
        let mut best_queue: Option<(NodeId, Share)> = None;
        let mut best_cohort: Option<(NodeId, Share)> = None;
        for child in &view.tree.node(cohort).children {
            let node = view.tree.node(*child);
            let front = self.standings.front(*child);
            if node.is_queue && front.is_none() || dead.contains(child) {
                continue;
            }
            let share = self.standings.share(view, *child);
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
                    match (front, self.standings.front(than)) {
                        (Some(a), Some(b)) => {
                            cmp_across(self.world, self.preemptor, (*child, a), (than, b)).reverse()
                        }
                        // Kueue takes any of several cohorts; here it is the first by name.
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

/// All cohorts above a queue.
fn ancestors(view: &View<'_>, queue: NodeId) -> BTreeSet<NodeId> {
    let up = |id: &NodeId| view.tree.node(*id).parent;
    std::iter::successors(up(&queue), up).collect()
}

/// The children of the lowest common ancestor on the way to each of two queues.
fn below_common(view: &View<'_>, ours: NodeId, theirs: NodeId) -> (NodeId, NodeId) {
    let above = ancestors(view, ours);
    let up = |id: NodeId| view.tree.node(id).parent;
    let mut below_theirs = theirs;
    while let Some(parent) = up(below_theirs)
        && !above.contains(&parent)
    {
        below_theirs = parent;
    }
    let common = up(below_theirs);
    let mut below_ours = ours;
    while up(below_ours) != common {
        let Some(parent) = up(below_ours) else {
            break;
        };
        below_ours = parent;
    }
    (below_ours, below_theirs)
}

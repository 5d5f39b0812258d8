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
use super::{Demand, Preemptor, Reach, Reason, Victim, World, is_in_vain};
use crate::names::{NodeId, WorkloadId};
use crate::policy::FairStrategy;
use crate::quota::{Usage, View};
use crate::running::Key;
use crate::share::Share;
use crate::trace::{CandidateVerdict, Step, Trace};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
        trace.note(|| Step::InVain);
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
    front: Option<Front<'a>>,
}

/// The candidate that is next.
#[derive(Clone, Copy)]
struct Front<'a> {
    key: &'a Key,
    is_evicted: bool,
}

impl<'a> Candidates<'a> {
    fn advance(&mut self, world: &World<'_>, preemptor: &Preemptor<'_>, trace: &mut Trace) {
        for is_evicted in [true, false] {
            let merge = if is_evicted {
                &mut self.evicted
            } else {
                &mut self.others
            };
            while let Some(next) = merge.next() {
                let key = next.key;
                if self.reach.ends_at(key.priority) {
                    continue;
                }
                merge.go_on(&next);
                let running = world.running.running(key.id);
                let Some(running) = running.filter(|it| self.reach.takes(it)) else {
                    continue;
                };
                if world.gone.contains(&key.id) {
                    continue;
                }
                if let Some(why) = world.spares(preemptor, key.id, running) {
                    let workload = key.id;
                    trace.note(|| Step::Spared { workload, why });
                    continue;
                }
                self.front = Some(Front { key, is_evicted });
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
    ) -> Option<Front<'a>> {
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
        let mut candidates = Candidates {
            reach,
            evicted: Merge::of(groups.iter().map(|it| &it.evicted)),
            others: Merge::of(groups.iter().map(|it| &it.others)),
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
    preemptor: &Preemptor<'_>,
    a: (NodeId, Front<'_>),
    b: (NodeId, Front<'_>),
) -> Ordering {
    let key = |(queue, front): (NodeId, Front<'_>)| (!front.is_evicted, queue == preemptor.queue);
    key(a).cmp(&key(b)).then_with(|| a.1.key.cmp(b.1.key))
}

/// The search, between tournaments.
struct Contest<'a, 'b> {
    world: &'b World<'a>,
    preemptor: &'b Preemptor<'b>,
    within_nominal: bool,
    victims: Vec<(WorkloadId, Reason)>,
    /// What the first pass rejected.
    retry: BTreeMap<NodeId, VecDeque<Front<'a>>>,
    trace: &'b mut Trace,
}

impl<'a> Contest<'a, '_> {
    fn first_pass(
        &mut self,
        view: &mut View<'_>,
        queues: &mut BTreeMap<NodeId, Candidates<'a>>,
        strategy: FairStrategy,
    ) -> bool {
        loop {
            let fronts: BTreeMap<_, _> = queues
                .iter()
                .filter_map(|(queue, candidates)| Some((*queue, candidates.front?)))
                .collect();
            let Some(queue) = self.next_queue(view, &fronts) else {
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
            if let Some((front, reason)) = taken
                && self.take(view, front, reason)
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
    ) -> Option<(Front<'a>, Reason)> {
        let (ours, theirs) = below_common(view, self.preemptor.queue, queue);
        let new = Share::of(view, ours);
        let old = Share::of(view, theirs);
        while let Some(front) = candidates.pop(self.world, self.preemptor, self.trace) {
            let passes = match strategy {
                FairStrategy::LessThanInitialShare => new.cmp(&old).is_lt(),
                FairStrategy::LessThanOrEqualToFinalShare => {
                    let mark = view.mark();
                    remove(view, self.world, front.key.id);
                    let after = Share::of(view, theirs);
                    view.roll_back(mark);
                    new.cmp(&after).is_le()
                }
            };
            if passes {
                return Some((front, Reason::InCohortFairSharing));
            }
            self.reject(front);
            self.retry.entry(queue).or_default().push_back(front);
        }
        None
    }

    /// Looks again at what was rejected, at most one workload of each queue.
    fn second_pass(&mut self, view: &mut View<'_>) -> bool {
        let mut retry = std::mem::take(&mut self.retry);
        loop {
            let fronts: BTreeMap<_, _> = retry
                .iter()
                .filter_map(|(queue, list)| Some((*queue, *list.front()?)))
                .collect();
            let Some(queue) = self.next_queue(view, &fronts) else {
                return false;
            };
            let Some(front) = retry.remove(&queue).and_then(|mut list| list.pop_front()) else {
                return false;
            };
            let (ours, theirs) = below_common(view, self.preemptor.queue, queue);
            if Share::of(view, ours).cmp(&Share::of(view, theirs)).is_lt() {
                if self.take(view, front, Reason::InCohortFairSharing) {
                    return true;
                }
            } else {
                self.reject(front);
            }
        }
    }

    fn reject(&mut self, front: Front<'_>) {
        let workload = front.key.id;
        self.trace.note(|| Step::Candidate {
            workload,
            reason: Reason::InCohortFairSharing,
            verdict: CandidateVerdict::ShareTooLarge,
        });
    }

    /// True if the preemptor fits without it.
    fn take(&mut self, view: &mut View<'_>, front: Front<'_>, reason: Reason) -> bool {
        let workload = front.key.id;
        self.trace.note(|| Step::Candidate {
            workload,
            reason,
            verdict: CandidateVerdict::Taken,
        });
        remove(view, self.world, workload);
        self.victims.push((workload, reason));
        take_off(view, self.preemptor.request);
        let fits = fits(view, self.preemptor, true);
        put(view, self.preemptor.request);
        fits
    }

    /// The queue to take from next: down from the root, always to the largest share.
    fn next_queue(&self, view: &View<'_>, fronts: &BTreeMap<NodeId, Front<'a>>) -> Option<NodeId> {
        let own = self.preemptor.queue;
        let root = view.tree.node(own).root;
        if root == own {
            return fronts.contains_key(&own).then_some(own);
        }
        let path = ancestors(view, own);
        let mut dead = BTreeSet::new();
        while !dead.contains(&root) {
            let mut cohort = root;
            loop {
                let (queue, child) = self.best_below(view, cohort, fronts, &path, &dead);
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
        &self,
        view: &View<'_>,
        cohort: NodeId,
        fronts: &BTreeMap<NodeId, Front<'a>>,
        path: &BTreeSet<NodeId>,
        dead: &BTreeSet<NodeId>,
    ) -> (Option<(NodeId, Share)>, Option<(NodeId, Share)>) {
        let mut best_queue: Option<(NodeId, Share)> = None;
        let mut best_cohort: Option<(NodeId, Share)> = None;
        for child in &view.tree.node(cohort).children {
            let node = view.tree.node(*child);
            if node.is_queue && !fronts.contains_key(child) || dead.contains(child) {
                continue;
            }
            let share = Share::of(view, *child);
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
                    match (fronts.get(child), fronts.get(&than)) {
                        (Some(a), Some(b)) => {
                            cmp_across(self.preemptor, (*child, *a), (than, *b)).reverse()
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

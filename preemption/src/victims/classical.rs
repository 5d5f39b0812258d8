//! Victims by priority, and from queues that borrow.
//!
//! Source: Kueue `pkg/scheduler/preemption/classical`, KEP-83 "Preemption algorithm", KEP-1337. In the
//! order in which it happens:
//!
//! 1. **Lists.** `Same` has the workloads of the preemptor's queue. Those of other queues are found by
//!    walking up from the queue: below each ancestor, the queues that borrow. They are in `Hierarchy`
//!    if some subtree below that ancestor, with the preemptor in it, has quota for the request (then
//!    it takes back what is its own), else in `Priority`.
//! 2. **Order.** Each list by candidate order; then `Hierarchy`, `Priority`, `Same`, first all that are
//!    evicted already, then all others.
//! 3. **Attempts.** With borrowing, without, or one after the other. The first that succeeds wins.
//! 4. **One attempt** takes candidates in order until the preemptor fits. A queue stops giving once it,
//!    or a cohort between it and the common ancestor, no longer borrows.
//! 5. **Fill-back.**
//!
//! What differs from the design documents, because Kueue does so today: a preemptor may borrow at the
//! cost of its own queue's workloads whatever `borrowWithinCohort` says; "below nominal quota" is asked
//! for what needs preemption only, and of every cohort on the way; `borrowWithinCohort` and its threshold
//! bind in `Priority` only.

use super::fit::{fill_back, fits, remove, told};
use super::merge::Merge;
use super::{Preemptor, Reach, Reason, Victim, World, is_in_vain, note_in_vain};
use crate::amount::Amount;
use crate::names::{CellId, NodeId, WorkloadId};
use crate::policy::BorrowWithinCohort;
use crate::quota::{Usage, View};
use crate::ranked::{Rank, Ranked};
use crate::running::{Group, Running};
use crate::trace::{CandidateVerdict, QueueVerdict, Step, Trace};

/// From which list a candidate is, in the order in which the lists are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Hierarchy,
    Priority,
    Same,
}

/// The candidates of one group of a queue.
struct List<'a> {
    part: Part,
    queue: NodeId,
    /// The lowest common ancestor with the preemptor.
    ancestor: NodeId,
    group: &'a Group,
}

pub(super) fn search(
    view: &mut View<'_>,
    world: &World<'_>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> Vec<Victim> {
    trace.note(|| Step::Search {
        needs: preemptor.needs.to_vec(),
    });
    if is_in_vain(view, world, preemptor) {
        note_in_vain(view, world, preemptor, trace);
        return Vec::new();
    }
    let lists = collect(view, world, preemptor, trace);
    if lists.is_empty() {
        trace.note(|| Step::Searched { found: false });
        return Vec::new();
    }
    for may_borrow in attempts(view, preemptor, &lists).into_iter().flatten() {
        trace.note(|| Step::Attempt { may_borrow });
        let mark = view.mark();
        let victims = attempt(view, world, preemptor, &lists, may_borrow, trace);
        view.roll_back(mark);
        if let Some(victims) = victims {
            trace.note(|| Step::Searched { found: true });
            return told(victims);
        }
    }
    trace.note(|| Step::Searched { found: false });
    Vec::new()
}

/// The lists with candidates: workloads that use what is needed and may be taken.
fn collect<'a>(
    view: &View<'_>,
    world: &World<'a>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> Vec<List<'a>> {
    let mut lists = Vec::new();
    let mut add = |part, queue, ancestor, reach| {
        let groups = world.index.groups(queue).iter();
        let useful = groups.filter(|group| {
            if !group.uses_any(preemptor.needs) {
                return false;
            }
            let is_useful = has_candidate(world, preemptor, group, reach);
            if !is_useful {
                note_spared(world, preemptor, group, reach, trace);
            }
            is_useful
        });
        lists.extend(useful.map(|group| List {
            part,
            queue,
            ancestor,
            group,
        }));
    };
    add(
        Part::Same,
        preemptor.queue,
        preemptor.queue,
        Reach::within(preemptor),
    );
    let beyond = Reach::beyond(preemptor);
    if beyond == Reach::Nobody {
        return lists;
    }
    let request = preemptor.request.iter();
    let mut request: Vec<(CellId, Amount)> = request.map(|it| (it.cell, it.amount)).collect();
    let mut has_quota = climb(view, &mut request);
    let mut below = preemptor.queue;
    let mut open = Vec::new();
    while let Some(ancestor) = view.tree.node(below).parent {
        let part = if has_quota {
            Part::Hierarchy
        } else {
            Part::Priority
        };
        let siblings = view.tree.node(ancestor).children.iter();
        open.extend(siblings.filter(|it| **it != below));
        while let Some(id) = open.pop() {
            if view.is_node_within_quota(id, preemptor.needs) {
                continue;
            }
            let node = view.tree.node(id);
            if node.is_queue {
                add(part, id, ancestor, beyond);
            } else {
                open.extend(&node.children);
            }
        }
        has_quota |= climb(view, &mut request);
        below = ancestor;
    }
    lists
}

/// Whether the node has quota for the request; and what of the request is left for its parent.
fn climb(view: &View<'_>, request: &mut [(CellId, Amount)]) -> bool {
    let mut has_quota = true;
    for (cell, amount) in request {
        let it = view.tree.cell(*cell);
        let usage = view.usage(*cell);
        has_quota &= usage.plus(*amount) <= it.subtree;
        *amount = amount.minus(it.local_available(usage)).or_zero();
        *cell = it.parent.unwrap_or(*cell);
    }
    has_quota
}

/// Whether to try with borrowing and without, in order.
fn attempts(view: &View<'_>, preemptor: &Preemptor<'_>, lists: &[List<'_>]) -> [Option<bool>; 2] {
    let has = |part| lists.iter().any(|list| list.part == part);
    let has_hierarchy = has(Part::Hierarchy);
    let never_while_borrowing = preemptor.policy.borrow_within_cohort == BorrowWithinCohort::Never;
    let node = view.tree.node(preemptor.queue);
    let mut needed = preemptor.needs.iter().filter_map(|of| node.cell(*of));
    let mut is_below_nominal = || needed.all(|it| view.usage(it) < view.tree.cell(it).nominal);
    if !has_hierarchy && !has(Part::Priority) || never_while_borrowing && !is_below_nominal() {
        [Some(true), None]
    } else if never_while_borrowing && !has_hierarchy {
        [Some(false), Some(true)]
    } else {
        [Some(true), Some(false)]
    }
}

/// Whether a group has anybody who may be taken. Costs those before him in candidate order: of
/// equal priority, or gone.
fn has_candidate(
    world: &World<'_>,
    preemptor: &Preemptor<'_>,
    group: &Group,
    reach: Reach,
) -> bool {
    let guard = &world.guard;
    let may_go = |Rank { priority, id, .. }: Rank| {
        if world.gone.contains(&id) {
            return false;
        }
        if reach.takes_all_of(priority) && !guard.has_limits {
            // Nearly always: the workload itself need not be looked at.
            return guard.damps(preemptor.priority, id, priority).is_none();
        }
        let may_go = |it| reach.takes(it) && world.spares(preemptor, id, it).is_none();
        world.running.running(id).is_some_and(may_go)
    };
    [&group.evicted, &group.others].into_iter().any(|ranked| {
        let mut near = ranked
            .iter()
            .take_while(|rank| !reach.ends_at(rank.priority));
        near.any(may_go)
    })
}

/// Says why nobody of a group may be taken, where that is not the policy.
fn note_spared(
    world: &World<'_>,
    preemptor: &Preemptor<'_>,
    group: &Group,
    reach: Reach,
    trace: &mut Trace,
) {
    if !trace.is_on() {
        return;
    }
    for ranked in [&group.evicted, &group.others] {
        let near = ranked.iter();
        for Rank { id, .. } in near.take_while(|rank| !reach.ends_at(rank.priority)) {
            let running = world.running.running(id).filter(|it| reach.takes(it));
            if let Some(why) = running.and_then(|it| world.spares(preemptor, id, it))
                && !world.gone.contains(&id)
            {
                let workload = id;
                trace.note(|| Step::Spared { workload, why });
            }
        }
    }
}

/// Takes candidates until the preemptor fits; `None` if it never does.
fn attempt(
    view: &mut View<'_>,
    world: &World<'_>,
    preemptor: &Preemptor<'_>,
    lists: &[List<'_>],
    may_borrow: bool,
    trace: &mut Trace,
) -> Option<Vec<(WorkloadId, Reason)>> {
    let mut victims = Vec::new();
    for is_evicted in [true, false] {
        for part in [Part::Hierarchy, Part::Priority, Part::Same] {
            let section = Section {
                part,
                may_borrow,
                reach: match part {
                    Part::Same => Reach::within(preemptor),
                    Part::Hierarchy | Part::Priority => Reach::beyond(preemptor),
                },
                lists,
            };
            if section.take(view, world, preemptor, is_evicted, &mut victims, trace) {
                fill_back(
                    view,
                    world,
                    preemptor,
                    may_borrow,
                    &mut victims,
                    |workload| {
                        trace.note(|| Step::FilledBack { workload });
                    },
                );
                return Some(victims);
            }
        }
    }
    None
}

/// The lists of one part.
struct Section<'a> {
    part: Part,
    may_borrow: bool,
    reach: Reach,
    lists: &'a [List<'a>],
}

impl<'a> Section<'a> {
    /// Takes candidates of this part in order; true as soon as the preemptor fits.
    fn take(
        &self,
        view: &mut View<'_>,
        world: &World<'a>,
        preemptor: &Preemptor<'_>,
        is_evicted: bool,
        victims: &mut Vec<(WorkloadId, Reason)>,
        trace: &mut Trace,
    ) -> bool {
        let ranked = |list: &List<'a>| -> &'a Ranked {
            if is_evicted {
                &list.group.evicted
            } else {
                &list.group.others
            }
        };
        let lists = self.lists.iter().enumerate();
        let of_part = lists.filter(|(_, list)| list.part == self.part);
        let of_part = of_part.map(|(at, list)| (at, ranked(list)));
        let mut merge = Merge::of(world.running, of_part);
        while let Some(next) = merge.next() {
            let rank = next.rank;
            let Some(list) = self.lists.get(next.at) else {
                continue;
            };
            if let Some(verdict) = self.passes_over(view, preemptor, list, rank.priority) {
                let queue = list.queue;
                trace.note(|| Step::Queue { queue, verdict });
                continue;
            }
            let Some(running) = world.running.running(rank.id) else {
                merge.go_on(&next);
                continue;
            };
            let reason = self.reason(preemptor, running);
            let workload = rank.id;
            let mut verdict = |verdict| {
                trace.note(|| Step::Candidate {
                    workload,
                    reason,
                    verdict,
                });
            };
            if reason == Reason::InCohortReclamation
                && self.part == Part::Priority
                && self.may_borrow
            {
                // Those after it in the list have as high a priority: none of them may go either.
                verdict(CandidateVerdict::NotWhileBorrowing);
                continue;
            }
            merge.go_on(&next);
            if world.gone.contains(&workload) {
                continue;
            }
            if !self.reach.takes(running) {
                verdict(CandidateVerdict::NotNewer);
                continue;
            }
            if let Some(why) = world.spares(preemptor, workload, running) {
                trace.note(|| Step::Spared { workload, why });
                continue;
            }
            verdict(CandidateVerdict::Taken);
            remove(view, world, workload);
            victims.push((workload, reason));
            if fits(view, preemptor, self.may_borrow) {
                return true;
            }
        }
        false
    }

    /// Why no more candidates of a list come into question.
    fn passes_over(
        &self,
        view: &View<'_>,
        preemptor: &Preemptor<'_>,
        list: &List<'_>,
        priority: i32,
    ) -> Option<QueueVerdict> {
        if self.reach.ends_at(priority) {
            return Some(self.too_high(preemptor, priority));
        }
        if self.part == Part::Same {
            return None;
        }
        let mut at = list.queue;
        loop {
            if view.is_node_within_quota(at, preemptor.needs) {
                return Some(QueueVerdict::NoLongerBorrows);
            }
            match view.tree.node(at).parent {
                Some(parent) if parent != list.ancestor => at = parent,
                _ => return None,
            }
        }
    }

    /// What ends a list: the policy, or a threshold below it.
    fn too_high(&self, preemptor: &Preemptor<'_>, priority: i32) -> QueueVerdict {
        let mut unlimited = *preemptor;
        let limits = std::mem::take(&mut unlimited.policy.limits);
        let (reach, threshold_max) = match self.part {
            Part::Same => (Reach::within(&unlimited), limits.within_threshold_max),
            Part::Hierarchy | Part::Priority => {
                (Reach::beyond(&unlimited), limits.reclaim_threshold_max)
            }
        };
        match threshold_max {
            Some(threshold_max) if !reach.ends_at(priority) => {
                QueueVerdict::AboveThreshold { threshold_max }
            }
            _ => QueueVerdict::PriorityTooHigh,
        }
    }

    /// As what a candidate would go.
    fn reason(&self, preemptor: &Preemptor<'_>, running: &Running) -> Reason {
        match self.part {
            Part::Same => Reason::InClusterQueue,
            Part::Hierarchy => Reason::InCohortReclamation,
            Part::Priority => match preemptor.policy.borrow_within_cohort {
                BorrowWithinCohort::LowerPriority { threshold_max }
                    if running.priority < preemptor.priority
                        && threshold_max.is_none_or(|most| running.priority <= most) =>
                {
                    Reason::InCohortReclaimWhileBorrowing
                }
                _ => Reason::InCohortReclamation,
            },
        }
    }
}

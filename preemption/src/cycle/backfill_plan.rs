//! The future usage of a tree: the ends of its running workloads, and planned starts.

use super::nominate::NominationContext;
use crate::admitted::{AdmittedLookup, NO_END};
use crate::amount::Amount;
use crate::assignment::{Assignment, Mode};
use crate::ids::{CellId, NodeId};
use crate::quota::{UsageStore, View};
use crate::state::State;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A change of the usage of a cell.
#[derive(Clone, Copy, Debug)]
enum Change {
    Add(CellId, Amount),
    Remove(CellId, Amount),
}

/// A time at which a workload fits.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) at_s: i64,
    pub(super) assignment: Assignment,
    /// Its usage at the cells of its queue.
    demands: Vec<(CellId, Amount)>,
    /// Whether the quota is one that no other queue can borrow.
    pub(super) is_guaranteed: bool,
}

/// The result of a start at some time.
enum Attempt {
    Fits(Start),
    /// It does not fit then.
    NoQuota,
    /// It fits then, and no longer at this time, in seconds.
    NoQuotaAt(i64),
}

/// The changes of the usage of a tree after now. The usage now is in a view.
pub(super) struct Plan {
    now_s: i64,
    /// By time, in seconds.
    changes: BTreeMap<i64, Vec<Change>>,
    /// The times of guaranteed starts, and the cells that they use: no other start of the queue may use quota beyond the local
    /// one then, since other queues could take it back.
    guaranteed: BTreeSet<(i64, CellId)>,
}

impl Plan {
    /// Collects the latest ends of the admitted workloads of a tree. Costs their number times its logarithm.
    pub(super) fn new(state: &State, root: NodeId) -> Self {
        let mut plan = Self {
            now_s: state.now_s,
            changes: BTreeMap::new(),
            guaranteed: BTreeSet::new(),
        };
        let index = &state.admitted_index;
        let queues = state.tree.nodes().filter(|(_, node)| node.root == root);
        for group in queues.flat_map(|(id, _)| index.groups(id)) {
            // When an evicted workload releases its quota is not known.
            for key in group.not_evicted.iter() {
                let Some(running) = state.workloads.admitted(key.id) else {
                    continue;
                };
                for (cell, amount) in index.usage(running) {
                    plan.release_at(running.ends_by_s, cell, amount);
                }
            }
        }
        plan
    }

    fn release_at(&mut self, at_s: i64, cell: CellId, amount: Amount) {
        // The limit of a workload that exceeds it is not enforced.
        if at_s > self.now_s && at_s < NO_END {
            let changes = self.changes.entry(at_s).or_default();
            changes.push(Change::Remove(cell, amount));
        }
    }

    /// Returns the start of a workload now; `None` if it does not fit from now to its end.
    pub(super) fn start_now(
        &self,
        view: &mut View<'_>,
        context: &NominationContext<'_>,
        duration_s: i64,
    ) -> Option<Start> {
        match self.start_at(view, context, self.now_s, duration_s) {
            Attempt::Fits(start) => Some(start),
            Attempt::NoQuota | Attempt::NoQuotaAt(_) => None,
        }
    }

    /// Returns the earliest start of a workload; `None` if there is none. The view has the usage of now, before and after.
    pub(super) fn earliest(
        &self,
        view: &mut View<'_>,
        context: &NominationContext<'_>,
        duration_s: i64,
    ) -> Option<Start> {
        self.earliest_where(view, context, duration_s, |_| true)
    }

    /// Returns the earliest start that is guaranteed, or else the earliest start.
    pub(super) fn earliest_guaranteed(
        &self,
        view: &mut View<'_>,
        context: &NominationContext<'_>,
        duration_s: i64,
    ) -> Option<Start> {
        let guaranteed =
            self.earliest_where(view, context, duration_s, |start| start.is_guaranteed);
        guaranteed.or_else(|| self.earliest(view, context, duration_s))
    }

    fn earliest_where(
        &self,
        view: &mut View<'_>,
        context: &NominationContext<'_>,
        duration_s: i64,
        accepts: impl Fn(&Start) -> bool,
    ) -> Option<Start> {
        let mark = view.mark();
        let least = context.only_demands(view);
        let mut times = self.changes.iter();
        let mut at_s = self.now_s;
        // The latest time at which an earlier start had no quota.
        let mut without_quota_s = i64::MIN;
        let found = loop {
            let may_fit = least.as_ref().is_none_or(|it| fits(view, it));
            if may_fit && at_s > without_quota_s {
                match self.start_at(view, context, at_s, duration_s) {
                    Attempt::Fits(start) if accepts(&start) => break Some(start),
                    // With one flavor, a later start has no quota at that time either, unless it is after it.
                    Attempt::NoQuotaAt(then_s) if least.is_some() => without_quota_s = then_s,
                    _ => {}
                }
            }
            let Some((next_s, changes)) = times.next() else {
                break None;
            };
            at_s = *next_s;
            apply(view, changes);
        };
        view.roll_back(mark);
        found
    }

    /// The start of a workload at a time of which the view has the usage.
    fn start_at(
        &self,
        view: &mut View<'_>,
        context: &NominationContext<'_>,
        at_s: i64,
        duration_s: i64,
    ) -> Attempt {
        let assignment = context.assign_free_quota(view);
        if assignment.mode != Mode::Fit {
            return Attempt::NoQuota;
        }
        let node = view.tree.node(context.queue());
        let usage = assignment.usage.iter();
        let demands = usage.filter_map(|(of, amount)| Some((node.cell(*of)?, *amount)));
        let demands: Vec<_> = demands.collect();
        let mut cells = demands.iter();
        let is_guaranteed = cells.all(|(cell, amount)| is_local(view, *cell, *amount));
        let until_s = at_s.saturating_add(duration_s);
        if let Some(then_s) = self.first_conflict_s(view, &demands, at_s, until_s) {
            return Attempt::NoQuotaAt(then_s);
        }
        Attempt::Fits(Start {
            at_s,
            assignment,
            demands,
            is_guaranteed,
        })
    }

    /// The first time between two at which amounts do not fit; the view has the usage of the first of them.
    fn first_conflict_s(
        &self,
        view: &mut View<'_>,
        demands: &[(CellId, Amount)],
        from_s: i64,
        until_s: i64,
    ) -> Option<i64> {
        if until_s <= from_s {
            return None;
        }
        let mark = view.mark();
        let between = (Bound::Excluded(from_s), Bound::Excluded(until_s));
        let mut times = self.changes.range(between);
        let conflict = times.find(|(at_s, changes)| {
            apply(view, changes);
            let mut demands = demands.iter();
            !demands.all(|(cell, amount)| {
                let is_free = *amount <= view.available(*cell).or_zero();
                let is_restricted = self.guaranteed.contains(&(**at_s, *cell));
                is_free && (!is_restricted || is_local(view, *cell, *amount))
            })
        });
        let conflict_s = conflict.map(|(at_s, _)| *at_s);
        view.roll_back(mark);
        conflict_s
    }

    /// Restricts later starts of the queue to those that keep a start guaranteed.
    pub(super) fn guarantee(&mut self, start: &Start) {
        let cells = start.demands.iter().map(|(cell, _)| (start.at_s, *cell));
        self.guaranteed.extend(cells);
    }

    /// Adds a start to the plan; one now to the usage of now.
    pub(super) fn reserve(&mut self, view: &mut View<'_>, start: &Start, duration_s: i64) {
        let ends_by_s = start.at_s.saturating_add(duration_s);
        for (cell, amount) in start.demands.iter().copied() {
            if start.at_s <= self.now_s {
                view.add(cell, amount);
            } else {
                let changes = self.changes.entry(start.at_s).or_default();
                changes.push(Change::Add(cell, amount));
            }
            self.release_at(ends_by_s, cell, amount);
        }
    }
}

/// Whether amounts fit with the usage of a view.
fn fits(view: &View<'_>, demands: &[(CellId, Amount)]) -> bool {
    let mut demands = demands.iter();
    demands.all(|(cell, amount)| *amount <= view.available(*cell).or_zero())
}

/// Whether an additional amount is within quota that no other queue can borrow.
fn is_local(view: &View<'_>, cell: CellId, amount: Amount) -> bool {
    let quota = view.tree.cell(cell);
    quota.parent.is_none() || view.usage(cell).plus(amount) <= quota.local
}

fn apply(view: &mut View<'_>, changes: &[Change]) {
    for change in changes {
        match *change {
            Change::Add(cell, amount) => view.add(cell, amount),
            Change::Remove(cell, amount) => view.remove(cell, amount),
        }
    }
}

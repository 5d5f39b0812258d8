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
        self.start_at(view, context, self.now_s, duration_s)
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
        let mut found = self.start_at(view, context, self.now_s, duration_s);
        let mut changes = self.changes.iter();
        while !found.as_ref().is_some_and(&accepts) {
            let Some((at_s, changes)) = changes.next() else {
                found = None;
                break;
            };
            apply(view, changes);
            found = self.start_at(view, context, *at_s, duration_s);
        }
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
    ) -> Option<Start> {
        let assignment = context.assign_free_quota(view);
        if assignment.mode != Mode::Fit {
            return None;
        }
        let node = view.tree.node(context.queue());
        let usage = assignment.usage.iter();
        let demands = usage.filter_map(|(of, amount)| Some((node.cell(*of)?, *amount)));
        let demands: Vec<_> = demands.collect();
        let mut cells = demands.iter();
        let is_guaranteed = cells.all(|(cell, amount)| is_local(view, *cell, *amount));
        let until_s = at_s.saturating_add(duration_s);
        self.fits_until(view, &demands, at_s, until_s)
            .then(|| Start {
                at_s,
                assignment,
                demands,
                is_guaranteed,
            })
    }

    /// Whether amounts fit at all times between two, of which the view has the usage of the first.
    fn fits_until(
        &self,
        view: &mut View<'_>,
        demands: &[(CellId, Amount)],
        from_s: i64,
        until_s: i64,
    ) -> bool {
        if until_s <= from_s {
            return true;
        }
        let mark = view.mark();
        let between = (Bound::Excluded(from_s), Bound::Excluded(until_s));
        let fits = self.changes.range(between).all(|(at_s, changes)| {
            apply(view, changes);
            let mut demands = demands.iter();
            demands.all(|(cell, amount)| {
                let is_free = *amount <= view.available(*cell).or_zero();
                let is_restricted = self.guaranteed.contains(&(*at_s, *cell));
                is_free && (!is_restricted || is_local(view, *cell, *amount))
            })
        });
        view.roll_back(mark);
        fits
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

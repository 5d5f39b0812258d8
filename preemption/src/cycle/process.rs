//! Decides on the entries of a cycle in order; each sees the quota that earlier ones have reserved.

use super::entry::{Decision, Entry, SkipReason};
use super::entry_usage::{entry_cells, remove_usage};
use super::held_quota::{NominationOptions, holders, nominate_with_holds};
use super::nominate::{NominatedEntry, NominationContext};
use super::victim_limit::{LimitCheck, VictimLimit};
use crate::amount::Amount;
use crate::assignment::Mode;
use crate::ids::{CellId, FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::policy::{Compatibility, ReclaimWithinCohort};
use crate::quota::{UsageStore, View};
use crate::spec::BorrowingGate;
use crate::state::{State, reapply_hold, release_hold};
use crate::trace::Step;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A decided entry, and the point where its next search for flavors continues.
pub(super) struct ProcessedEntry {
    pub(super) entry: Entry,
    pub(super) tried_flavors: TriedFlavors,
    /// The version of the tree with which the nomination may be reused.
    pub(super) reusable_version: Option<u64>,
    /// The second at which a protected candidate reaches its minimum run time.
    pub(super) next_candidate_at_s: Option<i64>,
}

/// The last flavor that was tried, by pod set and resource.
pub(super) type TriedFlavors = Vec<(usize, ResourceId, usize)>;

/// The entries of a cycle, as far as they are decided.
pub(super) struct EntryProcessor<'a> {
    state: &'a State,
    /// With all reservations so far. Victims still count as used.
    pub(super) view: View<'a>,
    /// With admissions only, without the reservations of waiting preemptors.
    admitted_view: View<'a>,
    /// Victims of this cycle, by the root of their tree.
    victims_by_root: BTreeMap<NodeId, BTreeSet<WorkloadId>>,
    /// Roots of trees that are closed to borrowing.
    roots_closed_to_borrowing: BTreeSet<NodeId>,
    victim_limit: VictimLimit,
    /// Preemptors whose held quota no longer counts as used, in `view` and in `admitted_view`.
    released_holds: BTreeSet<WorkloadId>,
    released_holds_admitted: BTreeSet<WorkloadId>,
}

impl<'a> EntryProcessor<'a> {
    pub(super) fn new(state: &'a State, view: View<'a>, admitted_view: View<'a>) -> Self {
        Self {
            state,
            view,
            admitted_view,
            victims_by_root: BTreeMap::new(),
            roots_closed_to_borrowing: BTreeSet::new(),
            victim_limit: VictimLimit::default(),
            released_holds: BTreeSet::new(),
            released_holds_admitted: BTreeSet::new(),
        }
    }

    pub(super) fn process(&mut self, mut nominee: NominatedEntry) -> ProcessedEntry {
        let mut first = None;
        // A second nomination replaces it.
        let reusable_version = nominee.reusable_version;
        let mut decision = None;
        if self.has_overlapping_victims(&nominee) && !self.state.options.disable_recomputation {
            // Kueue gate `RecomputeAssignmentUponPreemptionTargetsOverlap`; the entry reports both.
            first = Some((Arc::clone(&nominee.assignment), nominee.victims.clone()));
            if self.renominate(&mut nominee) {
                decision = Some(Decision::DeferredFit);
            }
        }
        let released = self.release_holds(&nominee);
        let decision = decision.unwrap_or_else(|| self.decide(&mut nominee));
        // A skipped entry displaces no preemptor, so later entries see the holds as used again.
        if matches!(decision, Decision::Skip(_)) {
            self.reapply_holds(&released);
        }
        let reserved = self.reserve(&nominee, &decision);
        if let Decision::Preempt(victims) = &decision {
            let root = self.view.tree.node(nominee.queue).root;
            let cycle_victims = self.victims_by_root.entry(root).or_default();
            cycle_victims.extend(victims.iter().map(|it| it.workload));
            self.victim_limit.record(self.state, victims);
        }
        self.close_to_borrowing(&nominee);
        let (nominated, nominated_victims, recomputed) = match first {
            Some((assignment, victims)) => (assignment, victims, Some(nominee.assignment)),
            None => (nominee.assignment, nominee.victims, None),
        };
        let entry = Entry {
            workload: nominee.workload,
            queue: nominee.queue,
            nominated,
            nominated_victims,
            recomputed,
            decision,
            reserved,
            displaced: nominee.displaced,
            requeued: None,
            trace: nominee.trace,
        };
        ProcessedEntry {
            entry,
            tried_flavors: nominee.tried_flavors,
            reusable_version,
            next_candidate_at_s: nominee.next_candidate_at_s,
        }
    }

    /// Counts the quota held for an entry and for the preemptors that it displaces as free; returns the holders.
    fn release_holds(&mut self, nominee: &NominatedEntry) -> Vec<WorkloadId> {
        let mut released = Vec::new();
        if !self.state.holds.is_empty() {
            released.extend(holders(nominee).filter(|it| self.released_holds.insert(*it)));
        }
        for holder in &released {
            release_hold(self.state, &mut self.view, *holder);
        }
        released
    }

    fn reapply_holds(&mut self, released: &[WorkloadId]) {
        for holder in released {
            self.released_holds.remove(holder);
            reapply_hold(self.state, &mut self.view, *holder);
        }
    }

    /// Returns the holders with quota that still counts as used in `admitted_view`.
    fn remaining_holders(&self, nominee: &NominatedEntry) -> Vec<WorkloadId> {
        if self.state.holds.is_empty() {
            return Vec::new();
        }
        let holders = holders(nominee);
        holders
            .filter(|it| !self.released_holds_admitted.contains(it))
            .collect()
    }

    /// The victims of this cycle in the tree of a queue. Those of other trees do not affect it.
    fn cycle_victims(&self, queue: NodeId) -> &BTreeSet<WorkloadId> {
        static NO_VICTIMS: BTreeSet<WorkloadId> = BTreeSet::new();
        let root = self.view.tree.node(queue).root;
        self.victims_by_root.get(&root).unwrap_or(&NO_VICTIMS)
    }

    fn has_overlapping_victims(&self, nominee: &NominatedEntry) -> bool {
        let cycle_victims = self.cycle_victims(nominee.queue);
        let mut victims = nominee.victims.iter();
        !cycle_victims.is_empty() && victims.any(|it| cycle_victims.contains(&it.workload))
    }

    /// Nominates again for the same flavors, without the victims of this cycle. Returns whether it fits.
    fn renominate(&mut self, nominee: &mut NominatedEntry) -> bool {
        let Some(nominator) = NominationContext::for_workload(self.state, nominee.workload) else {
            return false;
        };
        let mark = self.view.mark();
        // The new search must neither count the usage of these victims nor select them again.
        let cycle_victims = self.cycle_victims(nominee.queue).clone();
        for id in &cycle_victims {
            remove_usage(self.state, &mut self.view, *id);
        }
        let trace = std::mem::take(&mut nominee.trace);
        let only = Some(&*nominee.assignment);
        let state = self.state;
        let options = NominationOptions {
            removed: &cycle_victims,
            allowed_flavors: only,
            released: &self.released_holds,
        };
        let again = nominate_with_holds(state, &mut self.view, &nominator, &options, trace);
        self.view.roll_back(mark);
        *nominee = again;
        nominee.assignment.mode == Mode::Fit
    }

    fn decide(&mut self, nominee: &mut NominatedEntry) -> Decision {
        match nominee.assignment.mode {
            Mode::NoFit => return Decision::NoFit,
            Mode::Preempt if nominee.victims.is_empty() => return Decision::NoCandidates,
            Mode::Preempt | Mode::Fit => {}
        }
        // Kueue's order: overlapping victims are reported before missing quota.
        if self.has_overlapping_victims(nominee) {
            return Decision::Skip(SkipReason::OverlappingVictims);
        }
        if !self.fits(nominee) {
            return Decision::Skip(SkipReason::NoLongerFits);
        }
        let root = self.view.tree.node(nominee.queue).root;
        // KEP-83: no borrowing after an entry that does not borrow. Kueue has dropped that rule.
        if nominee.assignment.borrowing_level > 0 && self.roots_closed_to_borrowing.contains(&root)
        {
            return Decision::Skip(SkipReason::BorrowingGate);
        }
        match self.victim_limit.check(self.state, &nominee.victims) {
            LimitCheck::Within => {}
            LimitCheck::Exhausted => return Decision::Skip(SkipReason::VictimLimit),
            // No skip: a skipped entry is retried in every cycle, and exceeds the limit in each.
            LimitCheck::ExceedsMax {
                victims,
                victims_max,
            } => {
                let over = Step::ExceedsVictimLimit {
                    victims,
                    victims_max,
                };
                nominee.trace.record(|| over);
                return Decision::NoCandidates;
            }
        }
        match nominee.assignment.mode {
            Mode::Fit if !self.fits_before_evictions(nominee) => Decision::DeferredFit,
            Mode::Fit => Decision::Admit,
            _ => Decision::Preempt(nominee.victims.clone()),
        }
    }

    /// Returns whether it fits without all victims so far and its own.
    fn fits(&mut self, nominee: &NominatedEntry) -> bool {
        let mark = self.view.mark();
        let root = self.view.tree.node(nominee.queue).root;
        // Victims of earlier entries count as removed, although they release their quota later.
        for id in self.victims_by_root.get(&root).into_iter().flatten() {
            remove_usage(self.state, &mut self.view, *id);
        }
        for victim in &nominee.victims {
            remove_usage(self.state, &mut self.view, victim.workload);
        }
        let fits = entry_cells(&self.view, nominee)
            .all(|(_, cell, amount)| amount <= self.view.available(cell).or_zero());
        self.view.roll_back(mark);
        fits
    }

    /// Returns whether it fits while the victims of this cycle still use their quota.
    fn fits_before_evictions(&mut self, nominee: &NominatedEntry) -> bool {
        // Kueue admits it above the quota, and its pods compete with those of the victims.
        if self.state.options.compatibility == Compatibility::Kueue
            || self.cycle_victims(nominee.queue).is_empty()
        {
            return true;
        }
        let mark = self.admitted_view.mark();
        for holder in self.remaining_holders(nominee) {
            release_hold(self.state, &mut self.admitted_view, holder);
        }
        let fits = entry_cells(&self.admitted_view, nominee)
            .all(|(_, cell, amount)| amount <= self.admitted_view.available(cell).or_zero());
        self.admitted_view.roll_back(mark);
        fits
    }

    /// Reserves quota for the rest of the cycle; returns the reservation.
    fn reserve(
        &mut self,
        nominee: &NominatedEntry,
        decision: &Decision,
    ) -> Vec<(FlavorResource, Amount)> {
        let settings = self
            .state
            .queues
            .get(nominee.queue.index())
            .map(|it| &it.settings);
        let is_held = match decision {
            Decision::Admit | Decision::Preempt(_) | Decision::DeferredFit => false,
            Decision::NoCandidates => {
                let reclaim = settings.map(|it| it.preemption.reclaim_within_cohort);
                // The queue can reclaim this quota at any time, so Kueue reserves nothing.
                if reclaim == Some(ReclaimWithinCohort::Any) {
                    return Vec::new();
                }
                true
            }
            Decision::Skip(_) | Decision::NoFit => return Vec::new(),
        };
        let mut reserved = Vec::new();
        let demands: Vec<_> = entry_cells(&self.view, nominee).collect();
        // `admitted_view` contains admissions only: a preemptor that waits uses no quota yet.
        if *decision == Decision::Admit {
            for holder in self.remaining_holders(nominee) {
                release_hold(self.state, &mut self.admitted_view, holder);
                self.released_holds_admitted.insert(holder);
            }
            for (_, cell, amount) in &demands {
                self.admitted_view.add(*cell, *amount);
            }
        }
        for (of, cell, amount) in demands {
            let amount = if is_held {
                self.amount_to_reserve(nominee, cell, amount)
            } else {
                amount
            };
            if amount != Amount::ZERO {
                self.view.add(cell, amount);
                reserved.push((of, amount));
            }
        }
        reserved
    }

    /// The reservation of a preemptor without victims: the quota that it could still reclaim.
    fn amount_to_reserve(&self, nominee: &NominatedEntry, cell: CellId, amount: Amount) -> Amount {
        let usage = self.view.usage(cell);
        let cell_quota = self.view.tree.cell(cell);
        let held = if nominee.assignment.borrowing_level == 0 {
            amount.min(cell_quota.nominal.minus(usage)).or_zero()
        } else {
            // The ceiling is the nominal quota and the borrowing limit, beyond the local part.
            amount.min(cell_quota.ceiling.plus(cell_quota.local).minus(usage))
        };
        // Kueue does not clamp the amount of a borrowing entry; a negative one frees quota.
        if self.state.options.compatibility == Compatibility::Kueue {
            held
        } else {
            held.or_zero()
        }
    }

    /// With `BorrowingGate::Cohort`, closes the tree to borrowing after an entry that does not borrow.
    fn close_to_borrowing(&mut self, nominee: &NominatedEntry) {
        let is_gated = self.state.options.borrowing_gate == BorrowingGate::Cohort;
        let assignment = &nominee.assignment;
        if is_gated && assignment.borrowing_level == 0 && assignment.mode != Mode::NoFit {
            let root = self.view.tree.node(nominee.queue).root;
            self.roots_closed_to_borrowing.insert(root);
        }
    }
}

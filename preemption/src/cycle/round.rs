//! The entries of a cycle, one after the other: each sees what those before it have taken.

use super::budget::{Budget, Judgement};
use super::damped::Terms;
use super::nominate::{Nominator, Nominee};
use super::{Decision, Entry, SkipReason, cells, damped, remove};
use crate::amount::Amount;
use crate::assignment::Mode;
use crate::names::{CellId, FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::policy::{Compatibility, ReclaimWithinCohort};
use crate::quota::{Usage, View};
use crate::spec::BorrowingGate;
use crate::state::State;
use crate::trace::Step;
use std::collections::{BTreeMap, BTreeSet};

/// An entry, and where its next search for flavors would go on.
pub(super) struct Decided {
    pub(super) entry: Entry,
    pub(super) tried: Tried,
    /// When somebody may be taken who may not now, in seconds.
    pub(super) soonest_s: Option<i64>,
}

/// The last flavor that was looked at, by pod set and resource.
pub(super) type Tried = Vec<(usize, ResourceId, usize)>;

/// The entries of a cycle, as far as they are decided.
pub(super) struct Round<'a> {
    state: &'a State,
    /// With all that was taken so far. Victims are still in it.
    pub(super) view: View<'a>,
    /// With what was admitted, and without what is kept for those who wait for their victims.
    now: View<'a>,
    /// Victims of this cycle, by the root of their tree.
    taken: BTreeMap<NodeId, BTreeSet<WorkloadId>>,
    /// Roots below which nobody borrows any more.
    closed: BTreeSet<NodeId>,
    budget: Budget,
    /// Preemptors whose held quota no longer counts as used, in `view` and in `now`.
    lifted: BTreeSet<WorkloadId>,
    lifted_now: BTreeSet<WorkloadId>,
}

impl<'a> Round<'a> {
    pub(super) fn new(state: &'a State, view: View<'a>, now: View<'a>) -> Self {
        Self {
            state,
            view,
            now,
            taken: BTreeMap::new(),
            closed: BTreeSet::new(),
            budget: Budget::default(),
            lifted: BTreeSet::new(),
            lifted_now: BTreeSet::new(),
        }
    }

    pub(super) fn process(&mut self, mut nominee: Nominee) -> Decided {
        let mut first = None;
        let mut decision = None;
        if self.overlaps(&nominee) && !self.state.options.disable_recomputation {
            first = Some((nominee.assignment.clone(), nominee.victims.clone()));
            if self.nominate_again(&mut nominee) {
                decision = Some(Decision::DeferredFit);
            }
        }
        let lifted = self.lift(&nominee);
        let decision = decision.unwrap_or_else(|| self.verdict(&mut nominee));
        if matches!(decision, Decision::Skip(_)) {
            self.put_back(&lifted);
        }
        let reserved = self.reserve(&nominee, &decision);
        if let Decision::Preempt(victims) = &decision {
            let root = self.view.tree.node(nominee.queue).root;
            let taken = self.taken.entry(root).or_default();
            taken.extend(victims.iter().map(|it| it.workload));
            self.budget.spend(self.state, victims);
        }
        self.close(&nominee);
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
        Decided {
            entry,
            tried: nominee.tried,
            soonest_s: nominee.soonest_s,
        }
    }

    /// Counts what is held for a nominee, and what it takes over, as free; says whose that was.
    fn lift(&mut self, nominee: &Nominee) -> Vec<WorkloadId> {
        let mut lifted = Vec::new();
        if !self.state.holds.is_empty() {
            lifted.extend(damped::holders(nominee).filter(|it| self.lifted.insert(*it)));
        }
        for holder in &lifted {
            self.state.lift_hold(&mut self.view, *holder);
        }
        lifted
    }

    fn put_back(&mut self, lifted: &[WorkloadId]) {
        for holder in lifted {
            self.lifted.remove(holder);
            self.state.put_hold_of(&mut self.view, *holder);
        }
    }

    /// Whose held quota still counts as used in `now`.
    fn holders_now(&self, nominee: &Nominee) -> Vec<WorkloadId> {
        if self.state.holds.is_empty() {
            return Vec::new();
        }
        let holders = damped::holders(nominee);
        holders.filter(|it| !self.lifted_now.contains(it)).collect()
    }

    /// Victims of this cycle in the tree of a queue. Those of other trees matter nothing to it.
    fn taken(&self, queue: NodeId) -> &BTreeSet<WorkloadId> {
        static NOBODY: BTreeSet<WorkloadId> = BTreeSet::new();
        let root = self.view.tree.node(queue).root;
        self.taken.get(&root).unwrap_or(&NOBODY)
    }

    fn overlaps(&self, nominee: &Nominee) -> bool {
        let taken = self.taken(nominee.queue);
        let mut victims = nominee.victims.iter();
        !taken.is_empty() && victims.any(|it| taken.contains(&it.workload))
    }

    /// Nominates as if the victims of this cycle were gone, for the same flavors. True if it fits then.
    fn nominate_again(&mut self, nominee: &mut Nominee) -> bool {
        let Some(nominator) = Nominator::of(self.state, nominee.workload) else {
            return false;
        };
        let mark = self.view.mark();
        let taken = self.taken(nominee.queue).clone();
        for id in &taken {
            remove(self.state, &mut self.view, *id);
        }
        let trace = std::mem::take(&mut nominee.trace);
        let only = Some(&nominee.assignment);
        let state = self.state;
        let terms = Terms {
            gone: &taken,
            only,
            lifted: &self.lifted,
        };
        let again = state.nominate_among_holds(&mut self.view, &nominator, &terms, trace);
        self.view.roll_back(mark);
        *nominee = again;
        nominee.assignment.mode == Mode::Fit
    }

    fn verdict(&mut self, nominee: &mut Nominee) -> Decision {
        match nominee.assignment.mode {
            Mode::NoFit => return Decision::NoFit,
            Mode::Preempt if nominee.victims.is_empty() => return Decision::NoCandidates,
            Mode::Preempt | Mode::Fit => {}
        }
        if self.overlaps(nominee) {
            return Decision::Skip(SkipReason::OverlappingVictims);
        }
        if !self.fits(nominee) {
            return Decision::Skip(SkipReason::NoLongerFits);
        }
        let root = self.view.tree.node(nominee.queue).root;
        if nominee.assignment.borrowing_level > 0 && self.closed.contains(&root) {
            return Decision::Skip(SkipReason::BorrowingGate);
        }
        match self.budget.judge(self.state, &nominee.victims) {
            Judgement::Within => {}
            Judgement::Spent => return Decision::Skip(SkipReason::Budget),
            Judgement::Never {
                victims,
                victims_max,
            } => {
                let over = Step::OverBudget {
                    victims,
                    victims_max,
                };
                nominee.trace.note(|| over);
                return Decision::NoCandidates;
            }
        }
        match nominee.assignment.mode {
            Mode::Fit if !self.fits_now(nominee) => Decision::DeferredFit,
            Mode::Fit => Decision::Admit,
            _ => Decision::Preempt(nominee.victims.clone()),
        }
    }

    /// Whether it fits when all victims so far and its own are gone.
    fn fits(&mut self, nominee: &Nominee) -> bool {
        let mark = self.view.mark();
        let root = self.view.tree.node(nominee.queue).root;
        for id in self.taken.get(&root).into_iter().flatten() {
            remove(self.state, &mut self.view, *id);
        }
        for victim in &nominee.victims {
            remove(self.state, &mut self.view, victim.workload);
        }
        let fits = cells(&self.view, nominee)
            .all(|(_, cell, amount)| amount <= self.view.available(cell).or_zero());
        self.view.roll_back(mark);
        fits
    }

    /// Whether it fits while the victims of this cycle are still there. Kueue admits it all the same,
    /// over the quota, and its pods meet those of the victims.
    fn fits_now(&mut self, nominee: &Nominee) -> bool {
        if self.state.options.compatibility == Compatibility::Kueue
            || self.taken(nominee.queue).is_empty()
        {
            return true;
        }
        let mark = self.now.mark();
        for holder in self.holders_now(nominee) {
            self.state.lift_hold(&mut self.now, holder);
        }
        let fits = cells(&self.now, nominee)
            .all(|(_, cell, amount)| amount <= self.now.available(cell).or_zero());
        self.now.roll_back(mark);
        fits
    }

    /// Takes quota for the rest of the cycle; says what was taken.
    fn reserve(&mut self, nominee: &Nominee, decision: &Decision) -> Vec<(FlavorResource, Amount)> {
        let settings = self.state.pending(nominee.queue).map(|it| &it.settings);
        let is_held = match decision {
            Decision::Admit | Decision::Preempt(_) | Decision::DeferredFit => false,
            Decision::NoCandidates => {
                let reclaim = settings.map(|it| it.preemption.reclaim_within_cohort);
                if reclaim == Some(ReclaimWithinCohort::Any) {
                    return Vec::new();
                }
                true
            }
            Decision::Skip(_) | Decision::NoFit => return Vec::new(),
        };
        let mut reserved = Vec::new();
        let demands: Vec<_> = cells(&self.view, nominee).collect();
        if *decision == Decision::Admit {
            for holder in self.holders_now(nominee) {
                self.state.lift_hold(&mut self.now, holder);
                self.lifted_now.insert(holder);
            }
            for (_, cell, amount) in &demands {
                self.now.add(*cell, *amount);
            }
        }
        for (of, cell, amount) in demands {
            let amount = if is_held {
                self.held(nominee, cell, amount)
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

    /// What a preemptor without victims keeps from others: what could still become its own.
    fn held(&self, nominee: &Nominee, cell: CellId, amount: Amount) -> Amount {
        let usage = self.view.usage(cell);
        let it = self.view.tree.cell(cell);
        let held = if nominee.assignment.borrowing_level == 0 {
            amount.min(it.nominal.minus(usage)).or_zero()
        } else {
            // The ceiling is the nominal quota and the borrowing limit, beyond the local part.
            amount.min(it.ceiling.plus(it.local).minus(usage))
        };
        if self.state.options.compatibility == Compatibility::Kueue {
            held
        } else {
            held.or_zero()
        }
    }

    /// After an entry that does not borrow nobody borrows there, if that is wished.
    fn close(&mut self, nominee: &Nominee) {
        let is_gated = self.state.options.borrowing_gate == BorrowingGate::Cohort;
        let assignment = &nominee.assignment;
        if is_gated && assignment.borrowing_level == 0 && assignment.mode != Mode::NoFit {
            let root = self.view.tree.node(nominee.queue).root;
            self.closed.insert(root);
        }
    }
}

//! The entries of a cycle, one after the other: each sees what those before it have taken.

use super::budget::{Budget, Judgement};
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
}

/// The last flavor that was looked at, by pod set and resource.
pub(super) type Tried = Vec<(usize, ResourceId, usize)>;

/// The entries of a cycle, as far as they are decided.
pub(super) struct Round<'a> {
    state: &'a State,
    /// With all that was taken so far. Victims are still in it.
    pub(super) view: View<'a>,
    /// Victims of this cycle, by the root of their tree.
    taken: BTreeMap<NodeId, BTreeSet<WorkloadId>>,
    /// Roots below which nobody borrows any more.
    closed: BTreeSet<NodeId>,
    budget: Budget,
}

impl<'a> Round<'a> {
    pub(super) fn new(state: &'a State, view: View<'a>) -> Self {
        Self {
            state,
            view,
            taken: BTreeMap::new(),
            closed: BTreeSet::new(),
            budget: Budget::default(),
        }
    }

    pub(super) fn process(&mut self, mut nominee: Nominee) -> Decided {
        let mut first = None;
        let mut decision = None;
        for holder in damped::holders(&nominee) {
            self.state.lift_hold(&mut self.view, holder);
        }
        if self.overlaps(&nominee) && !self.state.options.disable_recomputation {
            first = Some((nominee.assignment.clone(), nominee.victims.clone()));
            if self.nominate_again(&mut nominee) {
                decision = Some(Decision::DeferredFit);
            }
        }
        let decision = decision.unwrap_or_else(|| self.verdict(&mut nominee));
        if matches!(decision, Decision::Skip(_)) {
            self.state.put_holds_again(&mut self.view, &nominee);
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
        }
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
        let again = state.nominate_among_holds(&mut self.view, &nominator, &taken, only, trace);
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

//! Questions about one workload, without a cycle and without a change.

use crate::amount::Amount;
use crate::assignment::Assignment;
use crate::cycle::{NominationContext, NominationOptions, demands};
use crate::flavor_assigner::Oracle;
use crate::ids::{FlavorResource, WorkloadId};
use crate::quota::View;
use crate::state::State;
use crate::trace::{Possibility, Trace};
use crate::victim::Victim;
use crate::victims::Demand;
use std::collections::BTreeSet;

/// What a workload would get now, alone.
#[derive(Clone, Debug)]
pub struct Nomination {
    /// Its flavors.
    pub assignment: Assignment,
    /// Who would have to go.
    pub victims: Vec<Victim>,
    /// What was considered.
    pub trace: Trace,
}

impl State {
    /// What a pending workload would get if it were the only one to ask; `None` if it is not known.
    pub fn nominate(&mut self, id: WorkloadId, trace: Trace) -> Option<Nomination> {
        self.with_view(|state, view| {
            let nominator = NominationContext::for_workload(state, id)?;
            let nominee =
                state.nominate_with_holds(view, &nominator, &NominationOptions::DEFAULT, trace);
            Some(Nomination {
                assignment: nominee.assignment,
                victims: nominee.victims,
                trace: nominee.trace,
            })
        })
    }

    /// The flavors for all pods of a workload, whether there are victims or not.
    pub fn assign(&mut self, id: WorkloadId, trace: &mut Trace) -> Option<Assignment> {
        self.with_view(|state, view| {
            let nominator = NominationContext::for_workload(state, id)?;
            Some(nominator.assign(view, None, trace))
        })
    }

    /// The same with answers given to the question of what preemption could do: for a flavor and
    /// resource and a borrowing level, the possibility and the level then.
    pub fn assign_assuming(
        &mut self,
        id: WorkloadId,
        answer: impl FnMut(FlavorResource, u32) -> (Possibility, u32),
    ) -> Option<Assignment> {
        let mut oracle = FixedAnswers(answer);
        self.with_view(|state, view| {
            let nominator = NominationContext::for_workload(state, id)?;
            Some(nominator.assign(view, Some(&mut oracle), &mut Trace::off()))
        })
    }

    /// The victims for a workload that asks for `request`, of which `needs` does not fit.
    pub fn search(
        &mut self,
        id: WorkloadId,
        needs: &[FlavorResource],
        request: &[(FlavorResource, Amount)],
        trace: &mut Trace,
    ) -> Vec<Victim> {
        if let Some(queue) = self.queue_of(id) {
            for (of, _) in request {
                self.ensure_cell(queue, *of);
            }
        }
        let found = self.with_view(|state, view| {
            let nominator = NominationContext::for_workload(state, id)?;
            let queue = state.queue_of(id)?;
            let request = demands(view, request, queue);
            let mut needs = needs.to_vec();
            needs.sort_unstable();
            Some(nominator.search(view, &BTreeSet::new(), &needs, &request, trace))
        });
        found.unwrap_or_default()
    }

    fn with_view<T>(&mut self, ask: impl FnOnce(&Self, &mut View<'_>) -> T) -> T {
        self.apply_changes();
        let mut overlay = std::mem::take(&mut self.overlay);
        let mut view = View::new(&self.tree, &self.usage, &mut overlay);
        self.apply_holds(&mut view);
        let answer = ask(self, &mut view);
        self.overlay = overlay;
        answer
    }
}

/// Answers that were given.
struct FixedAnswers<F>(F);

impl<F: FnMut(FlavorResource, u32) -> (Possibility, u32)> Oracle for FixedAnswers<F> {
    fn possibility(
        &mut self,
        _: &mut View<'_>,
        _: &crate::flavor_assigner::AssignmentRequest<'_>,
        demand: Demand,
        level: u32,
        _: &mut Trace,
    ) -> (Possibility, u32) {
        (self.0)(demand.of, level)
    }
}

//! Queries about one workload outside a cycle. They change no decision.

use crate::amount::Amount;
use crate::assignment::Assignment;
use crate::assignment_request::{AssignmentRequest, Oracle};
use crate::cycle::{
    NextDecision, NominationContext, NominationOptions, demands, next_decision, nominate_with_holds,
};
use crate::ids::{FlavorResource, WorkloadId};
use crate::quota::View;
use crate::state::{State, apply_changes, apply_holds, ensure_cell};
use crate::trace::{Possibility, Trace};
use crate::victim::Victim;
use crate::victims::Demand;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The assignment and the victims that a workload would get now, if no other workload were pending.
#[derive(Clone, Debug)]
pub struct Nomination {
    /// The flavors of its pod sets.
    pub assignment: Assignment,
    /// The workloads that it would preempt.
    pub victims: Vec<Victim>,
    /// The trace of the search.
    pub trace: Trace,
}

/// Queries on a state that do not change its decisions. They may rebuild its quota tree.
#[derive(Debug)]
pub struct WhatIf<'a> {
    state: &'a mut State,
}

impl<'a> WhatIf<'a> {
    /// Creates queries on `state`.
    pub const fn new(state: &'a mut State) -> Self {
        Self { state }
    }

    /// Nominates a pending workload as if no other workload were pending; `None` if the id is unknown.
    pub fn nominate(&mut self, id: WorkloadId, trace: Trace) -> Option<Nomination> {
        self.with_view(|state, view| {
            let context = NominationContext::for_workload(state, id)?;
            let nominated =
                nominate_with_holds(state, view, &context, &NominationOptions::DEFAULT, trace);
            Some(Nomination {
                assignment: Arc::unwrap_or_clone(nominated.assignment),
                victims: nominated.victims,
                trace: nominated.trace,
            })
        })
    }

    /// What the next cycle does with a pending workload. Costs a cycle. Backoffs and minimum run times that end at the next
    /// cycle are not considered.
    pub fn next_decision(&mut self, id: WorkloadId, is_traced: bool) -> NextDecision {
        next_decision(self.state, id, is_traced)
    }

    /// Assigns flavors to all pods of a workload, without the search for its final victims.
    pub fn assign(&mut self, id: WorkloadId, trace: &mut Trace) -> Option<Assignment> {
        self.with_view(|state, view| {
            let context = NominationContext::for_workload(state, id)?;
            Some(context.assign(view, None, trace))
        })
    }

    /// Assigns flavors like [`Self::assign`], but takes the result of preemption from `possibility`: for a
    /// flavor and resource and a borrowing level, the possibility and the borrowing level afterwards.
    pub fn assign_assuming(
        &mut self,
        id: WorkloadId,
        possibility: impl FnMut(FlavorResource, u32) -> (Possibility, u32),
    ) -> Option<Assignment> {
        let mut oracle = FixedOracle(possibility);
        self.with_view(|state, view| {
            let context = NominationContext::for_workload(state, id)?;
            Some(context.assign(view, Some(&mut oracle), &mut Trace::off()))
        })
    }

    /// Searches the victims for a workload that requests `request`, of which `needs` does not fit.
    pub fn search(
        &mut self,
        id: WorkloadId,
        needs: &[FlavorResource],
        request: &[(FlavorResource, Amount)],
        trace: &mut Trace,
    ) -> Vec<Victim> {
        let Some(queue) = self.state.workload_view(id).queue() else {
            return Vec::new();
        };
        // `demands` leaves out missing cells, so the request would lose this amount.
        for (of, _) in request {
            ensure_cell(self.state, queue, *of);
        }
        let found = self.with_view(|state, view| {
            let context = NominationContext::for_workload(state, id)?;
            let request = demands(view, request, queue, None);
            let mut needs = needs.to_vec();
            needs.sort_unstable();
            Some(context.search(view, &BTreeSet::new(), &needs, &request, trace))
        });
        found.unwrap_or_default()
    }

    /// Runs a query on the usage with all held quota counted as used.
    fn with_view<T>(&mut self, query: impl FnOnce(&State, &mut View<'_>) -> T) -> T {
        apply_changes(self.state);
        // Moved out and back in, so that a query does not allocate an overlay.
        let mut overlay = std::mem::take(&mut self.state.overlay);
        let mut view = View::new(&self.state.tree, &self.state.usage, &mut overlay);
        apply_holds(self.state, &mut view);
        let result = query(self.state, &mut view);
        self.state.overlay = overlay;
        result
    }
}

/// An oracle with results given by the caller.
struct FixedOracle<F>(F);

impl<F: FnMut(FlavorResource, u32) -> (Possibility, u32)> Oracle for FixedOracle<F> {
    fn possibility(
        &mut self,
        _: &mut View<'_>,
        _: &AssignmentRequest<'_>,
        demand: Demand,
        level: u32,
        _: &mut Trace,
    ) -> (Possibility, u32) {
        (self.0)(demand.of, level)
    }
}

//! The input of a flavor assignment, and the search for victims that it uses.

use crate::assignment::{Assignment, PodSet};
use crate::elastic::ElasticGate;
use crate::ids::{FlavorResource, NodeId, ResourceId};
use crate::policy::Compatibility;
use crate::queue::QueueSettings;
use crate::quota::View;
use crate::trace::{Possibility, Trace};
use crate::victim::PreemptionReason;
use crate::victims::{self, Demand, Preemptor, SearchContext};

/// The input of a flavor assignment.
#[derive(Clone, Copy)]
pub(crate) struct AssignmentRequest<'a> {
    pub(crate) queue: NodeId,
    pub(crate) settings: &'a QueueSettings,
    pub(crate) priority: i32,
    pub(crate) order_time: i64,
    pub(crate) pod_sets: &'a [PodSet],
    /// The number of pods of each pod set.
    pub(crate) counts: &'a [i64],
    /// The last flavors tried, by pod set and resource: the search continues behind them.
    pub(crate) last_tried_flavors: &'a [(usize, ResourceId, usize)],
    /// If set, only the flavors of this assignment are tried.
    pub(crate) allowed_flavors: Option<&'a Assignment>,
    pub(crate) compatibility: Compatibility,
    /// Whether fair sharing is on.
    pub(crate) is_fair: bool,
    pub(crate) may_preempt: bool,
    /// The second from which the workload may preempt, if it has not waited long enough.
    pub(crate) delayed_until_s: Option<i64>,
    /// The gate of the queue, if it is elastic.
    pub(crate) elastic_gate: Option<ElasticGate<'a>>,
}

impl AssignmentRequest<'_> {
    pub(crate) fn preemptor<'b>(
        &self,
        needs: &'b [FlavorResource],
        request: &'b [Demand],
    ) -> Preemptor<'b> {
        Preemptor {
            queue: self.queue,
            priority: self.priority,
            order_time: self.order_time,
            policy: self.settings.preemption,
            may_preempt: self.may_preempt,
            delayed_until_s: self.delayed_until_s,
            needs,
            request,
        }
    }
}

/// Returns whether victims can be found for one flavor and resource, and the borrowing level without them.
/// Conformance tests replace it with recorded results.
pub(crate) trait Oracle {
    fn possibility(
        &mut self,
        view: &mut View<'_>,
        assignment_request: &AssignmentRequest<'_>,
        demand: Demand,
        level: u32,
        trace: &mut Trace,
    ) -> (Possibility, u32);
}

/// Searches for victims.
pub(crate) struct VictimSearchOracle<'a> {
    pub(crate) context: &'a SearchContext<'a>,
}

impl Oracle for VictimSearchOracle<'_> {
    fn possibility(
        &mut self,
        view: &mut View<'_>,
        assignment_request: &AssignmentRequest<'_>,
        demand: Demand,
        level: u32,
        trace: &mut Trace,
    ) -> (Possibility, u32) {
        // Each resource is searched alone here; the final search is for the whole request.
        let (needs, request) = ([demand.of], [demand]);
        let preemptor = assignment_request.preemptor(&needs, &request);
        let found = victims::search(view, self.context, &preemptor, trace);
        if found.is_empty() {
            return (Possibility::NoCandidates, level);
        }
        let mark = view.mark();
        for victim in &found {
            if let Some(running) = self.context.admitted.admitted(victim.workload) {
                for (cell, amount) in self.context.index.usage(running) {
                    view.remove(cell, amount);
                }
            }
        }
        let (level, _) = view.borrowing_level(demand.cell, demand.amount);
        view.roll_back(mark);
        let is_own = |reason| reason == PreemptionReason::InClusterQueue;
        if found.iter().any(|victim| is_own(victim.reason)) {
            (Possibility::Preempt, level)
        } else {
            (Possibility::Reclaim, level)
        }
    }
}

/// Finds no victims.
pub(crate) struct WithoutVictims;

impl Oracle for WithoutVictims {
    fn possibility(
        &mut self,
        _: &mut View<'_>,
        _: &AssignmentRequest<'_>,
        _: Demand,
        level: u32,
        _: &mut Trace,
    ) -> (Possibility, u32) {
        (Possibility::NoCandidates, level)
    }
}

//! The context of a decision, shared by the searches for gangs and for single pods.

use super::cluster::GangCluster;
use super::domain::Domain;
use super::hypothetical::SearchBaseline;
use super::preemptor::Preemptor;
use super::reason::InfeasibleReason;
use super::request::{GangPlan, PreemptionRequest, zip_placement};
use super::score::{CascadeEstimator, Score};
use super::search::{DomainResult, DomainSearch};
use super::spec::{PreemptionUnitKind, SchedulerCompatibility};
use super::trace::{GangStep, GangTrace};
use crate::ids::{HostId, PodId};
use crate::placement::Strategy;

/// A request with the state and the baseline from which it is decided.
#[derive(Clone, Copy)]
pub(super) struct DecisionContext<'a> {
    pub(super) state: &'a GangCluster,
    pub(super) request: &'a PreemptionRequest<'a>,
    pub(super) preemptor: Preemptor<'a>,
    pub(super) baseline: &'a SearchBaseline,
}

impl<'a> DecisionContext<'a> {
    pub(super) fn is_lockkeeper(&self) -> bool {
        self.state.options.compatibility == SchedulerCompatibility::Lockkeeper
    }

    /// The nodes of the request as one domain.
    pub(super) fn domain(&self) -> Domain {
        self.request.hosts.map_or_else(
            || Domain::whole_cluster(self.state),
            |it| Domain::Subset(it.to_vec()),
        )
    }

    pub(super) const fn search<'b>(
        &self,
        domain: &'b Domain,
        strategy: Strategy,
    ) -> DomainSearch<'b>
    where
        'a: 'b,
    {
        DomainSearch {
            state: self.state,
            baseline: self.baseline,
            preemptor: self.preemptor,
            domain,
            strategy,
        }
    }

    /// The placement of the preemptor without preemption, if enough pods fit.
    pub(super) fn placement_without_victims(&self) -> Option<Vec<(PodId, Option<HostId>)>> {
        let domain = self.domain();
        self.strategies().find_map(|strategy| {
            let search = self.search(&domain, strategy);
            let placement = search.place(None, &[]);
            let is_enough = search.is_enough(&placement);
            is_enough.then(|| zip_placement(self.preemptor.pods, &placement))
        })
    }

    /// The plan with the lowest cost for a gang, whatever its preemption policy.
    pub(super) fn plan_for_gang(
        &self,
        trace: &mut GangTrace,
    ) -> Result<GangPlan, InfeasibleReason> {
        let domain = self.domain();
        let mut cascades = CascadeEstimator::new(self.state, self.baseline);
        let mut plans = Vec::new();
        for (at, strategy) in self.strategies().enumerate() {
            trace.record(|| match at {
                0 => GangStep::Domain { host: None },
                _ => GangStep::RetriedDomain,
            });
            let result = self.search(&domain, strategy).run(trace);
            let plan = result.map(|result| {
                let plan = self.plan(None, result, &mut cascades);
                trace.record(|| GangStep::Scored { score: plan.score });
                plan
            });
            if let Err(reason) = &plan {
                trace.record(|| GangStep::Infeasible {
                    reason: reason.clone(),
                });
            }
            plans.push(plan);
        }
        // `min_by_key` returns the first of equal plans.
        let cost = |plan: &Result<GangPlan, InfeasibleReason>| {
            // `false` sorts first: any plan is better than an infeasible search.
            plan.as_ref()
                .map_or((true, None), |it| (false, Some(it.score)))
        };
        let best = plans.into_iter().min_by_key(cost);
        best.unwrap_or(Err(InfeasibleReason::NoLowerPriority))
    }

    /// Converts a search result into a plan.
    pub(super) fn plan(
        &self,
        host: Option<HostId>,
        result: DomainResult,
        cascades: &mut CascadeEstimator<'_>,
    ) -> GangPlan {
        let cascades = cascades.count(&result.victims);
        let units = result.victims.iter();
        let units = units.filter_map(|it| self.state.units.get(*it));
        // As in kube-scheduler, a pod of a group that is disrupted pod by pod counts too.
        let in_groups = units
            .filter(|it| it.kind() > PreemptionUnitKind::Pod)
            .count();
        GangPlan {
            host,
            placement: zip_placement(self.preemptor.pods, &result.placement),
            score: Score::for_victims(self.state, &result.victims, result.violations, cascades),
            victims: result.victims,
            violations: result.violations,
            group_disruptions: u32::try_from(in_groups).unwrap_or(u32::MAX),
            max_priority: result.max_priority,
        }
    }

    /// The placement strategies to try, in order.
    fn strategies(&self) -> impl Iterator<Item = Strategy> + use<> {
        let first = self.state.options.strategy;
        let other = match first {
            Strategy::FirstFit => Strategy::BestFit,
            Strategy::BestFit => Strategy::FirstFit,
        };
        let other = self.state.options.tries_both_strategies.then_some(other);
        std::iter::once(first).chain(other)
    }
}

//! Gangs pod by pod: delayed preemption where the workload is not seen as a whole.

use super::cluster::GangCluster;
use super::decide::{GangOutcome, GangPlan, IneligibleReason, InfeasibleReason, PreemptionRequest};
use super::hypothetical::SearchBaseline;
use super::score::{CascadeEstimator, Score};
use super::search::DomainSearch;
use super::single_pod;
use super::spec::PreemptionUnitKind;
use super::trace::{GangStep, GangTrace};
use crate::ids::{HostId, PodId, UnitId};
use std::collections::BTreeSet;

impl GangCluster {
    /// Decides on a gang pod by pod, each on its own node: first where it fits when the victims of those before it are
    /// gone and they have their places, else where its own victims cost the least. Only if enough pods have a place is
    /// anybody preempted; otherwise all victims are dropped.
    ///
    /// Source: KEP-5710, Delayed preemption, the legacy case: the victims that were already chosen are handed on by
    /// node.
    ///
    /// Costs the nodes, and the units on them that may go, for every pod.
    #[must_use]
    pub fn decide_pod_by_pod(
        &self,
        ask: &PreemptionRequest<'_>,
        trace: &mut GangTrace,
    ) -> GangOutcome {
        let mut ground = SearchBaseline::default();
        super::nomination::reserve_nominated(self, ask, &mut ground);
        let shapes = self.shapes(ask.pods);
        let preemptor = self.preemptor(ask, &shapes);
        let is_never = self.preemption_policy(ask) == crate::placement::PodPreemption::Never;
        let mut chosen = PodByPodProgress::default();
        for (pod, shape) in ask.pods.iter().zip(&shapes) {
            trace.record(|| GangStep::Pod { pod: *pod });
            let own = PreemptionRequest {
                pods: std::slice::from_ref(pod),
                group: None,
                fixed_placement: None,
                ..*ask
            };
            let mut one = preemptor;
            one.pods = own.pods;
            one.shapes = std::slice::from_ref(shape);
            one.count_min = 1;
            one.fixed_placement = None;
            let search = DomainSearch {
                state: self,
                baseline: &ground,
                preemptor: one,
                domain: &self.domain(ask),
                strategy: self.options.strategy,
            };
            let mut host = search.place(None, &[]).first().copied().flatten();
            if host.is_none() && !is_never {
                trace.record(|| GangStep::DoesNotFit);
                match single_pod::best_node(self, &own, &ground, one, trace) {
                    GangOutcome::Preempt(plan) => {
                        host = plan.host;
                        chosen.add(plan);
                    }
                    GangOutcome::Infeasible { domains } => chosen.infeasible = domains,
                    _ => {}
                }
            }
            for victim in &chosen.victims {
                ground.add_victim(self, *victim);
            }
            if let Some(host) = host {
                ground.reserve(host, *shape);
            }
            chosen.placement.push((*pod, host));
        }
        self.all_or_nothing(ask, preemptor.count_min, chosen, is_never)
    }

    /// All or nothing.
    fn all_or_nothing(
        &self,
        ask: &PreemptionRequest<'_>,
        count_min: usize,
        chosen: PodByPodProgress,
        is_never: bool,
    ) -> GangOutcome {
        let placement = chosen.placement;
        let placed = placement.iter().filter(|(_, host)| host.is_some()).count();
        if placed < count_min {
            if is_never {
                return GangOutcome::Ineligible(IneligibleReason::PolicyNever);
            }
            let first = placement.iter().find(|(_, host)| host.is_none());
            let why = InfeasibleReason::NoPlacement {
                pod: first.map(|(pod, _)| *pod),
                placed,
                count_min,
            };
            let mut domains = vec![(None, why)];
            domains.extend(chosen.infeasible);
            return GangOutcome::Infeasible { domains };
        }
        if chosen.victims.is_empty() {
            return GangOutcome::Fits { placement };
        }
        let ranked: BTreeSet<_> = chosen
            .victims
            .iter()
            .filter_map(|it| Some(self.unit(*it)?.importance(*it)))
            .collect();
        let victims: Vec<UnitId> = ranked.into_iter().map(|it| it.unit).collect();
        let units = victims.iter().filter_map(|it| self.unit(*it));
        let of_groups = units
            .filter(|it| it.kind() > PreemptionUnitKind::Pod)
            .count();
        let mut before = SearchBaseline::default();
        super::nomination::reserve_nominated(self, ask, &mut before);
        let cascades = CascadeEstimator::new(self, &before).count(&victims);
        GangOutcome::Preempt(GangPlan {
            host: None,
            placement,
            score: Score::for_victims(self, &victims, chosen.violations, cascades),
            violations: chosen.violations,
            group_disruptions: u32::try_from(of_groups).unwrap_or(u32::MAX),
            max_priority: chosen.max_priority.unwrap_or(i32::MIN),
            victims,
        })
    }
}

/// What the pods before have come to.
#[derive(Default)]
struct PodByPodProgress {
    placement: Vec<(PodId, Option<HostId>)>,
    victims: BTreeSet<UnitId>,
    violations: u32,
    max_priority: Option<i32>,
    /// Why the last pod without a place has none.
    infeasible: Vec<(Option<HostId>, InfeasibleReason)>,
}

impl PodByPodProgress {
    fn add(&mut self, plan: GangPlan) {
        self.victims.extend(plan.victims);
        self.violations = self.violations.saturating_add(plan.violations);
        self.max_priority = self.max_priority.max(Some(plan.max_priority));
    }
}

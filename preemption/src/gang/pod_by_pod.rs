//! Gangs pod by pod: delayed preemption for a scheduler that does not schedule workloads as a whole.

use super::context::DecisionContext;
use super::hypothetical_pods;
use super::preemptor;
use super::reason::{IneligibleReason, InfeasibleReason};
use super::request::{GangOutcome, GangPlan, PreemptionRequest};
use super::score::{CascadeEstimator, Score};
use super::single_pod;
use super::spec::PreemptionUnitKind;
use super::trace::{GangStep, GangTrace};
use crate::ids::{HostId, PodId, UnitId};
use crate::placement::PodPreemption;
use std::collections::BTreeSet;

/// Decides on each pod in order, then on the whole gang.
pub(super) fn decide(context: DecisionContext<'_>, trace: &mut GangTrace) -> GangOutcome {
    let (state, request) = (context.state, context.request);
    let mut baseline = context.baseline.clone();
    let domain = context.domain();
    let is_never = preemptor::policy(state, request) == PodPreemption::Never;
    let mut progress = PodByPodProgress::default();
    for (pod, shape) in request.pods.iter().zip(context.preemptor.shapes) {
        trace.record(|| GangStep::Pod { pod: *pod });
        let pod_request = PreemptionRequest {
            pods: std::slice::from_ref(pod),
            // Without the group, each node is a domain of its own.
            group: None,
            fixed_placement: None,
            ..*request
        };
        // The pod keeps the priority of the gang.
        let mut preemptor = context.preemptor;
        preemptor.pods = pod_request.pods;
        preemptor.shapes = std::slice::from_ref(shape);
        preemptor.count_min = 1;
        preemptor.fixed_placement = None;
        let pod_context = DecisionContext {
            state,
            request: &pod_request,
            preemptor,
            baseline: &baseline,
        };
        let search = pod_context.search(&domain, state.options.strategy);
        let mut host = search.place(None, &[]).first().copied().flatten();
        if host.is_none() && !is_never {
            trace.record(|| GangStep::DoesNotFit);
            match single_pod::best_node(&pod_context, trace) {
                GangOutcome::Preempt(plan) => {
                    host = plan.host;
                    progress.add(plan);
                }
                GangOutcome::Infeasible { domains } => progress.infeasible = domains,
                _ => {}
            }
        }
        // The next pod may use the room of these victims, and does not select them again.
        for victim in &progress.victims {
            baseline.add_victim(state, *victim);
        }
        if let Some(host) = host {
            baseline.reserve(host, *pod);
        }
        progress.placement.push((*pod, host));
    }
    remove_restricted(&context, &mut progress);
    all_or_nothing(&context, progress, is_never)
}

/// Removes the nodes of pods that other pods reject after all: the victims of a later pod may have given an earlier one the
/// affinity that it needs.
fn remove_restricted(context: &DecisionContext<'_>, progress: &mut PodByPodProgress) {
    let Some(table) = context.preemptor.inter_pod else {
        return;
    };
    let mut baseline = context.baseline.clone();
    for victim in &progress.victims {
        baseline.add_victim(context.state, *victim);
    }
    let domain = context.domain();
    let mut counts = hypothetical_pods::counts(context.state, table, &baseline, &domain, None, &[]);
    for (pod, host) in &mut progress.placement {
        *host = host.filter(|it| counts.rejection_of(*pod, *it).is_none());
        if let Some(host) = *host {
            counts.add(*pod, host);
        }
    }
}

/// Turns the decisions on single pods into one decision on the gang.
fn all_or_nothing(
    context: &DecisionContext<'_>,
    progress: PodByPodProgress,
    is_never: bool,
) -> GangOutcome {
    let state = context.state;
    let count_min = context.preemptor.count_min;
    let placement = progress.placement;
    let placed = placement.iter().filter(|(_, host)| host.is_some()).count();
    if placed < count_min {
        if is_never {
            return GangOutcome::Ineligible(IneligibleReason::PolicyNever);
        }
        let unplaced = placement.iter().find(|(_, host)| host.is_none());
        let reason = InfeasibleReason::NoPlacement {
            pod: unplaced.map(|(pod, _)| *pod),
            placed,
            count_min,
        };
        let mut domains = vec![(None, reason)];
        domains.extend(progress.infeasible);
        return GangOutcome::Infeasible { domains };
    }
    if progress.victims.is_empty() {
        return GangOutcome::Fits { placement };
    }
    // `progress.victims` is sorted by id, a plan by importance.
    let by_importance: BTreeSet<_> = progress
        .victims
        .iter()
        .filter_map(|it| Some(state.units.get(*it)?.importance(*it)))
        .collect();
    let victims: Vec<UnitId> = by_importance.into_iter().map(|it| it.unit).collect();
    let units = victims.iter().filter_map(|it| state.units.get(*it));
    let in_groups = units
        .filter(|it| it.kind() > PreemptionUnitKind::Pod)
        .count();
    // The context's own baseline is that before the first pod.
    let cascades = CascadeEstimator::new(state, context.baseline).count(&victims);
    GangOutcome::Preempt(GangPlan {
        host: None,
        placement,
        score: Score::for_victims(state, &victims, progress.violations, cascades),
        violations: progress.violations,
        group_disruptions: u32::try_from(in_groups).unwrap_or(u32::MAX),
        max_priority: progress.max_priority.unwrap_or(i32::MIN),
        victims,
    })
}

/// The combined decisions on the pods so far.
#[derive(Default)]
struct PodByPodProgress {
    placement: Vec<(PodId, Option<HostId>)>,
    victims: BTreeSet<UnitId>,
    violations: u32,
    max_priority: Option<i32>,
    /// The infeasible nodes of the last pod that could not be placed.
    infeasible: Vec<(Option<HostId>, InfeasibleReason)>,
}

impl PodByPodProgress {
    fn add(&mut self, plan: GangPlan) {
        self.victims.extend(plan.victims);
        self.violations = self.violations.saturating_add(plan.violations);
        self.max_priority = self.max_priority.max(Some(plan.max_priority));
    }
}

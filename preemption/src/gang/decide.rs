//! Decisions: whether a preemptor fits, waits, or which units it preempts.

use super::cluster::GangCluster;
use super::context::DecisionContext;
use super::hypothetical::SearchBaseline;
use super::hypothetical_pods;
use super::nomination::{self, NominationStatus};
use super::pod_by_pod;
use super::preemptor::{self, Preemptor};
use super::reason::{DroppedNomination, IneligibleReason};
use super::request::{GangDecision, GangOutcome, PreemptionRequest};
use super::single_pod::{self, DryRun};
use super::trace::{GangStep, GangTrace};
use crate::ids::PodId;
use crate::placement::{Pod, PodPreemption};

impl GangCluster {
    /// Decides on a preemptor: a gang or a single pod. Changes nothing, and returns the same decision for the same
    /// state.
    ///
    /// 1. If the preemptor fits, it does not preempt.
    /// 2. If it is nominated to nodes and its victims there are still terminating, it preempts no further unit while
    ///    these nodes remain feasible.
    /// 3. If its policy permits preemption, every domain is searched, and the plan with the lowest cost is chosen.
    ///
    /// With [`SchedulerCompatibility::KubeScheduler`](super::SchedulerCompatibility::KubeScheduler) step 1 is skipped
    /// for a gang, and for a pod with explicit nodes; the policy is checked before step 2; and any pod that is
    /// terminating by preemption on a nominated node makes the preemptor wait.
    ///
    /// Cost for a gang: the nodes times the logarithm of the priorities, the protected units of lower priority, and
    /// the units on the nodes of its placement. Cost for a pod: the nodes, and the candidates on them.
    ///
    /// Source: KEP-5710, Preemption algorithm and Delayed preemption; kube-scheduler v1.37,
    /// `PodGroupEvaluator.Preempt` and `Evaluator.Preempt`.
    #[must_use]
    pub fn decide(&self, request: &PreemptionRequest<'_>, trace: &mut GangTrace) -> GangDecision {
        let mut dropped = None;
        let outcome = with_context(self, request, |context| {
            decide_outcome(&context, &mut dropped, trace)
        });
        let group = request.group;
        let not_matching = group.map(|it| self.workloads().pods_not_matching_priority(it));
        GangDecision {
            outcome,
            dropped,
            pods_not_matching_priority: not_matching.unwrap_or_default(),
        }
    }

    /// Decides on a gang pod by pod, each with its own node: the first on which the pod fits beside the pods placed
    /// before it and without the victims chosen before it, else the one with the lowest cost. If too few pods can be
    /// placed, all victims are dropped.
    ///
    /// Cost: the nodes and the candidates on them, for each pod.
    ///
    /// Source: KEP-5710, Delayed preemption, the legacy case: victims chosen for one pod are passed on to the next.
    #[must_use]
    pub fn decide_pod_by_pod(
        &self,
        request: &PreemptionRequest<'_>,
        trace: &mut GangTrace,
    ) -> GangOutcome {
        with_context(self, request, |context| pod_by_pod::decide(context, trace))
    }

    /// Searches for the victims in each domain, whether or not the preemptor fits already and may preempt.
    ///
    /// Source: kube-scheduler v1.37, `DryRunPreemption`.
    #[must_use]
    pub fn dry_run(&self, request: &PreemptionRequest<'_>, trace: &mut GangTrace) -> DryRun {
        with_context(self, request, |context| {
            single_pod::dry_run(&context, trace)
        })
    }
}

/// Whether kube-scheduler permits a pod to preempt: by its policy, and only if no victim of its last preemption is
/// still terminating. `is_nomination_rejected` states that a filter rejects the pod's nominated node.
///
/// # Errors
///
/// The reason why the pod may not preempt.
///
/// Source: kube-scheduler v1.37, `PodEligibleToPreemptOthers`.
pub fn check_eligibility(
    state: &GangCluster,
    pod: PodId,
    is_nomination_rejected: bool,
) -> Result<(), IneligibleReason> {
    let request = PreemptionRequest {
        pods: &[pod],
        ..PreemptionRequest::default()
    };
    if preemptor::policy(state, &request) == PodPreemption::Never {
        return Err(IneligibleReason::PolicyNever);
    }
    let shapes = preemptor::shapes(state, &[pod]);
    let preemptor = Preemptor::new(state, &request, &shapes);
    if !is_nomination_rejected && nomination::has_terminating_victims(state, preemptor) {
        return Err(IneligibleReason::VictimsTerminating);
    }
    Ok(())
}

/// Runs a decision with the room of nominated pods reserved.
fn with_context<T>(
    state: &GangCluster,
    request: &PreemptionRequest<'_>,
    decide: impl FnOnce(DecisionContext<'_>) -> T,
) -> T {
    let mut baseline = SearchBaseline::default();
    nomination::reserve_nominated(state, request, &mut baseline);
    let shapes = preemptor::shapes(state, request.pods);
    let inter_pod = hypothetical_pods::table(state, request.pods, &baseline);
    decide(DecisionContext {
        state,
        request,
        preemptor: Preemptor {
            inter_pod: inter_pod.as_ref(),
            ..Preemptor::new(state, request, &shapes)
        },
        baseline: &baseline,
    })
}

fn decide_outcome(
    context: &DecisionContext<'_>,
    dropped: &mut Option<DroppedNomination>,
    trace: &mut GangTrace,
) -> GangOutcome {
    let (state, request) = (context.state, context.request);
    let is_lockkeeper = context.is_lockkeeper();
    // kube-scheduler preempts for a group only after the whole group was unschedulable, and
    // filters the explicit nodes of a pod before: neither is tried again.
    if (is_lockkeeper || (request.group.is_none() && request.hosts.is_none()))
        && let Some(placement) = context.placement_without_victims()
    {
        return GangOutcome::Fits { placement };
    }
    if is_lockkeeper {
        trace.record(|| GangStep::DoesNotFit);
        match nomination::nomination_status(state, context.preemptor, context.baseline) {
            NominationStatus::NotNominated => {}
            NominationStatus::Fits(placement) => return GangOutcome::Fits { placement },
            NominationStatus::AwaitingVictims(placement) => {
                trace.record(|| GangStep::NominationStands);
                return GangOutcome::AwaitingVictims { placement };
            }
            NominationStatus::Dropped(nomination) => {
                let DroppedNomination { pod, host, reason } = nomination.clone();
                trace.record(|| GangStep::NominationDropped { pod, host, reason });
                *dropped = Some(nomination);
            }
        }
    }
    if preemptor::policy(state, request) == PodPreemption::Never {
        return GangOutcome::Ineligible(IneligibleReason::PolicyNever);
    }
    // For a group, `isOngoingPreemption` keeps the nominations; a single pod is ineligible.
    if !is_lockkeeper
        && !is_nomination_rejected(state, request)
        && nomination::has_terminating_victims(state, context.preemptor)
    {
        trace.record(|| GangStep::NominationStands);
        return match request.group {
            None => GangOutcome::Ineligible(IneligibleReason::VictimsTerminating),
            Some(_) => GangOutcome::AwaitingVictims {
                placement: nomination::current_placement(state, context.preemptor.pods),
            },
        };
    }
    match request.group {
        None => single_pod::best_node(context, trace),
        Some(_) => decide_gang(context, trace),
    }
}

fn decide_gang(context: &DecisionContext<'_>, trace: &mut GangTrace) -> GangOutcome {
    match context.plan_for_gang(trace) {
        Err(reason) => GangOutcome::Infeasible {
            domains: vec![(None, reason)],
        },
        // Placement is greedy: with other units removed it may succeed where the first attempt failed.
        Ok(plan) if plan.victims.is_empty() && context.is_lockkeeper() => GangOutcome::Fits {
            placement: plan.placement,
        },
        Ok(plan) => {
            trace.record(|| GangStep::Chosen { host: None });
            GangOutcome::Preempt(plan)
        }
    }
}

/// Whether a filter rejects the node that a single pod is nominated to.
fn is_nomination_rejected(state: &GangCluster, request: &PreemptionRequest<'_>) -> bool {
    let pod = request.pods.first().filter(|_| request.group.is_none());
    let shape = pod.and_then(|it| state.cluster.pod(*it)).map(Pod::shape);
    let host = pod.and_then(|it| state.workloads().nominated_host(*it));
    let host = host.and_then(|it| state.cluster.host(it));
    let Some((shape, host)) = shape.zip(host) else {
        return false;
    };
    let shape = state.cluster.shape_of(shape);
    // Such a nomination (`UnschedulableAndUnresolvable`) does not prevent a new preemption.
    shape.rejection_by(host, state.cluster.symbols()).is_some()
}

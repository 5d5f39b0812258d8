//! Decisions: whether a preemptor fits, waits, or whom it preempts.

use super::cluster::GangCluster;
use super::domain::Domain;
use super::hypothetical::SearchBaseline;
use super::nomination::{self, NominationStatus};
use super::score::{CascadeEstimator, Score};
use super::search::{DomainResult, DomainSearch, Preemptor};
use super::single_pod;
use super::spec::{PreemptionUnitKind, SchedulerCompatibility};
use super::trace::{GangStep, GangTrace};
use crate::ids::{GroupId, HostId, PodId, ResourceId, ShapeId, UnitId};
use crate::placement::{FilterRejection, Pod, PodPreemption, Strategy};
use std::collections::BTreeSet;

/// Who is decided on.
#[derive(Clone, Copy, Debug, Default)]
pub struct PreemptionRequest<'a> {
    /// The pods that wait, in the order in which they are placed. See [`World::pending`].
    pub pods: &'a [PodId],
    /// Their gang. Without one there is one pod, and it is put on one node.
    pub group: Option<GroupId>,
    /// The nodes that count; `None` is all. For a pod they are those on which preemption may help.
    pub hosts: Option<&'a [HostId]>,
    /// Where each pod of a gang goes once there is room, decided elsewhere.
    pub fixed_placement: Option<&'a [Option<HostId>]>,
    /// How many of the nodes are looked at, for a pod; `None` is all of them.
    pub sample: Option<NodeSample>,
}

/// Which nodes are looked at for a pod: from one on, round and round, until there are enough.
///
/// Source: kube-scheduler v1.37, `DryRunPreemption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSample {
    /// The position of the first.
    pub offset: usize,
    /// How many are enough, one of which breaks no budget.
    pub count: usize,
}

/// What is decided, and what was seen on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangDecision {
    /// What is to be done.
    pub outcome: GangOutcome,
    /// Why the nodes that it was nominated to before do not count any more, if they do not.
    pub dropped: Option<DroppedNomination>,
    /// Pods of the gang whose own priority is not that of the workload. See [`World::pods_not_matching`].
    pub pods_not_matching_priority: Vec<PodId>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GangOutcome {
    /// It fits; nobody has to go.
    Fits {
        /// Where each pod goes.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// These have to go, and it is nominated to its nodes.
    Preempt(GangPlan),
    /// Whom it preempted before is still going. It keeps the nodes that it was nominated to, and nobody else has to go.
    AwaitingVictims {
        /// Where each pod goes.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// It may not preempt.
    Ineligible(IneligibleReason),
    /// No domain will do.
    Infeasible {
        /// Why not, for each domain: the node, or `None` for the cluster.
        domains: Vec<(Option<HostId>, InfeasibleReason)>,
    },
}

/// Who has to go, all or none, and where the preemptor goes then. Nothing is done yet: the whole gang has its place in
/// it, so that it can be carried out in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangPlan {
    /// The node; `None` is the cluster.
    pub host: Option<HostId>,
    /// Where each pod is nominated to; `None` for pods beyond the least number that found no place.
    pub placement: Vec<(PodId, Option<HostId>)>,
    /// Who goes, the most important first.
    pub victims: Vec<UnitId>,
    /// How many pods of them a budget protects.
    pub violations: u32,
    /// How many of the victims are of a group.
    pub group_disruptions: u32,
    /// Nobody above this priority was asked to go.
    pub max_priority: i32,
    /// What it costs.
    pub score: Score,
}

/// Why a preemptor may not preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IneligibleReason {
    /// Its preemption policy is `Never`.
    PolicyNever,
    /// Whom it preempted before is still going, on the node it was nominated to.
    VictimsTerminating,
}

/// Why a domain, or a nomination, will not do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InfeasibleReason {
    /// The node is nothing for the pod, whoever leaves.
    Rejected(FilterRejection),
    /// There is nobody of a lower priority.
    NoLowerPriority,
    /// There is too little of these, even if all who may go are gone.
    InsufficientResources {
        /// By number.
        resources: Vec<ResourceId>,
    },
    /// Too few pods find a place, even if all who may go are gone.
    NoPlacement {
        /// The first that finds none.
        pod: Option<PodId>,
        /// How many do.
        placed: usize,
        /// How many have to.
        count_min: usize,
    },
    /// Nobody is in the way, so preemption does not help.
    PreemptionNotHelpful,
}

/// A nomination that does not count any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedNomination {
    /// The pod that cannot go where it was nominated to.
    pub pod: PodId,
    /// The node.
    pub host: HostId,
    /// Why not.
    pub reason: InfeasibleReason,
}

impl GangCluster {
    /// The pods of a group, and of those below it, that wait; by name.
    #[must_use]
    pub fn pending_pods(&self, group: GroupId) -> Vec<PodId> {
        let pods = self.groups.pods_below(group).into_iter();
        let waits = |it: &Pod| it.host().is_none() && !it.is_terminating();
        let mut waiting: Vec<PodId> = pods
            .filter(|it| self.cluster.pod(*it).is_some_and(waits))
            .collect();
        waiting.sort_by_key(|it| self.cluster.pod(*it).map(Pod::name));
        waiting
    }

    /// With how many of the pods that wait a group makes do, when those that run count: at least one.
    #[must_use]
    pub fn count_min(&self, group: GroupId) -> usize {
        let count = self.groups.get(group).and_then(|it| it.count_min);
        let least = usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX);
        let pods = self.groups.pods_below(group).into_iter();
        let runs = |it: &Pod| it.host().is_some() && !it.is_terminating();
        let running = pods
            .filter(|it| self.cluster.pod(*it).is_some_and(runs))
            .count();
        least.saturating_sub(running).max(1)
    }

    /// Decides on a preemptor: a gang, or a single pod. Nothing is changed; asked again, the answer is the same.
    ///
    /// 1. If it fits without preemption, preemption is not considered.
    /// 2. If it was nominated to nodes, and whoever it preempted there is still going, nobody else has to go as long
    ///    as those places will do.
    /// 3. If its policy lets it preempt, every domain is looked at, and the one that costs the least is chosen.
    ///
    /// With [`Compatibility::KubeScheduler`] that it does not fit is taken as known for a gang, and for a pod whose
    /// nodes are given; the policy is asked first; and any pod that is still going on a node that it was nominated to
    /// makes it wait.
    ///
    /// Source: KEP-5710, Preemption algorithm and Delayed preemption; kube-scheduler v1.37,
    /// `PodGroupEvaluator.Preempt` and `Evaluator.Preempt`.
    ///
    /// Costs for a gang the nodes times the logarithm of the priorities, the protected units of lower priority, and
    /// the units on the nodes that it gets; for a pod the nodes, and the units on them that may go.
    #[must_use]
    pub fn decide(&self, ask: &PreemptionRequest<'_>, trace: &mut GangTrace) -> GangDecision {
        let mut ground = SearchBaseline::default();
        let mut dropped = None;
        nomination::reserve_nominated(self, ask, &mut ground);
        let outcome = self.decide_outcome(ask, &ground, &mut dropped, trace);
        let not_matching = ask.group.map(|it| self.pods_not_matching_priority(it));
        GangDecision {
            outcome,
            dropped,
            pods_not_matching_priority: not_matching.unwrap_or_default(),
        }
    }

    fn decide_outcome(
        &self,
        ask: &PreemptionRequest<'_>,
        ground: &SearchBaseline,
        dropped: &mut Option<DroppedNomination>,
        trace: &mut GangTrace,
    ) -> GangOutcome {
        let is_ours = self.options.compatibility == SchedulerCompatibility::Lockkeeper;
        let shapes = self.shapes(ask.pods);
        let preemptor = self.preemptor(ask, &shapes);
        if (is_ours || (ask.group.is_none() && ask.hosts.is_none()))
            && let Some(placement) = self.fits(ask, ground, preemptor)
        {
            return GangOutcome::Fits { placement };
        }
        if is_ours {
            trace.record(|| GangStep::DoesNotFit);
            match nomination::nomination_status(self, preemptor, ground) {
                NominationStatus::NotNominated => {}
                NominationStatus::Fits(placement) => return GangOutcome::Fits { placement },
                NominationStatus::AwaitingVictims(placement) => {
                    trace.record(|| GangStep::NominationStands);
                    return GangOutcome::AwaitingVictims { placement };
                }
                NominationStatus::Dropped(lost) => {
                    let DroppedNomination {
                        pod,
                        host,
                        reason: why,
                    } = lost.clone();
                    trace.record(|| GangStep::NominationDropped {
                        pod,
                        host,
                        reason: why,
                    });
                    *dropped = Some(lost);
                }
            }
        }
        if self.preemption_policy(ask) == PodPreemption::Never {
            return GangOutcome::Ineligible(IneligibleReason::PolicyNever);
        }
        if !is_ours
            && nomination::has_terminating_victims(
                self,
                preemptor,
                self.is_nomination_infeasible(ask),
            )
        {
            trace.record(|| GangStep::NominationStands);
            return match ask.group {
                None => GangOutcome::Ineligible(IneligibleReason::VictimsTerminating),
                Some(_) => GangOutcome::AwaitingVictims {
                    placement: nomination::current_placement(self, preemptor.pods),
                },
            };
        }
        match ask.group {
            None => single_pod::best_node(self, ask, ground, preemptor, trace),
            Some(_) => self.best_for_gang(ask, ground, preemptor, trace),
        }
    }

    fn best_for_gang(
        &self,
        ask: &PreemptionRequest<'_>,
        ground: &SearchBaseline,
        preemptor: Preemptor<'_>,
        trace: &mut GangTrace,
    ) -> GangOutcome {
        let is_ours = self.options.compatibility == SchedulerCompatibility::Lockkeeper;
        match self.search(ask, ground, preemptor, trace) {
            Err(why) => GangOutcome::Infeasible {
                domains: vec![(None, why)],
            },
            // Greedy as it is, the search found a place that the first look did not.
            Ok(plan) if plan.victims.is_empty() && is_ours => GangOutcome::Fits {
                placement: plan.placement,
            },
            Ok(plan) => {
                trace.record(|| GangStep::Chosen { host: None });
                GangOutcome::Preempt(plan)
            }
        }
    }

    /// Who would have to go so that a gang fits, whatever its policy.
    pub(super) fn search(
        &self,
        ask: &PreemptionRequest<'_>,
        ground: &SearchBaseline,
        preemptor: Preemptor<'_>,
        trace: &mut GangTrace,
    ) -> Result<GangPlan, InfeasibleReason> {
        let domain = self.domain(ask);
        let mut cascades = CascadeEstimator::new(self, ground);
        let mut plans = Vec::new();
        for (at, strategy) in self.strategies().enumerate() {
            trace.record(|| match at {
                0 => GangStep::Domain { host: None },
                _ => GangStep::RetriedDomain,
            });
            let search = DomainSearch {
                state: self,
                baseline: ground,
                preemptor,
                domain: &domain,
                strategy,
            };
            let plan = search.run(trace).map(|found| {
                let plan = self.plan(None, preemptor.pods, found, &mut cascades);
                trace.record(|| GangStep::Scored { score: plan.score });
                plan
            });
            if let Err(why) = &plan {
                trace.record(|| GangStep::Infeasible {
                    reason: why.clone(),
                });
            }
            plans.push(plan);
        }
        // Of equal ones the first is taken.
        let cost = |plan: &Result<GangPlan, InfeasibleReason>| {
            plan.as_ref()
                .map_or((true, None), |it| (false, Some(it.score)))
        };
        let best = plans.into_iter().min_by_key(cost);
        best.unwrap_or(Err(InfeasibleReason::NoLowerPriority))
    }

    /// The ways to place the pods of a gang.
    fn strategies(&self) -> impl Iterator<Item = Strategy> {
        let first = self.options.strategy;
        let other = match first {
            Strategy::FirstFit => Strategy::BestFit,
            Strategy::BestFit => Strategy::FirstFit,
        };
        let other = self.options.tries_both_strategies.then_some(other);
        std::iter::once(first).chain(other)
    }

    pub(super) fn plan(
        &self,
        host: Option<HostId>,
        pods: &[PodId],
        found: DomainResult,
        cascades: &mut CascadeEstimator<'_>,
    ) -> GangPlan {
        let cascades = cascades.count(&found.victims);
        let units = found.victims.iter().filter_map(|it| self.unit(*it));
        let of_groups = units
            .filter(|it| it.kind() > PreemptionUnitKind::Pod)
            .count();
        GangPlan {
            host,
            placement: zip_placement(pods, &found.placement),
            score: Score::for_victims(self, &found.victims, found.violations, cascades),
            victims: found.victims,
            violations: found.violations,
            group_disruptions: u32::try_from(of_groups).unwrap_or(u32::MAX),
            max_priority: found.max_priority,
        }
    }

    pub(super) fn shapes(&self, pods: &[PodId]) -> Vec<ShapeId> {
        let all = pods.iter().filter_map(|it| self.cluster.pod(*it));
        all.map(Pod::shape).collect()
    }

    /// The priority that the preemptor is scheduled with is held against that which others are preempted by. For a
    /// single pod kube-scheduler takes the pod's own.
    pub(super) fn preemptor<'a>(
        &self,
        ask: &PreemptionRequest<'a>,
        shapes: &'a [ShapeId],
    ) -> Preemptor<'a> {
        let of_pod = || {
            let first = ask.pods.first();
            let own = || {
                first
                    .and_then(|it| self.cluster.pod(*it))
                    .map(Pod::priority)
            };
            match self.options.compatibility {
                SchedulerCompatibility::Lockkeeper => first.map(|it| self.scheduling_priority(*it)),
                SchedulerCompatibility::KubeScheduler => own(),
            }
        };
        let of_group = ask.group.map(|it| self.group_priority(it));
        Preemptor {
            pods: ask.pods,
            shapes,
            distinct_shapes: shapes.iter().collect::<BTreeSet<_>>().len(),
            priority: of_group.or_else(of_pod).unwrap_or_default(),
            count_min: ask.group.map_or(1, |it| self.count_min(it)),
            fixed_placement: ask.fixed_placement,
        }
    }

    fn fits(
        &self,
        ask: &PreemptionRequest<'_>,
        ground: &SearchBaseline,
        preemptor: Preemptor<'_>,
    ) -> Option<Vec<(PodId, Option<HostId>)>> {
        let domain = self.domain(ask);
        self.strategies().find_map(|strategy| {
            let search = DomainSearch {
                state: self,
                baseline: ground,
                preemptor,
                domain: &domain,
                strategy,
            };
            let placement = search.place(None, &[]);
            let is_enough = search.is_enough(&placement);
            is_enough.then(|| zip_placement(preemptor.pods, &placement))
        })
    }

    pub(super) fn domain(&self, ask: &PreemptionRequest<'_>) -> Domain {
        ask.hosts.map_or_else(
            || Domain::whole_cluster(self),
            |it| Domain::Subset(it.to_vec()),
        )
    }

    pub(super) fn preemption_policy(&self, ask: &PreemptionRequest<'_>) -> PodPreemption {
        if let Some(group) = ask.group {
            return self.group_preemption_policy(group, ask.pods);
        }
        let Some(pod) = ask.pods.first() else {
            return PodPreemption::default();
        };
        let own = self.cluster.pod(*pod).map(Pod::preemption);
        match (self.options.compatibility, self.group_of(*pod)) {
            (SchedulerCompatibility::Lockkeeper, Some(group)) => {
                self.group_preemption_policy(group, ask.pods)
            }
            _ => own.unwrap_or_default(),
        }
    }

    /// Whether the node that a single pod was nominated to is nothing for it, whoever leaves.
    fn is_nomination_infeasible(&self, ask: &PreemptionRequest<'_>) -> bool {
        let pod = ask.pods.first().filter(|_| ask.group.is_none());
        let shape = pod.and_then(|it| self.cluster.pod(*it)).map(Pod::shape);
        let host = pod.and_then(|it| self.cluster.host(self.nominated_host(*it)?));
        let Some((shape, host)) = shape.zip(host) else {
            return false;
        };
        let shape = self.cluster.shape_of(shape);
        shape.rejection_by(host, self.cluster.symbols()).is_some()
    }

    /// Whether a pod may preempt, as kube-scheduler sees it: its policy, and whether whom it preempted before is still
    /// going. `is_refused` says that the node that it was nominated to is nothing for it any more.
    ///
    /// # Errors
    ///
    /// Why it may not.
    ///
    /// Source: kube-scheduler v1.37, `PodEligibleToPreemptOthers`.
    pub fn check_eligibility(&self, pod: PodId, is_refused: bool) -> Result<(), IneligibleReason> {
        let ask = PreemptionRequest {
            pods: &[pod],
            ..PreemptionRequest::default()
        };
        if self.preemption_policy(&ask) == PodPreemption::Never {
            return Err(IneligibleReason::PolicyNever);
        }
        let shapes = self.shapes(&[pod]);
        if nomination::has_terminating_victims(self, self.preemptor(&ask, &shapes), is_refused) {
            return Err(IneligibleReason::VictimsTerminating);
        }
        Ok(())
    }
}

pub(super) fn zip_placement(
    pods: &[PodId],
    placement: &[Option<HostId>],
) -> Vec<(PodId, Option<HostId>)> {
    pods.iter()
        .copied()
        .zip(placement.iter().copied())
        .collect()
}

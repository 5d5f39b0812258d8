//! Decisions: whether a preemptor fits, waits, or whom it preempts.

use super::domain::Domain;
use super::nominated::{self, Standing};
use super::pods;
use super::room::Ground;
use super::score::{Cascades, Score};
use super::search::{Found, Preemptor, Search};
use super::spec::{Compatibility, Kind};
use super::trace::{Step, Trace};
use super::world::World;
use crate::names::{GroupId, HostId, PodId, ResourceId, ShapeId, UnitId};
use crate::placement::{Pod, PodPreemption, Refusal, Strategy};
use std::collections::BTreeSet;

/// Who is decided on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The pods that wait, in the order in which they are placed. See [`World::pending`].
    pub pods: &'a [PodId],
    /// Their gang. Without one there is one pod, and it is put on one node.
    pub group: Option<GroupId>,
    /// The nodes that count; `None` is all. For a pod they are those on which preemption may help.
    pub hosts: Option<&'a [HostId]>,
    /// Where each pod of a gang goes once there is room, decided elsewhere.
    pub given: Option<&'a [Option<HostId>]>,
    /// How many of the nodes are looked at, for a pod; `None` is all of them.
    pub sample: Option<Sample>,
}

/// Which nodes are looked at for a pod: from one on, round and round, until there are enough.
///
/// Source: kube-scheduler v1.37, `DryRunPreemption`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The position of the first.
    pub offset: usize,
    /// How many are enough, one of which breaks no budget.
    pub count: usize,
}

/// What is decided, and what was seen on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is to be done.
    pub outcome: Outcome,
    /// Why the nodes that it was nominated to before do not count any more, if they do not.
    pub dropped: Option<Dropped>,
    /// Pods of the gang whose own priority is not that of the workload. See [`World::pods_not_matching`].
    pub not_matching: Vec<PodId>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It fits; nobody has to go.
    Fits {
        /// Where each pod goes.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// These have to go, and it is nominated to its nodes.
    Preempt(Plan),
    /// Whom it preempted before is still going. It keeps the nodes that it was nominated to, and nobody else has to go.
    Waits {
        /// Where each pod goes.
        placement: Vec<(PodId, Option<HostId>)>,
    },
    /// It may not preempt.
    Refused(Ineligible),
    /// No domain will do.
    Infeasible {
        /// Why not, for each domain: the node, or `None` for the cluster.
        domains: Vec<(Option<HostId>, Why)>,
    },
}

/// Who has to go, all or none, and where the preemptor goes then. Nothing is done yet: the whole gang has its place in
/// it, so that it can be carried out in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
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
    pub most: i32,
    /// What it costs.
    pub score: Score,
}

/// Why a preemptor may not preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ineligible {
    /// Its preemption policy is `Never`.
    Never,
    /// Whom it preempted before is still going, on the node it was nominated to.
    Going,
}

/// Why a domain, or a nomination, will not do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The node is nothing for the pod, whoever leaves.
    Refused(Refusal),
    /// There is nobody of a lower priority.
    NoVictims,
    /// There is too little of these, even if all who may go are gone.
    NoRoom {
        /// By number.
        short: Vec<ResourceId>,
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
    NobodyInTheWay,
}

/// A nomination that does not count any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The pod that cannot go where it was nominated to.
    pub pod: PodId,
    /// The node.
    pub host: HostId,
    /// Why not.
    pub why: Why,
}

impl World {
    /// The pods of a group, and of those below it, that wait; by name.
    #[must_use]
    pub fn pending(&self, group: GroupId) -> Vec<PodId> {
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
    pub fn decide(&self, ask: &Ask<'_>, trace: &mut Trace) -> Decision {
        let mut ground = Ground::default();
        let mut dropped = None;
        nominated::reserve(self, ask, &mut ground);
        let outcome = self.decide_on(ask, &ground, &mut dropped, trace);
        let not_matching = ask.group.map(|it| self.pods_not_matching(it));
        Decision {
            outcome,
            dropped,
            not_matching: not_matching.unwrap_or_default(),
        }
    }

    fn decide_on(
        &self,
        ask: &Ask<'_>,
        ground: &Ground,
        dropped: &mut Option<Dropped>,
        trace: &mut Trace,
    ) -> Outcome {
        let is_ours = self.options.compatibility == Compatibility::Lockkeeper;
        let shapes = self.shapes(ask.pods);
        let preemptor = self.preemptor(ask, &shapes);
        if (is_ours || (ask.group.is_none() && ask.hosts.is_none()))
            && let Some(placement) = self.fits(ask, ground, preemptor)
        {
            return Outcome::Fits { placement };
        }
        if is_ours {
            trace.note(|| Step::NoRoom);
            match nominated::standing(self, preemptor, ground) {
                Standing::None => {}
                Standing::Free(placement) => return Outcome::Fits { placement },
                Standing::Waits(placement) => {
                    trace.note(|| Step::Stands);
                    return Outcome::Waits { placement };
                }
                Standing::Lost(lost) => {
                    let Dropped { pod, host, why } = lost.clone();
                    trace.note(|| Step::Dropped { pod, host, why });
                    *dropped = Some(lost);
                }
            }
        }
        if self.policy(ask) == PodPreemption::Never {
            return Outcome::Refused(Ineligible::Never);
        }
        if !is_ours && nominated::is_going(self, preemptor, self.is_nomination_refused(ask)) {
            trace.note(|| Step::Stands);
            return match ask.group {
                None => Outcome::Refused(Ineligible::Going),
                Some(_) => Outcome::Waits {
                    placement: nominated::current(self, preemptor.pods),
                },
            };
        }
        match ask.group {
            None => pods::best(self, ask, ground, preemptor, trace),
            Some(_) => self.best_for_gang(ask, ground, preemptor, trace),
        }
    }

    fn best_for_gang(
        &self,
        ask: &Ask<'_>,
        ground: &Ground,
        preemptor: Preemptor<'_>,
        trace: &mut Trace,
    ) -> Outcome {
        let is_ours = self.options.compatibility == Compatibility::Lockkeeper;
        match self.search(ask, ground, preemptor, trace) {
            Err(why) => Outcome::Infeasible {
                domains: vec![(None, why)],
            },
            // Greedy as it is, the search found a place that the first look did not.
            Ok(plan) if plan.victims.is_empty() && is_ours => Outcome::Fits {
                placement: plan.placement,
            },
            Ok(plan) => {
                trace.note(|| Step::Chosen { host: None });
                Outcome::Preempt(plan)
            }
        }
    }

    /// Who would have to go so that a gang fits, whatever its policy.
    pub(super) fn search(
        &self,
        ask: &Ask<'_>,
        ground: &Ground,
        preemptor: Preemptor<'_>,
        trace: &mut Trace,
    ) -> Result<Plan, Why> {
        let domain = self.domain(ask);
        let mut cascades = Cascades::new(self, ground);
        let mut plans = Vec::new();
        for (at, strategy) in self.strategies().enumerate() {
            trace.note(|| match at {
                0 => Step::Domain { host: None },
                _ => Step::Again,
            });
            let search = Search {
                world: self,
                ground,
                preemptor,
                domain: &domain,
                strategy,
            };
            let plan = search.run(trace).map(|found| {
                let plan = self.plan(None, preemptor.pods, found, &mut cascades);
                trace.note(|| Step::Scored { score: plan.score });
                plan
            });
            if let Err(why) = &plan {
                trace.note(|| Step::Infeasible { why: why.clone() });
            }
            plans.push(plan);
        }
        // Of equal ones the first is taken.
        let cost = |plan: &Result<Plan, Why>| {
            plan.as_ref()
                .map_or((true, None), |it| (false, Some(it.score)))
        };
        let best = plans.into_iter().min_by_key(cost);
        best.unwrap_or(Err(Why::NoVictims))
    }

    /// The ways to place the pods of a gang.
    fn strategies(&self) -> impl Iterator<Item = Strategy> {
        let first = self.options.strategy;
        let other = match first {
            Strategy::FirstFit => Strategy::BestFit,
            Strategy::BestFit => Strategy::FirstFit,
        };
        let other = self.options.is_thorough.then_some(other);
        std::iter::once(first).chain(other)
    }

    pub(super) fn plan(
        &self,
        host: Option<HostId>,
        pods: &[PodId],
        found: Found,
        cascades: &mut Cascades<'_>,
    ) -> Plan {
        let cascades = cascades.count(&found.victims);
        let units = found.victims.iter().filter_map(|it| self.unit(*it));
        let of_groups = units.filter(|it| it.kind() > Kind::Pod).count();
        Plan {
            host,
            placement: named(pods, &found.placement),
            score: Score::of(self, &found.victims, found.violations, cascades),
            victims: found.victims,
            violations: found.violations,
            group_disruptions: u32::try_from(of_groups).unwrap_or(u32::MAX),
            most: found.most,
        }
    }

    pub(super) fn shapes(&self, pods: &[PodId]) -> Vec<ShapeId> {
        let all = pods.iter().filter_map(|it| self.cluster.pod(*it));
        all.map(Pod::shape).collect()
    }

    /// The priority that the preemptor is scheduled with is held against that which others are preempted by. For a
    /// single pod kube-scheduler takes the pod's own.
    pub(super) fn preemptor<'a>(&self, ask: &Ask<'a>, shapes: &'a [ShapeId]) -> Preemptor<'a> {
        let of_pod = || {
            let first = ask.pods.first();
            let own = || {
                first
                    .and_then(|it| self.cluster.pod(*it))
                    .map(Pod::priority)
            };
            match self.options.compatibility {
                Compatibility::Lockkeeper => first.map(|it| self.scheduling_priority(*it)),
                Compatibility::KubeScheduler => own(),
            }
        };
        let of_group = ask.group.map(|it| self.group_priority(it));
        Preemptor {
            pods: ask.pods,
            shapes,
            different: shapes.iter().collect::<BTreeSet<_>>().len(),
            priority: of_group.or_else(of_pod).unwrap_or_default(),
            count_min: ask.group.map_or(1, |it| self.count_min(it)),
            given: ask.given,
        }
    }

    fn fits(
        &self,
        ask: &Ask<'_>,
        ground: &Ground,
        preemptor: Preemptor<'_>,
    ) -> Option<Vec<(PodId, Option<HostId>)>> {
        let domain = self.domain(ask);
        self.strategies().find_map(|strategy| {
            let search = Search {
                world: self,
                ground,
                preemptor,
                domain: &domain,
                strategy,
            };
            let placement = search.place(None, &[]);
            let is_enough = search.is_enough(&placement);
            is_enough.then(|| named(preemptor.pods, &placement))
        })
    }

    pub(super) fn domain(&self, ask: &Ask<'_>) -> Domain {
        ask.hosts
            .map_or_else(|| Domain::cluster(self), |it| Domain::Part(it.to_vec()))
    }

    pub(super) fn policy(&self, ask: &Ask<'_>) -> PodPreemption {
        if let Some(group) = ask.group {
            return self.preemption(group, ask.pods);
        }
        let Some(pod) = ask.pods.first() else {
            return PodPreemption::default();
        };
        let own = self.cluster.pod(*pod).map(Pod::preemption);
        match (self.options.compatibility, self.group_of(*pod)) {
            (Compatibility::Lockkeeper, Some(group)) => self.preemption(group, ask.pods),
            _ => own.unwrap_or_default(),
        }
    }

    /// Whether the node that a single pod was nominated to is nothing for it, whoever leaves.
    fn is_nomination_refused(&self, ask: &Ask<'_>) -> bool {
        let pod = ask.pods.first().filter(|_| ask.group.is_none());
        let shape = pod.and_then(|it| self.cluster.pod(*it)).map(Pod::shape);
        let host = pod.and_then(|it| self.cluster.host(self.nominated_host(*it)?));
        let Some((shape, host)) = shape.zip(host) else {
            return false;
        };
        let shape = self.cluster.shape_of(shape);
        shape.refused_by(host, self.cluster.words()).is_some()
    }

    /// Whether a pod may preempt, as kube-scheduler sees it: its policy, and whether whom it preempted before is still
    /// going. `is_refused` says that the node that it was nominated to is nothing for it any more.
    ///
    /// # Errors
    ///
    /// Why it may not.
    ///
    /// Source: kube-scheduler v1.37, `PodEligibleToPreemptOthers`.
    pub fn may_preempt(&self, pod: PodId, is_refused: bool) -> Result<(), Ineligible> {
        let ask = Ask {
            pods: &[pod],
            ..Ask::default()
        };
        if self.policy(&ask) == PodPreemption::Never {
            return Err(Ineligible::Never);
        }
        let shapes = self.shapes(&[pod]);
        if nominated::is_going(self, self.preemptor(&ask, &shapes), is_refused) {
            return Err(Ineligible::Going);
        }
        Ok(())
    }
}

pub(super) fn named(pods: &[PodId], placement: &[Option<HostId>]) -> Vec<(PodId, Option<HostId>)> {
    pods.iter()
        .copied()
        .zip(placement.iter().copied())
        .collect()
}

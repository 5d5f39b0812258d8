//! What is answered to a scenario.

use super::build::LoadedGangScenario;
use super::scenario::{FilterStatus, GangScenario, Kind};
use lockkeeper_preemption::gang::{
    DryRun, GangDecision, GangOutcome, GangTrace, IneligibleReason, check_eligibility,
};
use lockkeeper_preemption::placement::PodPreemption;
use lockkeeper_preemption::{BudgetId, PodId, UnitId};

/// What is answered to a scenario.
#[derive(Clone, Debug)]
pub enum ScenarioAnswer {
    /// What becomes of the preemptor, and why.
    Decision(GangDecision, GangTrace),
    /// Whom it would preempt on each node, and why.
    DryRun(DryRun, GangTrace),
    /// Whether it may preempt.
    MayPreempt(Result<(), IneligibleReason>),
    /// Whether a group preempts.
    Policy(PodPreemption),
    /// By which priorities a pod is scheduled and preempted.
    Priorities {
        /// The pod.
        pod: PodId,
        /// The one that it is scheduled with.
        scheduling: i32,
        /// The one that it is preempted by.
        preemption: i32,
    },
    /// What is preempted as one, the most important first.
    Units(Vec<UnitId>),
    /// For each victim, in order, which of its pods break a budget, and which.
    Budgets(Vec<Vec<(PodId, BudgetId)>>),
    /// Whether the first victim is more important than the second.
    IsMoreImportant(bool),
}

/// Answers a scenario. Without a preemptor, and of no kind that asks for something else, it is what would be preempted
/// as one.
#[must_use]
pub fn evaluate(scenario: &GangScenario, loaded: &LoadedGangScenario) -> ScenarioAnswer {
    let world = &loaded.gang_cluster;
    match scenario.kind {
        Some(Kind::PdbSplit) => ScenarioAnswer::Budgets(world.budget_violations(&loaded.victims)),
        Some(Kind::MoreImportant) => {
            let mut ranks = loaded.ranks.iter();
            let both = ranks.next().zip(ranks.next());
            ScenarioAnswer::IsMoreImportant(both.is_some_and(|(a, b)| a.is_more_important(b)))
        }
        Some(Kind::EffectivePriority) => {
            let pod = loaded.pod.unwrap_or_default();
            ScenarioAnswer::Priorities {
                pod,
                scheduling: world.workloads().scheduling_priority(pod),
                preemption: world.workloads().preemption_priority(pod),
            }
        }
        Some(Kind::ResolvePreemptionPolicy) => {
            ScenarioAnswer::Policy(group_policy(scenario, loaded))
        }
        Some(Kind::EligibleToPreempt) => {
            let refused = Some(FilterStatus::UnschedulableAndUnresolvable);
            let is_refused = scenario.nominated_node_status == refused;
            let pod = loaded.pods.first().copied().unwrap_or_default();
            ScenarioAnswer::MayPreempt(check_eligibility(world, pod, is_refused))
        }
        Some(Kind::DryRun | Kind::SelectBest) => {
            let mut trace = GangTrace::on();
            let run = world.dry_run(&loaded.preemption_request(), &mut trace);
            ScenarioAnswer::DryRun(run, trace)
        }
        _ if loaded.pods.is_empty() => ScenarioAnswer::Units(units_by_importance(loaded)),
        _ => ScenarioAnswer::decide(scenario, loaded),
    }
}

impl ScenarioAnswer {
    fn decide(scenario: &GangScenario, loaded: &LoadedGangScenario) -> Self {
        let mut trace = GangTrace::on();
        let (world, ask) = (&loaded.gang_cluster, loaded.preemption_request());
        if !scenario.pod_by_pod {
            let decision = world.decide(&ask, &mut trace);
            return Self::Decision(decision, trace);
        }
        let outcome: GangOutcome = world.decide_pod_by_pod(&ask, &mut trace);
        let not_matching = loaded
            .group
            .map(|it| world.workloads().pods_not_matching_priority(it));
        let decision = GangDecision {
            outcome,
            dropped: None,
            pods_not_matching_priority: not_matching.unwrap_or_default(),
        };
        Self::Decision(decision, trace)
    }
}

/// The policy of the group that is asked about. Its pods need not name it.
fn group_policy(scenario: &GangScenario, loaded: &LoadedGangScenario) -> PodPreemption {
    use lockkeeper_preemption::gang::{GroupKey, PreemptionUnitKind as CoreKind};
    let mut world = loaded.gang_cluster.clone();
    let kinds = [
        (CoreKind::PodGroup, &scenario.pod_group),
        (CoreKind::Composite, &scenario.composite_pod_group),
    ];
    let group = kinds.iter().find_map(|(kind, group)| {
        let group = group.as_ref()?;
        Some(world.group_id(GroupKey {
            kind: *kind,
            namespace: &group.namespace,
            name: &group.name,
        }))
    });
    let pods: Vec<PodId> = world.cluster().pods().map(|(id, _)| id).collect();
    world
        .workloads()
        .group_preemption_policy(group.unwrap_or_default(), &pods)
}

fn units_by_importance(loaded: &LoadedGangScenario) -> Vec<UnitId> {
    let world = &loaded.gang_cluster;
    let mut units: Vec<UnitId> = match &loaded.hosts {
        Some(hosts) => hosts
            .iter()
            .flat_map(|it| world.units().on_host(*it))
            .collect(),
        None => world.units().iter().map(|(id, _)| id).collect(),
    };
    units.sort_by_cached_key(|id| world.units().get(*id).map(|it| it.importance(*id)));
    units
}

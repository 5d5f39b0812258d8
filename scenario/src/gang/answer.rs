//! Evaluates a scenario.

use super::build::LoadedGangScenario;
use super::scenario::{FilterStatus, GangScenario, Kind};
use lockkeeper_preemption::gang::{
    DryRun, GangDecision, GangOutcome, GangTrace, IneligibleReason, check_eligibility,
};
use lockkeeper_preemption::placement::PodPreemption;
use lockkeeper_preemption::{BudgetId, PodId, UnitId};

/// The result of a scenario.
#[derive(Clone, Debug)]
pub enum ScenarioAnswer {
    /// The decision on the preemptor, with its trace.
    Decision(GangDecision, GangTrace),
    /// The victims on each candidate node, with the trace.
    DryRun(DryRun, GangTrace),
    /// Whether the preemptor may preempt.
    MayPreempt(Result<(), IneligibleReason>),
    /// The preemption policy of a group.
    Policy(PodPreemption),
    /// The scheduling and the preemption priority of a pod.
    Priorities {
        /// The pod.
        pod: PodId,
        /// The scheduling priority.
        scheduling: i32,
        /// The preemption priority.
        preemption: i32,
    },
    /// The disruption units, the most important first.
    Units(Vec<UnitId>),
    /// For each victim, in order, its pods that violate a disruption budget, with the budget.
    Budgets(Vec<Vec<(PodId, BudgetId)>>),
    /// Whether the first victim is more important than the second.
    IsMoreImportant(bool),
}

/// Evaluates a scenario. Without a preemptor and a kind, the result is the list of disruption units.
#[must_use]
pub fn evaluate(scenario: &GangScenario, loaded: &LoadedGangScenario) -> ScenarioAnswer {
    let gang_cluster = &loaded.gang_cluster;
    match scenario.kind {
        Some(Kind::PdbSplit) => {
            ScenarioAnswer::Budgets(gang_cluster.budget_violations(&loaded.victims))
        }
        Some(Kind::MoreImportant) => {
            let mut ranks = loaded.ranks.iter();
            let both = ranks.next().zip(ranks.next());
            ScenarioAnswer::IsMoreImportant(both.is_some_and(|(a, b)| a.is_more_important(b)))
        }
        Some(Kind::EffectivePriority) => {
            let pod = loaded.pod.unwrap_or_default();
            ScenarioAnswer::Priorities {
                pod,
                scheduling: gang_cluster.workloads().scheduling_priority(pod),
                preemption: gang_cluster.workloads().preemption_priority(pod),
            }
        }
        Some(Kind::ResolvePreemptionPolicy) => {
            ScenarioAnswer::Policy(group_policy(scenario, loaded))
        }
        Some(Kind::EligibleToPreempt) => {
            let unresolvable = Some(FilterStatus::UnschedulableAndUnresolvable);
            let is_unresolvable = scenario.nominated_node_status == unresolvable;
            let pod = loaded.pods.first().copied().unwrap_or_default();
            ScenarioAnswer::MayPreempt(check_eligibility(gang_cluster, pod, is_unresolvable))
        }
        Some(Kind::DryRun | Kind::SelectBest) => {
            let mut trace = GangTrace::on();
            let run = gang_cluster.dry_run(&loaded.preemption_request(), &mut trace);
            ScenarioAnswer::DryRun(run, trace)
        }
        _ if loaded.pods.is_empty() => ScenarioAnswer::Units(units_by_importance(loaded)),
        _ => ScenarioAnswer::decide(scenario, loaded),
    }
}

impl ScenarioAnswer {
    fn decide(scenario: &GangScenario, loaded: &LoadedGangScenario) -> Self {
        let mut trace = GangTrace::on();
        let (gang_cluster, request) = (&loaded.gang_cluster, loaded.preemption_request());
        if !scenario.pod_by_pod {
            let decision = gang_cluster.decide(&request, &mut trace);
            return Self::Decision(decision, trace);
        }
        let outcome: GangOutcome = gang_cluster.decide_pod_by_pod(&request, &mut trace);
        let not_matching = loaded
            .group
            .map(|it| gang_cluster.workloads().pods_not_matching_priority(it));
        let decision = GangDecision {
            outcome,
            dropped: None,
            pods_not_matching_priority: not_matching.unwrap_or_default(),
        };
        Self::Decision(decision, trace)
    }
}

/// The preemption policy of the group of the scenario. Its pods need not name the group.
fn group_policy(scenario: &GangScenario, loaded: &LoadedGangScenario) -> PodPreemption {
    use lockkeeper_preemption::gang::{GroupKey, PreemptionUnitKind as CoreKind};
    let mut gang_cluster = loaded.gang_cluster.clone();
    let kinds = [
        (CoreKind::PodGroup, &scenario.pod_group),
        (CoreKind::Composite, &scenario.composite_pod_group),
    ];
    let group = kinds.iter().find_map(|(kind, group)| {
        let group = group.as_ref()?;
        Some(gang_cluster.group_id(GroupKey {
            kind: *kind,
            namespace: &group.namespace,
            name: &group.name,
        }))
    });
    let pods: Vec<PodId> = gang_cluster.cluster().pods().map(|(id, _)| id).collect();
    gang_cluster
        .workloads()
        .group_preemption_policy(group.unwrap_or_default(), &pods)
}

fn units_by_importance(loaded: &LoadedGangScenario) -> Vec<UnitId> {
    let gang_cluster = &loaded.gang_cluster;
    let mut units: Vec<UnitId> = match &loaded.hosts {
        Some(hosts) => hosts
            .iter()
            .flat_map(|it| gang_cluster.units().on_host(*it))
            .collect(),
        None => gang_cluster.units().iter().map(|(id, _)| id).collect(),
    };
    units.sort_by_cached_key(|id| gang_cluster.units().get(*id).map(|it| it.importance(*id)));
    units
}

//! What is answered to a scenario.

use super::build::Loaded;
use super::written::{Kind, Scenario, Status};
use lockkeeper_preemption::gang::{Decision, DryRun, Ineligible, Outcome, Trace};
use lockkeeper_preemption::placement::PodPreemption;
use lockkeeper_preemption::{BudgetId, PodId, UnitId};

/// What is answered to a scenario.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What becomes of the preemptor, and why.
    Decision(Decision, Trace),
    /// Whom it would preempt on each node, and why.
    DryRun(DryRun, Trace),
    /// Whether it may preempt.
    MayPreempt(Result<(), Ineligible>),
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
pub fn answer(scenario: &Scenario, loaded: &Loaded) -> Answer {
    let world = &loaded.world;
    match scenario.kind {
        Some(Kind::PdbSplit) => Answer::Budgets(world.split(&loaded.victims)),
        Some(Kind::MoreImportant) => {
            let mut ranks = loaded.ranks.iter();
            let both = ranks.next().zip(ranks.next());
            Answer::IsMoreImportant(both.is_some_and(|(a, b)| a.is_more_important(b)))
        }
        Some(Kind::EffectivePriority) => {
            let pod = loaded.pod.unwrap_or_default();
            Answer::Priorities {
                pod,
                scheduling: world.scheduling_priority(pod),
                preemption: world.preemption_priority(pod),
            }
        }
        Some(Kind::ResolvePreemptionPolicy) => Answer::Policy(policy(scenario, loaded)),
        Some(Kind::EligibleToPreempt) => {
            let refused = Some(Status::UnschedulableAndUnresolvable);
            let is_refused = scenario.nominated_node_status == refused;
            let pod = loaded.pods.first().copied().unwrap_or_default();
            Answer::MayPreempt(world.may_preempt(pod, is_refused))
        }
        Some(Kind::DryRun | Kind::SelectBest) => {
            let mut trace = Trace::on();
            let run = world.dry_run(&loaded.ask(), &mut trace);
            Answer::DryRun(run, trace)
        }
        _ if loaded.pods.is_empty() => Answer::Units(units(loaded)),
        _ => Answer::decided(scenario, loaded),
    }
}

impl Answer {
    fn decided(scenario: &Scenario, loaded: &Loaded) -> Self {
        let mut trace = Trace::on();
        let (world, ask) = (&loaded.world, loaded.ask());
        if !scenario.pod_by_pod {
            let decision = world.decide(&ask, &mut trace);
            return Self::Decision(decision, trace);
        }
        let outcome: Outcome = world.decide_pod_by_pod(&ask, &mut trace);
        let not_matching = loaded.group.map(|it| world.pods_not_matching(it));
        let decision = Decision {
            outcome,
            dropped: None,
            not_matching: not_matching.unwrap_or_default(),
        };
        Self::Decision(decision, trace)
    }
}

/// The policy of the group that is asked about. Its pods need not name it.
fn policy(scenario: &Scenario, loaded: &Loaded) -> PodPreemption {
    use lockkeeper_preemption::gang::{GroupKey, Kind as CoreKind};
    let mut world = loaded.world.clone();
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
    world.preemption(group.unwrap_or_default(), &pods)
}

fn units(loaded: &Loaded) -> Vec<UnitId> {
    let world = &loaded.world;
    let mut units: Vec<UnitId> = match &loaded.hosts {
        Some(hosts) => hosts.iter().flat_map(|it| world.units_on(*it)).collect(),
        None => world.units().map(|(id, _)| id).collect(),
    };
    units.sort_by_cached_key(|id| world.unit(*id).map(|it| it.rank(*id)));
    units
}

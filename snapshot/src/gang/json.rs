//! Answers as JSON.

use super::answer::Answer;
use super::build::Loaded;
use lockkeeper_preemption::gang::{
    Decision, DryRun, Ineligible, Kind, Outcome, Plan, Score, Step, Why, World,
};
use lockkeeper_preemption::placement::{PodPreemption, Refusal};
use lockkeeper_preemption::{BudgetId, HostId, PodId, UnitId};
use serde_json::{Value, json};

/// An answer, with names in place of numbers.
#[must_use]
pub fn told(loaded: &Loaded, answer: &Answer) -> Value {
    let world = &loaded.world;
    match answer {
        Answer::Decision(it, trace) => {
            let mut told = decision(world, loaded, it);
            insert(&mut told, "trace", steps(world, trace.steps()));
            told
        }
        Answer::DryRun(run, trace) => {
            let mut told = dry_run(world, run);
            insert(&mut told, "trace", steps(world, trace.steps()));
            told
        }
        Answer::MayPreempt(may) => json!({
            "mayPreempt": may.is_ok(),
            "reason": may.err().map(ineligible),
        }),
        Answer::Policy(it) => json!({"preemptionPolicy": policy(*it)}),
        Answer::Priorities {
            pod,
            scheduling,
            preemption,
        } => json!({
            "pod": world.pod_name(*pod),
            "priority": scheduling,
            "preemptionPriority": preemption,
        }),
        Answer::Units(units) => {
            let all = units.iter().map(|it| unit(world, *it));
            json!({"units": all.collect::<Vec<_>>()})
        }
        Answer::Budgets(victims) => {
            let each = victims.iter().map(|it| breaks(world, it));
            json!({"victims": each.collect::<Vec<_>>()})
        }
        Answer::IsMoreImportant(is) => json!({"firstIsMoreImportant": is}),
    }
}

fn decision(world: &World, loaded: &Loaded, decision: &Decision) -> Value {
    let preemptor = match loaded.group {
        Some(group) => world.group_name(group).to_owned(),
        None => loaded
            .pods
            .first()
            .map(|it| world.pod_name(*it))
            .unwrap_or_default(),
    };
    let mut told = json!({
        "preemptor": preemptor,
        "outcome": outcome_name(&decision.outcome),
    });
    match &decision.outcome {
        Outcome::Fits { placement: it } | Outcome::Waits { placement: it } => {
            insert(&mut told, "placement", placement(world, it));
        }
        Outcome::Preempt(it) => {
            if let (Some(told), Value::Object(plan)) = (told.as_object_mut(), plan(world, it)) {
                told.extend(plan);
            }
        }
        Outcome::Refused(it) => insert(&mut told, "reason", ineligible(*it).into()),
        Outcome::Infeasible { domains } => {
            let all = domains.iter().map(|(host, it)| domain(world, *host, it));
            insert(&mut told, "domains", all.collect());
        }
    }
    if let Some(it) = &decision.dropped {
        let dropped = json!({
            "pod": world.pod_name(it.pod),
            "node": world.cluster().host_name(it.host),
            "why": why(world, &it.why),
        });
        insert(&mut told, "droppedNomination", dropped);
    }
    if !decision.not_matching.is_empty() {
        let names = decision.not_matching.iter().map(|it| world.pod_name(*it));
        insert(&mut told, "podsNotMatchingPriority", names.collect());
    }
    told
}

fn dry_run(world: &World, run: &DryRun) -> Value {
    let infeasible = run.infeasible.iter();
    json!({
        "candidates": run.candidates.iter().map(|it| plan(world, it)).collect::<Vec<_>>(),
        "domains": infeasible.map(|(host, it)| domain(world, *host, it)).collect::<Vec<_>>(),
    })
}

fn insert(told: &mut Value, key: &str, value: Value) {
    if let Some(fields) = told.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

pub(super) fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Fits { .. } => "fits",
        Outcome::Preempt(_) => "preempts",
        Outcome::Waits { .. } => "waits",
        Outcome::Refused(_) => "mayNotPreempt",
        Outcome::Infeasible { .. } => "infeasible",
    }
}

fn ineligible(reason: Ineligible) -> &'static str {
    match reason {
        Ineligible::Never => "policyNever",
        _ => "victimsStillGoing",
    }
}

fn policy(policy: PodPreemption) -> &'static str {
    match policy {
        PodPreemption::LowerPriority => "PreemptLowerPriority",
        PodPreemption::Never => "Never",
    }
}

pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "Pod",
        Kind::PodGroup => "PodGroup",
        Kind::Composite => "CompositePodGroup",
    }
}

fn plan(world: &World, plan: &Plan) -> Value {
    json!({
        "node": plan.host.map(|it| world.cluster().host_name(it)),
        "placement": placement(world, &plan.placement),
        "victims": plan.victims.iter().map(|it| unit(world, *it)).collect::<Vec<_>>(),
        "budgetViolations": plan.violations,
        "groupDisruptions": plan.group_disruptions,
        "upToPriority": plan.most,
        "score": score(&plan.score),
    })
}

fn score(score: &Score) -> Value {
    json!({
        "expectedCascades": score.cascades,
        "budgetViolations": score.violations,
        "highestPriority": score.highest,
        "prioritySum": score.sum,
        "pods": score.pods,
        "startedAtNs": score.started_at_ns.0,
    })
}

fn placement(world: &World, placement: &[(PodId, Option<HostId>)]) -> Value {
    let each = placement.iter().map(|(pod, host)| {
        let node = host.map(|it| world.cluster().host_name(it));
        json!({"pod": world.pod_name(*pod), "node": node})
    });
    each.collect()
}

fn unit(world: &World, id: UnitId) -> Value {
    let Some(unit) = world.unit(id) else {
        return Value::Null;
    };
    let pods = unit.pods().iter().map(|it| {
        let host = world
            .cluster()
            .pod(*it)
            .and_then(lockkeeper_preemption::placement::Pod::host);
        let node = host.map(|it| world.cluster().host_name(it));
        json!({"pod": world.pod_name(*it), "node": node})
    });
    json!({
        "unit": unit.name(),
        "kind": kind(unit.kind()),
        "priority": unit.priority(),
        "pods": pods.collect::<Vec<_>>(),
    })
}

fn breaks(world: &World, breaks: &[(PodId, BudgetId)]) -> Value {
    let each = breaks.iter().map(
        |(pod, budget)| json!({"pod": world.pod_name(*pod), "budget": world.budget_name(*budget)}),
    );
    each.collect()
}

fn domain(world: &World, host: Option<HostId>, reason: &Why) -> Value {
    let node = host.map(|it| world.cluster().host_name(it));
    json!({"node": node, "why": why(world, reason)})
}

fn why(world: &World, why: &Why) -> Value {
    let cluster = world.cluster();
    match why {
        Why::Refused(refusal) => match refusal {
            Refusal::Absent => json!({"reason": "noSuchNode"}),
            Refusal::Unschedulable => json!({"reason": "unschedulable"}),
            Refusal::Unselected => json!({"reason": "notSelected"}),
            Refusal::Tainted { key } => {
                json!({"reason": "tainted", "taint": cluster.words().text(*key)})
            }
            Refusal::TooSmall {
                resource,
                asked,
                allocatable,
            } => json!({
                "reason": "tooSmall",
                "resource": cluster.resource_name(*resource),
                "asked": asked.get(),
                "allocatable": allocatable.get(),
            }),
            _ => json!({"reason": "refused"}),
        },
        Why::NoVictims => json!({"reason": "nobodyOfLowerPriority"}),
        Why::NoRoom { short } => {
            let names = short.iter().map(|it| cluster.resource_name(*it));
            json!({"reason": "noRoom", "short": names.collect::<Vec<_>>()})
        }
        Why::NoPlacement {
            pod,
            placed,
            count_min,
        } => json!({
            "reason": "noPlacement",
            "pod": pod.map(|it| world.pod_name(it)),
            "placed": placed,
            "minCount": count_min,
        }),
        _ => json!({"reason": "nobodyInTheWay"}),
    }
}

fn steps(world: &World, steps: &[Step]) -> Value {
    steps.iter().map(|it| step(world, it)).collect()
}

fn step(world: &World, step: &Step) -> Value {
    let node = |host: &HostId| world.cluster().host_name(*host).to_owned();
    let name = |id: &UnitId| world.unit(*id).map(|it| it.name().to_owned());
    match step {
        Step::Pod { pod } => json!({"step": "pod", "pod": world.pod_name(*pod)}),
        Step::Stands => json!({"step": "stands"}),
        Step::Dropped {
            pod,
            host,
            why: reason,
        } => json!({
            "step": "dropped",
            "pod": world.pod_name(*pod),
            "node": node(host),
            "why": why(world, reason),
        }),
        Step::Again => json!({"step": "again"}),
        Step::NoRoom => json!({"step": "noRoom"}),
        Step::Domain { host } => json!({"step": "domain", "node": host.as_ref().map(node)}),
        Step::Infeasible { why: reason } => {
            json!({"step": "infeasible", "why": why(world, reason)})
        }
        Step::Placed { placement: it } => {
            json!({"step": "placed", "placement": placement(world, it)})
        }
        Step::PlacedAnew { placement: it } => {
            json!({"step": "placedAnew", "placement": placement(world, it)})
        }
        Step::Protected {
            unit,
            breaks: broken,
        } => json!({
            "step": "protected",
            "unit": name(unit),
            "breaks": breaks(world, broken),
        }),
        Step::Tried { most, is_enough } => {
            json!({"step": "tried", "upToPriority": most, "isEnough": is_enough})
        }
        Step::Bound { most } => json!({"step": "bound", "upToPriority": most}),
        Step::Reprieved { unit, by_budget } => {
            json!({"step": "reprieved", "unit": name(unit), "byBudget": by_budget})
        }
        Step::Taken {
            unit,
            host,
            resource,
        } => json!({
            "step": "taken",
            "unit": name(unit),
            "node": node(host),
            "short": world.cluster().resource_name(*resource),
        }),
        Step::Scored { score: it } => json!({"step": "scored", "score": score(it)}),
        Step::Chosen { host } => json!({"step": "chosen", "node": host.as_ref().map(node)}),
        _ => Value::Null,
    }
}

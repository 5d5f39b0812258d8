//! Encodes results as JSON.

use super::answer::ScenarioAnswer;
use super::build::LoadedGangScenario;
use lockkeeper_preemption::gang::{
    Conflict, DryRun, GangCluster, GangDecision, GangOutcome, GangPlan, GangStep, IneligibleReason,
    InfeasibleReason, PreemptionUnitKind, Score,
};
use lockkeeper_preemption::placement::{FilterRejection, InterPodRejection, PodPreemption};
use lockkeeper_preemption::{BudgetId, HostId, PodId, UnitId};
use serde_json::{Value, json};

/// Encodes a result, with names instead of ids.
#[must_use]
pub fn to_json(loaded: &LoadedGangScenario, answer: &ScenarioAnswer) -> Value {
    let gang_cluster = &loaded.gang_cluster;
    match answer {
        ScenarioAnswer::Decision(it, trace) => {
            let mut object = decision_json(gang_cluster, loaded, it);
            insert_key(
                &mut object,
                "trace",
                steps_json(gang_cluster, trace.steps()),
            );
            object
        }
        ScenarioAnswer::DryRun(run, trace) => {
            let mut object = dry_run_json(gang_cluster, run);
            insert_key(
                &mut object,
                "trace",
                steps_json(gang_cluster, trace.steps()),
            );
            object
        }
        ScenarioAnswer::MayPreempt(may) => json!({
            "mayPreempt": may.is_ok(),
            "reason": may.err().map(ineligible_name),
        }),
        ScenarioAnswer::Policy(it) => json!({"preemptionPolicy": policy_name(*it)}),
        ScenarioAnswer::Priorities {
            pod,
            scheduling,
            preemption,
        } => json!({
            "pod": gang_cluster.pod_name(*pod),
            "priority": scheduling,
            "preemptionPriority": preemption,
        }),
        ScenarioAnswer::Units(units) => {
            let all = units.iter().map(|it| unit_json(gang_cluster, *it));
            json!({"units": all.collect::<Vec<_>>()})
        }
        ScenarioAnswer::Budgets(victims) => {
            let each = victims.iter().map(|it| budget_violations(gang_cluster, it));
            json!({"victims": each.collect::<Vec<_>>()})
        }
        ScenarioAnswer::IsMoreImportant(is) => json!({"firstIsMoreImportant": is}),
    }
}

fn decision_json(
    gang_cluster: &GangCluster,
    loaded: &LoadedGangScenario,
    decision: &GangDecision,
) -> Value {
    let preemptor = match loaded.group {
        Some(group) => gang_cluster.group_name(group).to_owned(),
        None => loaded
            .pods
            .first()
            .map(|it| gang_cluster.pod_name(*it))
            .unwrap_or_default(),
    };
    let mut object = json!({
        "preemptor": preemptor,
        "outcome": outcome_name(&decision.outcome),
    });
    match &decision.outcome {
        GangOutcome::Fits { placement: it } | GangOutcome::AwaitingVictims { placement: it } => {
            insert_key(&mut object, "placement", placement_json(gang_cluster, it));
        }
        GangOutcome::Preempt(it) => {
            if let (Some(object), Value::Object(plan)) =
                (object.as_object_mut(), plan_json(gang_cluster, it))
            {
                object.extend(plan);
            }
        }
        GangOutcome::Ineligible(it) => {
            insert_key(&mut object, "reason", ineligible_name(*it).into());
        }
        GangOutcome::Infeasible { domains } => {
            let all = domains
                .iter()
                .map(|(host, it)| domain_json(gang_cluster, *host, it));
            insert_key(&mut object, "domains", all.collect());
        }
    }
    if let Some(it) = &decision.dropped {
        let dropped = json!({
            "pod": gang_cluster.pod_name(it.pod),
            "node": gang_cluster.cluster().host_name(it.host),
            "why": infeasible_json(gang_cluster, &it.reason),
        });
        insert_key(&mut object, "droppedNomination", dropped);
    }
    if !decision.pods_not_matching_priority.is_empty() {
        let names = decision
            .pods_not_matching_priority
            .iter()
            .map(|it| gang_cluster.pod_name(*it));
        insert_key(&mut object, "podsNotMatchingPriority", names.collect());
    }
    object
}

fn dry_run_json(gang_cluster: &GangCluster, run: &DryRun) -> Value {
    let infeasible = run.infeasible.iter();
    json!({
        "candidates": run.candidates.iter().map(|it| plan_json(gang_cluster, it)).collect::<Vec<_>>(),
        "domains": infeasible.map(|(host, it)| domain_json(gang_cluster, *host, it)).collect::<Vec<_>>(),
    })
}

fn insert_key(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

pub(super) fn outcome_name(outcome: &GangOutcome) -> &'static str {
    match outcome {
        GangOutcome::Fits { .. } => "fits",
        GangOutcome::Preempt(_) => "preempts",
        GangOutcome::AwaitingVictims { .. } => "waits",
        GangOutcome::Ineligible(_) => "mayNotPreempt",
        GangOutcome::Infeasible { .. } => "infeasible",
    }
}

fn ineligible_name(reason: IneligibleReason) -> &'static str {
    match reason {
        IneligibleReason::PolicyNever => "policyNever",
        _ => "victimsStillGoing",
    }
}

fn policy_name(policy: PodPreemption) -> &'static str {
    match policy {
        PodPreemption::LowerPriority => "PreemptLowerPriority",
        PodPreemption::Never => "Never",
    }
}

pub(super) fn kind_name(kind: PreemptionUnitKind) -> &'static str {
    match kind {
        PreemptionUnitKind::Pod => "Pod",
        PreemptionUnitKind::PodGroup => "PodGroup",
        PreemptionUnitKind::Composite => "CompositePodGroup",
    }
}

fn plan_json(gang_cluster: &GangCluster, plan: &GangPlan) -> Value {
    json!({
        "node": plan.host.map(|it| gang_cluster.cluster().host_name(it)),
        "placement": placement_json(gang_cluster, &plan.placement),
        "victims": plan.victims.iter().map(|it| unit_json(gang_cluster, *it)).collect::<Vec<_>>(),
        "budgetViolations": plan.violations,
        "groupDisruptions": plan.group_disruptions,
        "upToPriority": plan.max_priority,
        "score": score_json(&plan.score),
    })
}

fn score_json(score: &Score) -> Value {
    json!({
        "expectedCascades": score.cascades,
        "budgetViolations": score.violations,
        "highestPriority": score.highest_priority,
        "prioritySum": score.priority_sum,
        "pods": score.pods,
        "startedAtNs": score.started_at_ns.0,
    })
}

fn placement_json(gang_cluster: &GangCluster, placement: &[(PodId, Option<HostId>)]) -> Value {
    let each = placement.iter().map(|(pod, host)| {
        let node = host.map(|it| gang_cluster.cluster().host_name(it));
        json!({"pod": gang_cluster.pod_name(*pod), "node": node})
    });
    each.collect()
}

fn unit_json(gang_cluster: &GangCluster, id: UnitId) -> Value {
    let Some(unit) = gang_cluster.units().get(id) else {
        return Value::Null;
    };
    let pods = unit.pods().iter().map(|pod| {
        let host = gang_cluster
            .cluster()
            .pod(*pod)
            .and_then(lockkeeper_preemption::placement::Pod::host);
        let node = host.map(|it| gang_cluster.cluster().host_name(it));
        json!({"pod": gang_cluster.pod_name(*pod), "node": node})
    });
    json!({
        "unit": unit.name(),
        "kind": kind_name(unit.kind()),
        "priority": unit.priority(),
        "pods": pods.collect::<Vec<_>>(),
    })
}

fn budget_violations(gang_cluster: &GangCluster, breaks: &[(PodId, BudgetId)]) -> Value {
    let each = breaks.iter().map(
        |(pod, budget)| json!({"pod": gang_cluster.pod_name(*pod), "budget": gang_cluster.budget_name(*budget)}),
    );
    each.collect()
}

fn domain_json(
    gang_cluster: &GangCluster,
    host: Option<HostId>,
    reason: &InfeasibleReason,
) -> Value {
    let node = host.map(|it| gang_cluster.cluster().host_name(it));
    json!({"node": node, "why": infeasible_json(gang_cluster, reason)})
}

fn infeasible_json(gang_cluster: &GangCluster, why: &InfeasibleReason) -> Value {
    let cluster = gang_cluster.cluster();
    match why {
        InfeasibleReason::Rejected(rejection) => match rejection {
            FilterRejection::NodeNotFound => json!({"reason": "noSuchNode"}),
            FilterRejection::Unschedulable => json!({"reason": "unschedulable"}),
            FilterRejection::SelectorMismatch => json!({"reason": "notSelected"}),
            FilterRejection::UntoleratedTaint { key } => {
                json!({"reason": "tainted", "taint": cluster.symbols().text(*key)})
            }
            FilterRejection::InsufficientAllocatable {
                resource,
                requested,
                allocatable,
            } => json!({
                "reason": "tooSmall",
                "resource": cluster.resource_name(*resource),
                "requested": requested.get(),
                "allocatable": allocatable.get(),
            }),
            _ => json!({"reason": "rejectedByFilter"}),
        },
        InfeasibleReason::RejectedByPods(rejection) => pods_json(gang_cluster, *rejection),
        InfeasibleReason::NoLowerPriority => json!({"reason": "noLowerPriorityPods"}),
        InfeasibleReason::InsufficientResources { resources: short } => {
            let names = short.iter().map(|it| cluster.resource_name(*it));
            json!({"reason": "noRoom", "short": names.collect::<Vec<_>>()})
        }
        InfeasibleReason::NoPlacement {
            pod,
            placed,
            count_min,
        } => json!({
            "reason": "noPlacement",
            "pod": pod.map(|it| gang_cluster.pod_name(it)),
            "placed": placed,
            "minCount": count_min,
        }),
        _ => json!({"reason": "noBlockingPods"}),
    }
}

fn pods_json(gang_cluster: &GangCluster, rejection: InterPodRejection) -> Value {
    let text = |key| gang_cluster.cluster().symbols().text(key);
    match rejection {
        InterPodRejection::MissingTopologyKey { key } => {
            json!({"reason": "noTopologyKey", "topologyKey": text(key)})
        }
        InterPodRejection::TopologySpread { key } => {
            json!({"reason": "topologySpread", "topologyKey": text(key)})
        }
        InterPodRejection::Affinity => json!({"reason": "podAffinity"}),
        InterPodRejection::AntiAffinity => json!({"reason": "podAntiAffinity"}),
        _ => json!({"reason": "existingPodAntiAffinity"}),
    }
}

fn steps_json(gang_cluster: &GangCluster, steps: &[GangStep]) -> Value {
    steps.iter().map(|it| step_json(gang_cluster, it)).collect()
}

fn step_json(gang_cluster: &GangCluster, step: &GangStep) -> Value {
    let node = |host: &HostId| gang_cluster.cluster().host_name(*host).to_owned();
    let name = |id: &UnitId| gang_cluster.units().get(*id).map(|it| it.name().to_owned());
    match step {
        GangStep::Pod { pod } => json!({"step": "pod", "pod": gang_cluster.pod_name(*pod)}),
        GangStep::NominationStands => json!({"step": "stands"}),
        GangStep::NominationDropped { pod, host, reason } => json!({
            "step": "dropped",
            "pod": gang_cluster.pod_name(*pod),
            "node": node(host),
            "why": infeasible_json(gang_cluster, reason),
        }),
        GangStep::RetriedDomain => json!({"step": "again"}),
        GangStep::DoesNotFit => json!({"step": "noRoom"}),
        GangStep::Domain { host } => json!({"step": "domain", "node": host.as_ref().map(node)}),
        GangStep::Infeasible { reason } => {
            json!({"step": "infeasible", "why": infeasible_json(gang_cluster, reason)})
        }
        GangStep::Placed { placement: it } => {
            json!({"step": "placed", "placement": placement_json(gang_cluster, it)})
        }
        GangStep::PlacedAgain { placement: it } => {
            json!({"step": "placedAnew", "placement": placement_json(gang_cluster, it)})
        }
        GangStep::Protected {
            unit,
            breaks: broken,
        } => json!({
            "step": "protected",
            "unit": name(unit),
            "breaks": budget_violations(gang_cluster, broken),
        }),
        GangStep::CutoffTried {
            max_priority: most,
            is_enough,
        } => {
            json!({"step": "tried", "upToPriority": most, "isEnough": is_enough})
        }
        GangStep::CutoffFound { max_priority: most } => {
            json!({"step": "bound", "upToPriority": most})
        }
        GangStep::Reprieved { unit, by_budget } => {
            json!({"step": "reprieved", "unit": name(unit), "byBudget": by_budget})
        }
        GangStep::NotReprieved {
            unit,
            host,
            conflict,
        } => {
            let (name, node) = (name(unit), node(host));
            match conflict {
                Conflict::Resource(resource) => {
                    let short = gang_cluster.cluster().resource_name(*resource);
                    json!({"step": "taken", "unit": name, "node": node, "short": short})
                }
                Conflict::Pods(rejection) => {
                    let why = pods_json(gang_cluster, *rejection);
                    json!({"step": "taken", "unit": name, "node": node, "why": why})
                }
                _ => json!({"step": "taken", "unit": name, "node": node}),
            }
        }
        GangStep::Scored { score: it } => json!({"step": "scored", "score": score_json(it)}),
        GangStep::Chosen { host } => json!({"step": "chosen", "node": host.as_ref().map(node)}),
        _ => Value::Null,
    }
}

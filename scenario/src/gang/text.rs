//! Prints the result of a scenario of pods and pod groups as text.

use super::answer::ScenarioAnswer;
use super::build::LoadedGangScenario;
use super::scheduler_message::scheduler_message;
use lockkeeper_cluster_state::inter_pod_text::inter_pod_predicate;
use lockkeeper_preemption::gang::{
    Conflict, DryRun, GangCluster, GangDecision, GangOutcome, GangPlan, GangStep, IneligibleReason,
    InfeasibleReason, PreemptionUnitKind, SchedulerCompatibility, Score,
};
use lockkeeper_preemption::placement::{FilterRejection, PodPreemption};
use lockkeeper_preemption::{BudgetId, HostId, PodId, UnitId};
use std::fmt::{self, Write};

/// Writes a result as text.
///
/// # Errors
///
/// The writer fails.
pub fn write_text(
    out: &mut impl Write,
    loaded: &LoadedGangScenario,
    answer: &ScenarioAnswer,
) -> fmt::Result {
    let gang_cluster = &loaded.gang_cluster;
    match answer {
        ScenarioAnswer::Decision(it, trace) => {
            write_decision(out, loaded, it)?;
            write_steps(out, gang_cluster, trace.steps())
        }
        ScenarioAnswer::DryRun(it, trace) => {
            write_dry_run(out, gang_cluster, it)?;
            write_steps(out, gang_cluster, trace.steps())
        }
        ScenarioAnswer::MayPreempt(Ok(())) => writeln!(out, "it may preempt"),
        ScenarioAnswer::MayPreempt(Err(it)) => {
            writeln!(out, "it may not preempt: {}", ineligible_text(*it))
        }
        ScenarioAnswer::Policy(PodPreemption::Never) => writeln!(out, "it never preempts"),
        ScenarioAnswer::Policy(_) => writeln!(out, "it preempts pods of lower priority"),
        ScenarioAnswer::Priorities {
            pod,
            scheduling,
            preemption,
        } => writeln!(
            out,
            "{} is scheduled with priority {scheduling} and preempted by priority {preemption}",
            gang_cluster.pod_name(*pod)
        ),
        ScenarioAnswer::Units(units) => {
            writeln!(out, "Disruption units, the most important first")?;
            for id in units {
                writeln!(out, "  {}", unit_text(gang_cluster, *id))?;
            }
            Ok(())
        }
        ScenarioAnswer::Budgets(victims) if victims.is_empty() => {
            writeln!(out, "no victims, so no disruption budget is violated")
        }
        ScenarioAnswer::Budgets(victims) => {
            for (at, victim) in victims.iter().enumerate() {
                match victim.as_slice() {
                    [] => writeln!(out, "victim {at} violates no disruption budget")?,
                    broken => writeln!(
                        out,
                        "victim {at} violates {}",
                        budget_violations(gang_cluster, broken)
                    )?,
                }
            }
            Ok(())
        }
        ScenarioAnswer::IsMoreImportant(true) => writeln!(out, "the first is more important"),
        ScenarioAnswer::IsMoreImportant(false) => writeln!(out, "the first is not more important"),
    }
}

fn outcome_text(outcome: &GangOutcome) -> String {
    match outcome {
        GangOutcome::Fits { .. } => "fits without preemption".to_owned(),
        GangOutcome::Preempt(plan) => match plan.victims.len() {
            0 => "fits without victims".to_owned(),
            victims => format!(
                "fits after preempting {}",
                count_noun(victims, "disruption unit", "disruption units")
            ),
        },
        GangOutcome::AwaitingVictims { .. } => {
            "waits for the termination of its earlier victims".to_owned()
        }
        GangOutcome::Ineligible(it) => format!("may not preempt: {}", ineligible_text(*it)),
        GangOutcome::Infeasible { .. } => {
            "does not fit, even after preempting every candidate".to_owned()
        }
    }
}

fn write_decision(
    out: &mut impl Write,
    loaded: &LoadedGangScenario,
    decision: &GangDecision,
) -> fmt::Result {
    let gang_cluster = &loaded.gang_cluster;
    let first = loaded.pods.first();
    let (name, what, priority) = match (loaded.group, first) {
        (Some(group), _) => (
            gang_cluster.group_name(group).to_owned(),
            count_noun(loaded.pods.len(), "pending pod", "pending pods"),
            gang_cluster.workloads().group_priority(group),
        ),
        (None, Some(pod)) => (
            gang_cluster.pod_name(*pod),
            "a pod".to_owned(),
            gang_cluster.workloads().scheduling_priority(*pod),
        ),
        (None, None) => return writeln!(out, "no preemptor"),
    };
    let verdict = outcome_text(&decision.outcome);
    writeln!(out, "{name} ({what}, priority {priority}) {verdict}")?;
    match &decision.outcome {
        GangOutcome::Fits { placement: it } | GangOutcome::AwaitingVictims { placement: it } => {
            write_placement(out, gang_cluster, it)?;
        }
        GangOutcome::Preempt(it) => write_plan(out, gang_cluster, it)?,
        GangOutcome::Ineligible(_) => {}
        GangOutcome::Infeasible { domains } => {
            for (host, domain) in domains {
                writeln!(
                    out,
                    "  {}: {}",
                    domain_text(gang_cluster, *host),
                    infeasible_text(gang_cluster, domain)
                )?;
            }
        }
    }
    if let Some(it) = &decision.dropped {
        let node = gang_cluster.cluster().host_name(it.host);
        let (pod, why) = (
            gang_cluster.pod_name(it.pod),
            dropped_nomination(gang_cluster, &it.reason),
        );
        writeln!(
            out,
            "  Its earlier nomination is dropped: {pod} no longer fits on {node}: {why}"
        )?;
    }
    if !decision.pods_not_matching_priority.is_empty() {
        let names: Vec<String> = decision
            .pods_not_matching_priority
            .iter()
            .map(|it| gang_cluster.pod_name(*it))
            .collect();
        writeln!(out, "  PodsNotMatchingPriority: {}", names.join(", "))?;
    }
    if gang_cluster.options().compatibility == SchedulerCompatibility::KubeScheduler {
        let message = scheduler_message(gang_cluster, loaded.group.is_some(), &decision.outcome);
        writeln!(out, "  kube-scheduler message: {message}")?;
    }
    Ok(())
}

fn write_dry_run(out: &mut impl Write, gang_cluster: &GangCluster, run: &DryRun) -> fmt::Result {
    let candidates = count_noun(run.candidates.len(), "candidate node", "candidate nodes");
    writeln!(out, "{candidates}")?;
    for candidate in &run.candidates {
        writeln!(out, "\n{}", domain_text(gang_cluster, candidate.host))?;
        write_plan(out, gang_cluster, candidate)?;
    }
    for (host, reason) in &run.infeasible {
        writeln!(
            out,
            "\n{}: {}",
            domain_text(gang_cluster, *host),
            infeasible_text(gang_cluster, reason)
        )?;
    }
    Ok(())
}

fn count_noun(number: usize, one: &str, more: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    }
}

fn ineligible_text(reason: IneligibleReason) -> &'static str {
    match reason {
        IneligibleReason::PolicyNever => "its preemption policy is Never",
        _ => "one of its victims is still terminating on the nominated node",
    }
}

fn write_plan(out: &mut impl Write, gang_cluster: &GangCluster, plan: &GangPlan) -> fmt::Result {
    write_placement(out, gang_cluster, &plan.placement)?;
    if plan.victims.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nVictims")?;
    for id in &plan.victims {
        writeln!(out, "  {}", unit_text(gang_cluster, *id))?;
    }
    writeln!(
        out,
        "  Priority cutoff: units above priority {} are not preempted.",
        plan.max_priority
    )?;
    if plan.violations > 0 {
        let pods = count_noun(plan.violations as usize, "victim pod", "victim pods");
        writeln!(out, "  Disruption budgets are violated for {pods}.")?;
    }
    Ok(())
}

fn write_placement(
    out: &mut impl Write,
    gang_cluster: &GangCluster,
    placement: &[(PodId, Option<HostId>)],
) -> fmt::Result {
    for (pod, host) in placement {
        let pod = gang_cluster.pod_name(*pod);
        match host {
            Some(host) => writeln!(
                out,
                "  {pod} is placed on {}",
                gang_cluster.cluster().host_name(*host)
            )?,
            None => writeln!(
                out,
                "  {pod} is not placed; the gang has enough pods without it"
            )?,
        }
    }
    Ok(())
}

fn unit_text(gang_cluster: &GangCluster, id: UnitId) -> String {
    let Some(unit) = gang_cluster.units().get(id) else {
        return "a deleted unit".to_owned();
    };
    let mut hosts: Vec<&str> = Vec::new();
    for pod in unit.pods() {
        let host = gang_cluster
            .cluster()
            .pod(*pod)
            .and_then(lockkeeper_preemption::placement::Pod::host);
        let name = host.map_or("", |it| gang_cluster.cluster().host_name(it));
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    let what = match (unit.kind(), unit.group()) {
        (PreemptionUnitKind::Pod, _) => "pod".to_owned(),
        (_, None) => "pod of a group".to_owned(),
        (PreemptionUnitKind::Composite, _) => {
            format!(
                "composite group, {}",
                count_noun(unit.pods().len(), "pod", "pods")
            )
        }
        _ => format!("group, {}", count_noun(unit.pods().len(), "pod", "pods")),
    };
    let (name, priority) = (unit.name(), unit.priority());
    format!(
        "{name} ({what}, priority {priority}) on {}",
        hosts.join(", ")
    )
}

fn budget_violations(gang_cluster: &GangCluster, breaks: &[(PodId, BudgetId)]) -> String {
    let each = breaks.iter().map(|(pod, budget)| {
        format!(
            "{} by {}",
            gang_cluster.budget_name(*budget),
            gang_cluster.pod_name(*pod)
        )
    });
    each.collect::<Vec<_>>().join(", ")
}

fn domain_text(gang_cluster: &GangCluster, host: Option<HostId>) -> String {
    match host {
        Some(host) => format!("node {}", gang_cluster.cluster().host_name(host)),
        None => "the cluster".to_owned(),
    }
}

fn infeasible_text(gang_cluster: &GangCluster, why: &InfeasibleReason) -> String {
    let cluster = gang_cluster.cluster();
    match why {
        InfeasibleReason::Rejected(rejection) => match rejection {
            FilterRejection::NodeNotFound => "the node does not exist".to_owned(),
            FilterRejection::Unschedulable => "the node is cordoned".to_owned(),
            FilterRejection::SelectorMismatch => {
                "the node does not match the node selector or affinity".to_owned()
            }
            FilterRejection::UntoleratedTaint { key } => {
                let key = cluster.symbols().text(*key);
                format!("the taint {key} is not tolerated")
            }
            FilterRejection::InsufficientAllocatable {
                resource,
                requested,
                allocatable,
            } => format!(
                "{allocatable} of {} is allocatable, and {requested} is requested",
                cluster.resource_name(*resource)
            ),
            _ => "a filter rejects the node".to_owned(),
        },
        InfeasibleReason::RejectedByPods(rejection) => {
            let (predicate, _) = inter_pod_predicate(gang_cluster, *rejection);
            format!("the node {predicate}, even after preempting every candidate")
        }
        InfeasibleReason::NoLowerPriority => {
            "no preemption victims: no unit has a lower priority".to_owned()
        }
        InfeasibleReason::InsufficientResources { resources: short } => {
            let names: Vec<&str> = short.iter().map(|it| cluster.resource_name(*it)).collect();
            format!(
                "insufficient {}, even after preempting every candidate",
                names.join(", ")
            )
        }
        InfeasibleReason::NoPlacement {
            pod,
            placed,
            count_min,
        } => {
            let pod = pod.map(|it| gang_cluster.pod_name(it)).unwrap_or_default();
            format!(
                "{placed} of at least {count_min} pods can be placed after preempting every candidate; \
                 {pod} is the first that cannot"
            )
        }
        _ => "preemption does not help: no candidate uses the resources it needs".to_owned(),
    }
}

/// Why the nominated node of a pod is no longer suitable.
fn dropped_nomination(gang_cluster: &GangCluster, reason: &InfeasibleReason) -> String {
    let InfeasibleReason::InsufficientResources { resources: short } = reason else {
        return infeasible_text(gang_cluster, reason);
    };
    let names: Vec<&str> = short
        .iter()
        .map(|it| gang_cluster.cluster().resource_name(*it))
        .collect();
    format!(
        "insufficient {}, even after its victims terminate",
        names.join(", ")
    )
}

fn score_text(score: &Score) -> String {
    format!(
        "{}, {} violating budgets, highest priority {}, sum of priorities {}, {}",
        count_noun(
            score.cascades as usize,
            "cascade expected",
            "cascades expected"
        ),
        count_noun(score.violations as usize, "pod", "pods"),
        score.highest_priority,
        score.priority_sum,
        count_noun(score.pods as usize, "pod", "pods"),
    )
}

fn write_steps(
    out: &mut impl Write,
    gang_cluster: &GangCluster,
    steps: &[GangStep],
) -> fmt::Result {
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTrace")?;
    for step in steps {
        let text = step_text(gang_cluster, step);
        match step {
            GangStep::Domain { .. }
            | GangStep::RetriedDomain
            | GangStep::Chosen { .. }
            | GangStep::Pod { .. }
            | GangStep::DoesNotFit => {
                writeln!(out, "  {text}")?;
            }
            _ => writeln!(out, "    {text}")?,
        }
    }
    Ok(())
}

fn unit_name(gang_cluster: &GangCluster, id: UnitId) -> String {
    let unit = gang_cluster.units().get(id);
    unit.map(|unit| unit.name().to_owned()).unwrap_or_default()
}

fn placements_text(gang_cluster: &GangCluster, placement: &[(PodId, Option<HostId>)]) -> String {
    let node = |host: &HostId| gang_cluster.cluster().host_name(*host).to_owned();
    let each = placement.iter().map(|(pod, host)| {
        let host = host.as_ref().map_or_else(|| "nowhere".to_owned(), node);
        format!("{} to {host}", gang_cluster.pod_name(*pod))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn step_text(gang_cluster: &GangCluster, step: &GangStep) -> String {
    let node = |host: &HostId| gang_cluster.cluster().host_name(*host).to_owned();
    let name = |id: &UnitId| unit_name(gang_cluster, *id);
    let places = |placement: &[(PodId, Option<HostId>)]| placements_text(gang_cluster, placement);
    match step {
        GangStep::Pod { pod } => format!("considering {}", gang_cluster.pod_name(*pod)),
        GangStep::NominationStands => {
            "the nominated nodes are still suitable, so there are no further victims".to_owned()
        }
        GangStep::NominationDropped { pod, host, reason } => format!(
            "{} no longer fits on {}: {}",
            gang_cluster.pod_name(*pod),
            node(host),
            dropped_nomination(gang_cluster, reason)
        ),
        GangStep::RetriedDomain => "retried with the other placement strategy".to_owned(),
        GangStep::DoesNotFit => "it does not fit without preemption".to_owned(),
        GangStep::Domain { host } => domain_text(gang_cluster, *host),
        GangStep::Infeasible { reason } => {
            format!("infeasible: {}", infeasible_text(gang_cluster, reason))
        }
        GangStep::Placed { placement } => {
            format!(
                "placed after removing every candidate: {}",
                places(placement)
            )
        }
        GangStep::PlacedAgain { placement } => format!("placed again: {}", places(placement)),
        GangStep::Protected {
            unit,
            breaks: broken,
        } => format!(
            "{} is protected: {}",
            name(unit),
            budget_violations(gang_cluster, broken)
        ),
        GangStep::CutoffTried {
            max_priority: most,
            is_enough,
        } => match is_enough {
            true => format!("preempting all candidates up to priority {most} is enough"),
            false => format!("preempting all candidates up to priority {most} is not enough"),
        },
        GangStep::CutoffFound { max_priority: most } => {
            format!("candidates above priority {most} are not needed")
        }
        GangStep::Reprieved { unit, by_budget } => match by_budget {
            true => format!(
                "{} is reprieved; a disruption budget protects it",
                name(unit)
            ),
            false => format!("{} is reprieved; the preemptor fits without it", name(unit)),
        },
        GangStep::NotReprieved {
            unit,
            host,
            conflict,
        } => {
            let why = conflict_text(gang_cluster, &node(host), *conflict);
            format!("{} is a victim; {why}", name(unit))
        }
        GangStep::Scored { score: it } => score_text(it),
        GangStep::Chosen { host } => format!("{} is selected", domain_text(gang_cluster, *host)),
        _ => String::new(),
    }
}

/// Why a unit cannot stay beside the preemptor on a node.
fn conflict_text(gang_cluster: &GangCluster, node: &str, conflict: Conflict) -> String {
    match conflict {
        Conflict::Resource(resource) => {
            let resource = gang_cluster.cluster().resource_name(resource);
            format!("insufficient {resource} on {node} for both")
        }
        Conflict::Pods(rejection) => {
            let (predicate, _) = inter_pod_predicate(gang_cluster, rejection);
            format!("with it, {node} {predicate}")
        }
        _ => format!("there is no room for both on {node}"),
    }
}

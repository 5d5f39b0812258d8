//! Answers for a person who asks why.

use super::answer::Answer;
use super::build::Loaded;
use super::message::message;
use lockkeeper_preemption::gang::{
    Compatibility, Decision, DryRun, Ineligible, Kind, Outcome, Plan, Score, Step, Why, World,
};
use lockkeeper_preemption::placement::{PodPreemption, Refusal};
use lockkeeper_preemption::{BudgetId, HostId, PodId, UnitId};
use std::fmt::{self, Write};

/// Tells an answer.
///
/// # Errors
///
/// When the writer fails.
pub fn tell(out: &mut impl Write, loaded: &Loaded, answer: &Answer) -> fmt::Result {
    let world = &loaded.world;
    match answer {
        Answer::Decision(it, trace) => {
            decision(out, loaded, it)?;
            steps(out, world, trace.steps())
        }
        Answer::DryRun(it, trace) => {
            dry_run(out, world, it)?;
            steps(out, world, trace.steps())
        }
        Answer::MayPreempt(Ok(())) => writeln!(out, "it may preempt"),
        Answer::MayPreempt(Err(it)) => writeln!(out, "it may not preempt: {}", ineligible(*it)),
        Answer::Policy(PodPreemption::Never) => writeln!(out, "it never preempts"),
        Answer::Policy(_) => writeln!(out, "it preempts who is of a lower priority"),
        Answer::Priorities {
            pod,
            scheduling,
            preemption,
        } => writeln!(
            out,
            "{} is scheduled with priority {scheduling} and preempted by priority {preemption}",
            world.pod_name(*pod)
        ),
        Answer::Units(units) => {
            writeln!(out, "What is preempted as one, the most important first")?;
            for id in units {
                writeln!(out, "  {}", unit(world, *id))?;
            }
            Ok(())
        }
        Answer::Budgets(victims) if victims.is_empty() => {
            writeln!(out, "nobody is to go, so no budget is broken")
        }
        Answer::Budgets(victims) => {
            for (at, it) in victims.iter().enumerate() {
                match it.as_slice() {
                    [] => writeln!(out, "victim {at} breaks no budget")?,
                    broken => writeln!(out, "victim {at} breaks {}", breaks(world, broken))?,
                }
            }
            Ok(())
        }
        Answer::IsMoreImportant(true) => writeln!(out, "the first is more important"),
        Answer::IsMoreImportant(false) => writeln!(out, "the first is not more important"),
    }
}

fn decision(out: &mut impl Write, loaded: &Loaded, decision: &Decision) -> fmt::Result {
    let world = &loaded.world;
    let first = loaded.pods.first();
    let (name, what, priority) = match (loaded.group, first) {
        (Some(group), _) => (
            world.group_name(group).to_owned(),
            count(loaded.pods.len(), "pod waits", "pods wait"),
            world.group_priority(group),
        ),
        (None, Some(pod)) => (
            world.pod_name(*pod),
            "a pod".to_owned(),
            world.scheduling_priority(*pod),
        ),
        (None, None) => return writeln!(out, "nobody wants in"),
    };
    let verdict = match &decision.outcome {
        Outcome::Fits { .. } => "fits, and nobody has to go".to_owned(),
        Outcome::Preempt(plan) => match plan.victims.len() {
            0 => "has a place, and nobody is in its way".to_owned(),
            victims => format!("fits once {} gone", count(victims, "unit is", "units are")),
        },
        Outcome::Waits { .. } => "waits for those that it preempted before to go".to_owned(),
        Outcome::Refused(it) => format!("may not preempt: {}", ineligible(*it)),
        Outcome::Infeasible { .. } => "does not fit, whoever may go".to_owned(),
    };
    writeln!(out, "{name} ({what}, priority {priority}) {verdict}")?;
    match &decision.outcome {
        Outcome::Fits { placement: it } | Outcome::Waits { placement: it } => {
            placement(out, world, it)?;
        }
        Outcome::Preempt(it) => plan(out, world, it)?,
        Outcome::Refused(_) => {}
        Outcome::Infeasible { domains } => {
            for (host, it) in domains {
                writeln!(out, "  {}: {}", domain(world, *host), why(world, it))?;
            }
        }
    }
    if let Some(it) = &decision.dropped {
        let node = world.cluster().host_name(it.host);
        let (pod, why) = (world.pod_name(it.pod), lost(world, &it.why));
        writeln!(
            out,
            "  It was nominated before, but {pod} cannot go to {node} any more: {why}"
        )?;
    }
    if !decision.not_matching.is_empty() {
        let names: Vec<String> = decision
            .not_matching
            .iter()
            .map(|it| world.pod_name(*it))
            .collect();
        writeln!(out, "  PodsNotMatchingPriority: {}", names.join(", "))?;
    }
    if world.options().compatibility == Compatibility::KubeScheduler {
        let said = message(world, loaded.group.is_some(), &decision.outcome);
        writeln!(out, "  kube-scheduler says: {said}")?;
    }
    Ok(())
}

fn dry_run(out: &mut impl Write, world: &World, run: &DryRun) -> fmt::Result {
    let candidates = count(run.candidates.len(), "node will do", "nodes will do");
    writeln!(out, "{candidates}")?;
    for it in &run.candidates {
        writeln!(out, "\n{}", domain(world, it.host))?;
        plan(out, world, it)?;
    }
    for (host, it) in &run.infeasible {
        writeln!(out, "\n{}: {}", domain(world, *host), why(world, it))?;
    }
    Ok(())
}

fn count(number: usize, one: &str, more: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    }
}

fn ineligible(reason: Ineligible) -> &'static str {
    match reason {
        Ineligible::Never => "its preemption policy is Never",
        _ => "a pod that it preempted is still going, on the node it was nominated to",
    }
}

fn plan(out: &mut impl Write, world: &World, plan: &Plan) -> fmt::Result {
    placement(out, world, &plan.placement)?;
    if plan.victims.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWho has to go")?;
    for id in &plan.victims {
        writeln!(out, "  {}", unit(world, *id))?;
    }
    writeln!(out, "  Nobody above priority {} was asked to.", plan.most)?;
    if plan.violations > 0 {
        let pods = count(plan.violations as usize, "pod is", "pods are");
        writeln!(
            out,
            "  {pods} protected by a disruption budget that this breaks."
        )?;
    }
    Ok(())
}

fn placement(
    out: &mut impl Write,
    world: &World,
    placement: &[(PodId, Option<HostId>)],
) -> fmt::Result {
    for (pod, host) in placement {
        let pod = world.pod_name(*pod);
        match host {
            Some(host) => writeln!(out, "  {pod} goes to {}", world.cluster().host_name(*host))?,
            None => writeln!(out, "  {pod} has no place; the others do without it")?,
        }
    }
    Ok(())
}

fn unit(world: &World, id: UnitId) -> String {
    let Some(unit) = world.unit(id) else {
        return "a unit that is gone".to_owned();
    };
    let mut hosts: Vec<&str> = Vec::new();
    for pod in unit.pods() {
        let host = world
            .cluster()
            .pod(*pod)
            .and_then(lockkeeper_preemption::placement::Pod::host);
        let name = host.map_or("", |it| world.cluster().host_name(it));
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    let what = match (unit.kind(), unit.group()) {
        (Kind::Pod, _) => "pod".to_owned(),
        (_, None) => "pod of a group".to_owned(),
        (Kind::Composite, _) => {
            format!(
                "composite group, {}",
                count(unit.pods().len(), "pod", "pods")
            )
        }
        _ => format!("group, {}", count(unit.pods().len(), "pod", "pods")),
    };
    let (name, priority) = (unit.name(), unit.priority());
    format!(
        "{name} ({what}, priority {priority}) on {}",
        hosts.join(", ")
    )
}

fn breaks(world: &World, breaks: &[(PodId, BudgetId)]) -> String {
    let each = breaks
        .iter()
        .map(|(pod, budget)| format!("{} by {}", world.budget_name(*budget), world.pod_name(*pod)));
    each.collect::<Vec<_>>().join(", ")
}

fn domain(world: &World, host: Option<HostId>) -> String {
    match host {
        Some(host) => format!("node {}", world.cluster().host_name(host)),
        None => "the cluster".to_owned(),
    }
}

fn why(world: &World, why: &Why) -> String {
    let cluster = world.cluster();
    match why {
        Why::Refused(refusal) => match refusal {
            Refusal::Absent => "there is no such node".to_owned(),
            Refusal::Unschedulable => "it is cordoned".to_owned(),
            Refusal::Unselected => "it does not have the labels that are asked for".to_owned(),
            Refusal::Tainted { key } => {
                let key = cluster.words().text(*key);
                format!("its taint {key} is not tolerated")
            }
            Refusal::TooSmall {
                resource,
                asked,
                allocatable,
            } => format!(
                "it has {allocatable} of {} in all, and {asked} is asked for",
                cluster.resource_name(*resource)
            ),
            _ => "it is nothing for the pod".to_owned(),
        },
        Why::NoVictims => "nobody of a lower priority is there".to_owned(),
        Why::NoRoom { short } => {
            let names: Vec<&str> = short.iter().map(|it| cluster.resource_name(*it)).collect();
            format!(
                "too little of {}, even if all who may go are gone",
                names.join(", ")
            )
        }
        Why::NoPlacement {
            pod,
            placed,
            count_min,
        } => {
            let pod = pod.map(|it| world.pod_name(it)).unwrap_or_default();
            format!(
                "{placed} of at least {count_min} pods find a place, even if all who may go are \
                 gone; {pod} is the first that finds none"
            )
        }
        _ => "nobody is in the way there, so preemption does not help".to_owned(),
    }
}

/// Why a node that a pod was nominated to will not do.
fn lost(world: &World, reason: &Why) -> String {
    let Why::NoRoom { short } = reason else {
        return why(world, reason);
    };
    let names: Vec<&str> = short
        .iter()
        .map(|it| world.cluster().resource_name(*it))
        .collect();
    format!(
        "too little of {}, even when those that it preempted have gone",
        names.join(", ")
    )
}

fn score(score: &Score) -> String {
    format!(
        "{}, {} against a budget, highest priority {}, priorities {} in all, {}",
        count(
            score.cascades as usize,
            "cascade expected",
            "cascades expected"
        ),
        count(score.violations as usize, "pod", "pods"),
        score.highest,
        score.sum,
        count(score.pods as usize, "pod", "pods"),
    )
}

fn steps(out: &mut impl Write, world: &World, steps: &[Step]) -> fmt::Result {
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWhat was considered")?;
    for it in steps {
        let told = step(world, it);
        match it {
            Step::Domain { .. }
            | Step::Again
            | Step::Chosen { .. }
            | Step::Pod { .. }
            | Step::NoRoom => {
                writeln!(out, "  {told}")?;
            }
            _ => writeln!(out, "    {told}")?,
        }
    }
    Ok(())
}

fn step(world: &World, step: &Step) -> String {
    let node = |host: &HostId| world.cluster().host_name(*host).to_owned();
    let name = |id: &UnitId| {
        world
            .unit(*id)
            .map(|it| it.name().to_owned())
            .unwrap_or_default()
    };
    let places = |placement: &[(PodId, Option<HostId>)]| {
        let each = placement.iter().map(|(pod, host)| {
            let host = host.as_ref().map_or_else(|| "nowhere".to_owned(), node);
            format!("{} to {host}", world.pod_name(*pod))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    match step {
        Step::Pod { pod } => format!("{} is next", world.pod_name(*pod)),
        Step::Stands => {
            "the nodes that it was nominated to will do, so nobody else goes".to_owned()
        }
        Step::Dropped {
            pod,
            host,
            why: reason,
        } => format!(
            "{} cannot go to {} any more: {}",
            world.pod_name(*pod),
            node(host),
            lost(world, reason)
        ),
        Step::Again => "the same, with the other way to place pods".to_owned(),
        Step::NoRoom => "it does not fit as things are".to_owned(),
        Step::Domain { host } => domain(world, *host),
        Step::Infeasible { why: reason } => format!("infeasible: {}", why(world, reason)),
        Step::Placed { placement } => {
            format!(
                "with all who may go gone it is placed: {}",
                places(placement)
            )
        }
        Step::PlacedAnew { placement } => format!("it is placed anew: {}", places(placement)),
        Step::Protected {
            unit,
            breaks: broken,
        } => format!("{} is protected: {}", name(unit), breaks(world, broken)),
        Step::Tried { most, is_enough } => match is_enough {
            true => format!("it is enough that all up to priority {most} go"),
            false => format!("it is not enough that all up to priority {most} go"),
        },
        Step::Bound { most } => format!("nobody above priority {most} has to go"),
        Step::Reprieved { unit, by_budget } => match by_budget {
            true => format!("{} stays, since a budget protects it", name(unit)),
            false => format!("{} stays, since it is not in the way", name(unit)),
        },
        Step::Taken {
            unit,
            host,
            resource,
        } => format!(
            "{} goes, since there is too little {} on {} for both",
            name(unit),
            world.cluster().resource_name(*resource),
            node(host)
        ),
        Step::Scored { score: it } => score(it),
        Step::Chosen { host } => format!("{} is the best", domain(world, *host)),
        _ => String::new(),
    }
}

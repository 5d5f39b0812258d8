//! Prints decisions with their traces as text.

use lockkeeper_cluster_state::decision_text::{
    flavor_amount, flavor_verdict_text, pod_set_names, protection_text,
};
use lockkeeper_preemption::{
    Assignment, CandidateVerdict, Decision, Entry, FlavorResource, Mode, Nomination,
    PreemptionReason, QueueVerdict, SkipReason, State, Step, Trace, Victim, WorkloadId,
};
use std::fmt::{self, Write};

/// Writes the nomination of a workload with its trace.
///
/// # Errors
///
/// The writer fails.
pub fn write_nomination(
    out: &mut impl Write,
    state: &State,
    workload: &str,
    nomination: &Nomination,
) -> fmt::Result {
    let victims = nomination.victims.len();
    let verdict = match nomination.assignment.mode {
        Mode::Fit => "fits: it would be admitted".to_owned(),
        Mode::Preempt if victims == 0 => {
            "waits (WaitingForQuota): it requires preemption, and there are no candidate workloads"
                .to_owned()
        }
        Mode::Preempt => format!(
            "fits after preempting {}",
            count_noun(victims, "workload", "workloads")
        ),
        Mode::NoFit => "does not fit".to_owned(),
    };
    write_heading(out, state, workload, &verdict)?;
    write_flavors(out, state, workload, &nomination.assignment)?;
    write_victims(out, state, &nomination.victims)?;
    write_steps(out, state, workload, &nomination.trace)
}

/// Writes the decision on an entry of a cycle with its trace.
///
/// # Errors
///
/// The writer fails.
pub fn write_entry(out: &mut impl Write, state: &State, entry: &Entry) -> fmt::Result {
    let workload = state.workload_name(entry.workload);
    let (verdict, victims) = match &entry.decision {
        Decision::Admit => ("is admitted".to_owned(), &[][..]),
        Decision::Preempt(victims) => (
            format!(
                "preempts {} and waits for the release of their quota (WaitingForPreemptedWorkloads)",
                count_noun(victims.len(), "workload", "workloads")
            ),
            victims.as_slice(),
        ),
        Decision::Skip(SkipReason::NoLongerFits) => (
            "is skipped: it lost the quota to workloads ahead of it in this cycle".to_owned(),
            &[][..],
        ),
        Decision::Skip(SkipReason::OverlappingVictims) => (
            "is skipped: its victims overlap with those of workloads ahead of it in this cycle"
                .to_owned(),
            &[][..],
        ),
        Decision::Skip(SkipReason::VictimLimit) => (
            "is skipped: the limit on preemptions per cycle is reached".to_owned(),
            &[][..],
        ),
        Decision::Skip(SkipReason::BorrowingGate) => (
            "is skipped: borrowing is closed in its cohort for the rest of this cycle".to_owned(),
            &[][..],
        ),
        Decision::DeferredFit => (
            "waits for workloads preempted for others to release quota, and fits then".to_owned(),
            &[][..],
        ),
        Decision::NoCandidates => (
            "waits (WaitingForQuota): it requires preemption, and there are no candidate workloads"
                .to_owned(),
            &[][..],
        ),
        Decision::NoFit => ("does not fit".to_owned(), &[][..]),
    };
    write_heading(out, state, workload, &verdict)?;
    write_flavors(out, state, workload, entry.assignment())?;
    write_victims(out, state, victims)?;
    write_steps(out, state, workload, &entry.trace)
}

fn count_noun(number: usize, one: &str, more: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    }
}

fn write_heading(
    out: &mut impl Write,
    state: &State,
    workload: &str,
    verdict: &str,
) -> fmt::Result {
    let id = state.workload(workload);
    let queue = id.and_then(|id| state.workload_view(id).queue());
    let queue = queue.map_or("", |id| state.node_view(id).name());
    let priority = id.map_or(0, |id| state.workload_view(id).priority());
    writeln!(
        out,
        "{workload} (ClusterQueue {queue}, priority {priority}) {verdict}"
    )
}

fn write_flavors(
    out: &mut impl Write,
    state: &State,
    workload: &str,
    assignment: &Assignment,
) -> fmt::Result {
    let names = pod_set_names(state, workload);
    for pod_set in &assignment.pod_sets {
        let name = names.get(pod_set.pod_set).copied().unwrap_or_default();
        write!(
            out,
            "  {name}, {}:",
            count_noun(usize::try_from(pod_set.count).unwrap_or(0), "pod", "pods")
        )?;
        if pod_set.flavors.is_empty() {
            writeln!(out, " no flavor")?;
            continue;
        }
        for (at, flavor) in pod_set.flavors.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let resource = state.resource_name(flavor.resource);
            write!(
                out,
                "{comma} {resource} of {}",
                state.flavor_name(flavor.flavor)
            )?;
            if flavor.borrowing_level > 0 {
                write!(out, " (borrowed)")?;
            }
            if flavor.mode == Mode::Preempt {
                write!(out, " (not free)")?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_victims(out: &mut impl Write, state: &State, victims: &[Victim]) -> fmt::Result {
    if victims.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nVictims")?;
    for victim in victims {
        let name = state.workload_name(victim.workload);
        let queue = state.workload_view(victim.workload).queue();
        let queue = queue.map_or("", |id| state.node_view(id).name());
        let priority = priority_text(state, victim.workload);
        let reason = victim.reason.as_str();
        let why = preemption_reason(victim.reason);
        writeln!(out, "  {name} ({queue}, {priority}): {why} ({reason})")?;
    }
    Ok(())
}

fn preemption_reason(reason: PreemptionReason) -> &'static str {
    match reason {
        PreemptionReason::InClusterQueue => {
            "it is in the same ClusterQueue, and withinClusterQueue allows it"
        }
        PreemptionReason::InCohortReclamation => "its ClusterQueue borrows quota that is reclaimed",
        PreemptionReason::InCohortReclaimWhileBorrowing => {
            "its ClusterQueue borrows, and borrowWithinCohort lets the preemptor borrow instead"
        }
        PreemptionReason::InCohortFairSharing => {
            "its ClusterQueue has the larger dominant share in the cohort"
        }
    }
}

fn write_steps(out: &mut impl Write, state: &State, workload: &str, trace: &Trace) -> fmt::Result {
    if trace.steps().is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTrace, in order")?;
    let names = pod_set_names(state, workload);
    for step in trace.steps() {
        write_step(out, state, &names, step)?;
    }
    Ok(())
}

fn write_step(out: &mut impl Write, state: &State, names: &[&str], step: &Step) -> fmt::Result {
    let name = |id| workload_label(state, id);
    match step {
        Step::Flavor {
            pod_set,
            flavor,
            verdict,
        } => {
            let pod_set = names.get(*pod_set).copied().unwrap_or_default();
            let verdict = flavor_verdict_text(state, verdict);
            let flavor = state.flavor_name(*flavor);
            writeln!(out, "  {pod_set} on flavor {flavor}: {verdict}")
        }
        Step::FewerPods { counts } => {
            let counts = counts.iter().enumerate().map(|(at, count)| {
                let pod_set = names.get(at).copied().unwrap_or_default();
                format!("{count} of {pod_set}")
            });
            let counts: Vec<String> = counts.collect();
            writeln!(out, "  with fewer pods, {}:", counts.join(", "))
        }
        Step::ResourceNotCovered { pod_set, resource } => {
            let pod_set = names.get(*pod_set).copied().unwrap_or_default();
            let resource = state.resource_name(*resource);
            writeln!(
                out,
                "  {pod_set}: requests {resource}, which its ClusterQueue does not cover (ResourceNotCovered)"
            )
        }
        Step::Search { needs } => {
            let needs: Vec<String> = needs
                .iter()
                .map(|of| flavor_resource_text(state, *of))
                .collect();
            writeln!(out, "  search for victims, for {}", needs.join(", "))
        }
        Step::CannotSucceed => writeln!(
            out,
            "    skipped: preempting every candidate would not release enough quota"
        ),
        Step::Attempt { may_borrow: true } => writeln!(out, "    with borrowing:"),
        Step::Attempt { may_borrow: false } => writeln!(out, "    within nominal quota:"),
        Step::Candidate {
            workload, verdict, ..
        } => {
            let verdict = candidate_verdict_text(*verdict);
            writeln!(out, "      {}: {verdict}", name(*workload))
        }
        Step::Queue { queue, verdict } => {
            let verdict = queue_verdict_text(*verdict);
            writeln!(
                out,
                "      queue {} {verdict}",
                state.node_view(*queue).name()
            )
        }
        Step::FilledBack { workload } => {
            writeln!(
                out,
                "      {}: reprieved, the preemptor fits without it",
                name(*workload)
            )
        }
        Step::SearchEnded { found: true } => writeln!(out, "    found"),
        Step::SearchEnded { found: false } => writeln!(
            out,
            "    not found: the candidates do not release enough quota"
        ),
        _ => write_limit_step(out, state, step),
    }
}

fn candidate_verdict_text(verdict: CandidateVerdict) -> &'static str {
    match verdict {
        CandidateVerdict::Selected => "selected",
        CandidateVerdict::NotNewer => "kept: of equal priority and not newer",
        CandidateVerdict::NotWhileBorrowing => {
            "kept, with the remaining candidates of its queue: the preemptor borrows"
        }
        CandidateVerdict::ShareTooLarge => {
            "kept: the preemptor's queue would have the larger share"
        }
        _ => "considered",
    }
}

fn queue_verdict_text(verdict: QueueVerdict) -> String {
    match verdict {
        QueueVerdict::NoLongerBorrows => {
            "keeps its other workloads: it no longer borrows".to_owned()
        }
        QueueVerdict::PriorityTooHigh => {
            "keeps its other workloads: their priority is too high".to_owned()
        }
        QueueVerdict::AboveThreshold { threshold_max } => {
            format!(
                "keeps its other workloads: their priority is above the threshold {threshold_max}"
            )
        }
        _ => "keeps its other workloads".to_owned(),
    }
}

/// Steps that are neither about quota nor about preemption policies.
fn write_limit_step(out: &mut impl Write, state: &State, step: &Step) -> fmt::Result {
    let name = |id| workload_label(state, id);
    match step {
        Step::MayNotPreempt => writeln!(
            out,
            "  no search: its preemptionPolicy is Never, or its ClusterQueue is elastic and the labels of its pods forbid preemption"
        ),
        Step::PreemptionDelayed { until_s } => writeln!(
            out,
            "  no search: it may preempt from second {until_s} on (preemption.limits.delaySeconds)"
        ),
        Step::Protected {
            workload,
            protection: why,
        } => {
            writeln!(
                out,
                "      {}: protected, {}",
                name(*workload),
                protection_text(*why)
            )
        }
        Step::QuotaHeld { preemptor, amounts } => {
            let amounts = amounts.iter().map(|(of, held)| {
                let flavor = state.flavor_name(of.flavor);
                format!("{} of {flavor}", flavor_amount(state, *of, *held))
            });
            let amounts: Vec<String> = amounts.collect();
            let amounts = if amounts.is_empty() {
                "nothing yet".to_owned()
            } else {
                amounts.join(", ")
            };
            writeln!(out, "  held for preemptor {}: {amounts}", name(*preemptor))
        }
        Step::Thresholds {
            within_max,
            reclaim_max,
        } => {
            let of = |(name, most): (&str, Option<i32>)| most.map(|it| format!("{name} {it}"));
            let both = [
                ("withinMaxPriorityThreshold", *within_max),
                ("reclaimMaxPriorityThreshold", *reclaim_max),
            ];
            let both: Vec<String> = both.into_iter().filter_map(of).collect();
            writeln!(out, "    candidates are limited by {}", both.join(" and "))
        }
        Step::DecisionRetained => writeln!(
            out,
            "  the earlier decision is kept: its other victims are being evicted"
        ),
        Step::Displaced { preemptor } => writeln!(
            out,
            "  uses quota held for {}, which has lower priority",
            name(*preemptor)
        ),
        Step::ExceedsVictimLimit {
            victims,
            victims_max,
        } => writeln!(
            out,
            "  {victims} preemptions are needed, and the limit per cycle is {victims_max}"
        ),
        Step::Backfilled { head, starts_by_s } => writeln!(
            out,
            "  starts ahead of {}, which waits until {starts_by_s}, and does not delay it (backfill)",
            name(*head)
        ),
        _ => Ok(()),
    }
}

fn workload_label(state: &State, workload: WorkloadId) -> String {
    let queue = state.workload_view(workload).queue();
    let queue = queue.map_or("", |id| state.node_view(id).name());
    format!(
        "{} ({queue}, {})",
        state.workload_name(workload),
        priority_text(state, workload)
    )
}

/// The priority of a candidate: its preemption priority is named if it differs.
fn priority_text(state: &State, workload: WorkloadId) -> String {
    let view = state.workload_view(workload);
    let (priority, preemption_priority) = (view.priority(), view.preemption_priority());
    if priority == preemption_priority {
        return format!("priority {priority}");
    }
    format!("priority {priority}, preemption priority {preemption_priority}")
}

fn flavor_resource_text(state: &State, of: FlavorResource) -> String {
    format!(
        "{} of {}",
        state.resource_name(of.resource),
        state.flavor_name(of.flavor)
    )
}

//! Prints an answer as text.

use crate::answer::{
    Answer, Candidate, Forecast, LevelAnswer, QuotaAnswer, StartBound, StartCondition,
};
use crate::change_text::write_changes;
use crate::count_text::{count, count_are};
use crate::eviction_text::write_eviction;
use crate::node_text::write_placement;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// The most candidates that are printed.
const CANDIDATES_MAX: usize = 10;

/// The most ClusterQueues of preemptors that are printed.
const PREEMPTORS_MAX: usize = 10;

/// Writes an answer.
///
/// # Errors
///
/// The writer fails.
pub fn write_answer(out: &mut impl Write, answer: &Answer) -> fmt::Result {
    let subject = &answer.workload;
    writeln!(
        out,
        "{}/{} {}",
        subject.namespace, subject.name, answer.summary
    )?;
    writeln!(out)?;
    write_subject(out, answer)?;
    if let Some(eviction) = &answer.eviction {
        write_eviction(out, eviction)?;
    }
    write_quota(out, answer)?;
    write_victims(out, answer)?;
    write_candidates(out, &answer.candidates)?;
    if let Some(placement) = &answer.placement {
        write_placement(out, placement)?;
    }
    write_changes(out, &answer.changes)?;
    write_preemptors(out, answer)?;
    write_history(out, answer)?;
    write_list(out, "Assumed", &answer.assumptions)?;
    write_list(out, "Not in the input", &answer.missing)?;
    write_list(out, "Not considered", &answer.unreadable)
}

fn write_subject(out: &mut impl Write, answer: &Answer) -> fmt::Result {
    let subject = &answer.workload;
    let mut field = |name: &str, value: &str| {
        if value.is_empty() {
            Ok(())
        } else {
            writeln!(out, "{name:<14} {value}")
        }
    };
    field("Job", subject.job.as_deref().unwrap_or_default())?;
    let queue = subject
        .path
        .as_deref()
        .or(subject.cluster_queue.as_deref())
        .unwrap_or_default();
    field("ClusterQueue", queue)?;
    field(
        "LocalQueue",
        subject.local_queue.as_deref().unwrap_or_default(),
    )?;
    let priority = if subject.priority == subject.preemption_priority {
        subject.priority.to_string()
    } else {
        format!(
            "{}, as a victim {}",
            subject.priority, subject.preemption_priority
        )
    };
    field("Priority", &priority)?;
    field("Reason", &answer.reason)?;
    if let Some(position) = &answer.position {
        let order = if position.may_overtake {
            "BestEffortFIFO: it is tried when those ahead cannot start"
        } else {
            "StrictFIFO: those ahead must start first"
        };
        let place = position.in_cluster_queue.saturating_add(1);
        let order = match position.in_cluster_queue {
            0 => String::new(),
            _ => format!(" ({order})"),
        };
        let text = format!("{place} of {} in its ClusterQueue{order}", position.pending);
        field("Position", &text)?;
        let more = position
            .in_cluster_queue
            .saturating_sub(position.ahead.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        field("Ahead", &format!("{}{more}", position.ahead.join(", ")))?;
    }
    if let Some(
        Forecast::Waits { admitted_before }
        | Forecast::Admitted { admitted_before }
        | Forecast::Preempts {
            admitted_before, ..
        },
    ) = &answer.forecast
        && *admitted_before > 0
    {
        field(
            "Before it",
            &format!("{} admitted now", count_are(*admitted_before)),
        )?;
    }
    if let Some(bound) = &answer.starts_by {
        field("Starts by", &start_bound_text(bound))?;
    }
    field("Message", &answer.message)
}

fn start_bound_text(bound: &StartBound) -> String {
    let event = match bound.unless {
        StartCondition::HigherPriorityArrives => "a workload of higher priority",
        StartCondition::WorkloadArrives => "another workload",
    };
    format!("{}, unless {event} arrives", bound.time)
}

fn write_quota(out: &mut impl Write, answer: &Answer) -> fmt::Result {
    if answer.quota.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nQuota")?;
    for quota in &answer.quota {
        write_quota_of(out, quota)?;
    }
    Ok(())
}

fn write_quota_of(out: &mut impl Write, quota: &QuotaAnswer) -> fmt::Result {
    let QuotaAnswer {
        flavor,
        resource,
        requested,
        free,
        ..
    } = quota;
    let short = match quota.short.as_str() {
        "0" => String::new(),
        short => format!("; {short} missing, limited by {}", quota.limited_by),
    };
    writeln!(
        out,
        "  {resource} of flavor {flavor}: {requested} requested, {free} free{short}"
    )?;
    for level in &quota.levels {
        write_level(out, level)?;
    }
    Ok(())
}

fn write_level(out: &mut impl Write, level: &LevelAnswer) -> fmt::Result {
    let LevelAnswer {
        kind,
        name,
        nominal,
        quota,
        used,
        free,
        ..
    } = level;
    let total = if quota == nominal {
        String::new()
    } else {
        format!(", {quota} with its members")
    };
    let borrowable = level
        .borrowable
        .as_deref()
        .map(|it| format!(", may borrow {it} more"));
    writeln!(
        out,
        "    {kind} {name}: {nominal} nominal{total}, {used} used, {free} free{}",
        borrowable.unwrap_or_default()
    )
}

fn write_victims(out: &mut impl Write, answer: &Answer) -> fmt::Result {
    if answer.victims.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWould preempt")?;
    for victim in &answer.victims {
        writeln!(
            out,
            "  {} (ClusterQueue {}, priority {}): {}",
            victim.workload, victim.cluster_queue, victim.preemption_priority, victim.reason
        )?;
    }
    Ok(())
}

fn write_candidates(out: &mut impl Write, candidates: &[Candidate]) -> fmt::Result {
    if candidates.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWorkloads with the missing quota")?;
    for it in candidates.iter().take(CANDIDATES_MAX) {
        let verdict = if it.may_be_preempted {
            ""
        } else {
            "not preempted: "
        };
        writeln!(
            out,
            "  {} (ClusterQueue {}, priority {}): {verdict}{}",
            it.workload, it.cluster_queue, it.preemption_priority, it.reason
        )?;
    }
    let mut rest: BTreeMap<&str, usize> = BTreeMap::new();
    for it in candidates.iter().skip(CANDIDATES_MAX) {
        let number = rest.entry(it.reason.as_str()).or_default();
        *number = number.saturating_add(1);
    }
    for (reason, number) in rest {
        writeln!(out, "  {number} more: {reason}")?;
    }
    Ok(())
}

fn write_preemptors(out: &mut impl Write, answer: &Answer) -> fmt::Result {
    if answer.preemptors.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nCould be preempted by a new workload of")?;
    for it in answer.preemptors.iter().take(PREEMPTORS_MAX) {
        let priority = match it.priority_min {
            None => "of any priority".to_owned(),
            Some(priority) => format!("of priority {priority} or higher"),
        };
        writeln!(
            out,
            "  ClusterQueue {}, {priority}: {}",
            it.cluster_queue, it.reason
        )?;
    }
    match answer.preemptors.len().saturating_sub(PREEMPTORS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "  {}", count(more, "more ClusterQueue")),
    }
}

fn write_history(out: &mut impl Write, answer: &Answer) -> fmt::Result {
    if answer.history.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nHistory")?;
    for it in &answer.history {
        writeln!(
            out,
            "  {} {} {}: {}",
            it.time, it.condition, it.reason, it.message
        )?;
    }
    Ok(())
}

fn write_list(out: &mut impl Write, title: &str, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

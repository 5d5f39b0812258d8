//! The summary of a timeline as text.

use super::event_loop::event_loop;
use super::job_trace::JobTrace;
use super::pods_ready_stats::PodsReadyStats;
use super::result::{Event, EventKind, Outcome, Timeline};
use super::utilization::utilization;
use std::fmt::{Result, Write};

/// Writes the outcome, the sums, the waits, the utilization of each quota and, for a livelock or a loop, the events that
/// repeat.
///
/// # Errors
///
/// Those of `out`.
pub fn write_summary(out: &mut impl Write, trace: &JobTrace, timeline: &Timeline) -> Result {
    let stats = &timeline.stats;
    let outcome = outcome_text(timeline);
    writeln!(out, "  outcome      {outcome}")?;
    writeln!(out, "  makespan     {} s", timeline.makespan_s)?;
    writeln!(out, "  cycles       {}", timeline.cycles)?;
    writeln!(
        out,
        "  jobs         {}, finished {}, never admitted {}",
        stats.jobs, stats.finished, stats.never_admitted
    )?;
    writeln!(out, "  admissions   {}", stats.admissions)?;
    if stats.backfilled > 0 {
        writeln!(out, "  backfilled   {}", stats.backfilled)?;
    }
    write!(out, "  preemptions  {}", stats.preemptions)?;
    for (at, (reason, count)) in stats.preemptions_by_reason.iter().enumerate() {
        let separator = if at == 0 { ": " } else { ", " };
        write!(out, "{separator}{reason} {count}")?;
    }
    writeln!(out)?;
    if let Some(pods_ready) = &stats.pods_ready {
        write_pods_ready(out, pods_ready)?;
    }
    writeln!(out, "  lost         {} s", stats.lost_seconds)?;
    let wait = &stats.wait;
    writeln!(
        out,
        "  wait         p50 {} s, p90 {} s, p95 {} s, p99 {} s, max {} s",
        wait.p50, wait.p90, wait.p95, wait.p99, wait.max
    )?;
    write_usage(out, trace, timeline)?;
    write_event_loop(out, timeline)
}

fn outcome_text(timeline: &Timeline) -> &'static str {
    let pods_ready = timeline.stats.pods_ready.as_ref();
    let has_deactivated = pods_ready.is_some_and(|it| it.deactivated > 0);
    match timeline.outcome {
        Outcome::Drained if has_deactivated => "drained: all jobs finished or were deactivated",
        Outcome::Drained => "drained: all jobs finished",
        Outcome::Stuck if pods_ready.is_some() => {
            "stuck: some jobs stay pending, or their pods are never ready"
        }
        Outcome::Stuck => "stuck: some jobs stay pending",
        Outcome::Livelock => "livelock: workloads preempt each other without end",
        Outcome::Loop if pods_ready.is_some_and(|it| it.requeues > 0) => {
            "loop: workloads preempt each other or are requeued without end, over time"
        }
        Outcome::Loop => "loop: workloads preempt each other without end, over time",
        Outcome::Recorded => "recorded: the decisions of a scheduler",
    }
}

fn write_pods_ready(out: &mut impl Write, stats: &PodsReadyStats) -> Result {
    write!(out, "  evictions    {}", stats.evictions)?;
    for (at, (reason, count)) in stats.evictions_by_reason.iter().enumerate() {
        let separator = if at == 0 { ": " } else { ", " };
        write!(out, "{separator}{reason} {count}")?;
    }
    writeln!(out)?;
    writeln!(out, "  requeues     {}", stats.requeues)?;
    writeln!(out, "  deactivated  {}", stats.deactivated)?;
    writeln!(out, "  not ready    {} s", stats.not_ready_seconds)
}

fn write_usage(out: &mut impl Write, trace: &JobTrace, timeline: &Timeline) -> Result {
    let rows = timeline.usage.iter().map(|usage| {
        let part = utilization(trace, timeline, usage);
        [
            usage.cluster_queue.clone(),
            usage.flavor.clone(),
            usage.resource.clone(),
            part.map_or("-".to_owned(), |it| format!("{:.1} %", it * 100.0)),
            usage.peak.to_string(),
        ]
    });
    // Nodes alone limit the jobs: there is no quota to show.
    if timeline.usage.is_empty() && trace.placement.is_some() {
        return Ok(());
    }
    let header = ["queue", "flavor", "resource", "utilization", "peak"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(header).chain(rows).collect();
    let mut widths = [0; 5];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let [queue, flavor, resource, part, peak] = widths;
    writeln!(out)?;
    for [a, b, c, d, e] in &rows {
        writeln!(
            out,
            "  {a:queue$}  {b:flavor$}  {c:resource$}  {d:>part$}  {e:>peak$}"
        )?;
    }
    Ok(())
}

fn write_event_loop(out: &mut impl Write, timeline: &Timeline) -> Result {
    let events = event_loop(timeline);
    let Some(first) = events.first() else {
        return Ok(());
    };
    writeln!(out)?;
    let from = if timeline.outcome == Outcome::Loop {
        "from"
    } else {
        "at"
    };
    writeln!(out, "  repeated without end {from} {} s:", first.at_s)?;
    for event in events {
        write_event(out, timeline, event)?;
    }
    Ok(())
}

fn write_event(out: &mut impl Write, timeline: &Timeline, event: &Event) -> Result {
    let name = |job: usize| timeline.jobs.get(job).map_or("", |it| &*it.name);
    match event.kind {
        EventKind::Admitted { job, .. } => writeln!(out, "    {} is admitted", name(job)),
        EventKind::Preempted { job, by, .. } => {
            writeln!(out, "    {} preempts {}", name(by), name(job))
        }
        EventKind::Released { job } => writeln!(out, "    {} releases its quota", name(job)),
        EventKind::Finished { job } => writeln!(out, "    {} finishes", name(job)),
        EventKind::Ready { job } => writeln!(out, "    the pods of {} are ready", name(job)),
        EventKind::Evicted { job, reason } => {
            writeln!(out, "    {} is evicted: {}", name(job), reason.as_str())
        }
        EventKind::Requeued { job } => writeln!(out, "    {} is requeued", name(job)),
        EventKind::Changed { queue } => {
            let queue = timeline.queues.get(queue).map_or("", String::as_str);
            writeln!(out, "    the quota of {queue} changes")
        }
    }
}

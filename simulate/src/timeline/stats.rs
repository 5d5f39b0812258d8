//! Sums over the timelines of all jobs.

use super::job_trace::JobTrace;
use super::lost_time::lost_s;
use super::pods_ready_stats::PodsReadyStats;
use super::result::{Event, EventKind, JobTimeline, RunEnd, Stats, WaitTimes};

/// Computes the sums. The timelines are in the order of the jobs of the trace.
pub(super) fn stats(trace: &JobTrace, timelines: &[JobTimeline]) -> Stats {
    let mut stats = Stats {
        jobs: timelines.len(),
        ..Stats::default()
    };
    let mut waits = Vec::with_capacity(timelines.len());
    for (job, timeline) in trace.jobs.iter().zip(timelines) {
        match timeline.runs.first() {
            Some(first) => waits.push(first.from_s.saturating_sub(job.created_s())),
            None => stats.never_admitted = stats.never_admitted.saturating_add(1),
        }
        stats.admissions = stats.admissions.saturating_add(timeline.runs.len());
        for run in &timeline.runs {
            match run.end {
                RunEnd::Open | RunEnd::NotReady(_) | RunEnd::Evicted(_) => {}
                RunEnd::Finished(_) => stats.finished = stats.finished.saturating_add(1),
                RunEnd::Preempted(eviction) => {
                    stats.preemptions = stats.preemptions.saturating_add(1);
                    let by_reason = &mut stats.preemptions_by_reason;
                    let count = by_reason.entry(eviction.reason.as_str()).or_default();
                    *count = count.saturating_add(1);
                }
            }
            let lost_s = lost_s(run, trace.mode);
            stats.lost_seconds = stats.lost_seconds.saturating_add(lost_s);
        }
    }
    stats.wait = wait_times(waits);
    stats
}

/// Computes the sums of the events and of the runs up to the last event; `None` if the trace does not say when pods are ready.
pub(super) fn pods_ready_stats(
    trace: &JobTrace,
    jobs: &[JobTimeline],
    events: &[Event],
) -> Option<PodsReadyStats> {
    if !trace.considers_readiness() {
        return None;
    }
    let mut stats = PodsReadyStats::default();
    for event in events {
        match event.kind {
            EventKind::Evicted { reason, .. } => stats.add_eviction(reason),
            EventKind::Requeued { .. } => stats.requeues = stats.requeues.saturating_add(1),
            _ => {}
        }
    }
    let events_end_s = events.last().map_or(0, |it| it.at_s);
    for run in jobs.iter().flat_map(|it| &it.runs) {
        let end_s = match run.end {
            RunEnd::Open => events_end_s,
            RunEnd::Finished(at_s) | RunEnd::Evicted(at_s) => at_s,
            RunEnd::Preempted(eviction) => eviction.at_s,
            RunEnd::NotReady(eviction) => {
                let lost_s = eviction.at_s.saturating_sub(run.from_s);
                stats.lost_seconds = stats.lost_seconds.saturating_add(lost_s);
                eviction.at_s
            }
        };
        let until_s = run.ready_at_s.unwrap_or(end_s);
        let not_ready_s = until_s.saturating_sub(run.from_s).max(0);
        stats.not_ready_seconds = stats.not_ready_seconds.saturating_add(not_ready_s);
    }
    Some(stats)
}

/// The nearest rank of a percentile in sorted values; 0 without values.
pub(super) fn percentile(sorted: &[i64], percent: usize) -> i64 {
    let rank = sorted.len().saturating_mul(percent).div_ceil(100);
    let at = rank.checked_sub(1);
    at.and_then(|at| sorted.get(at))
        .copied()
        .unwrap_or_default()
}

/// The percentiles of waits in any order.
pub(super) fn wait_times(mut waits: Vec<i64>) -> WaitTimes {
    waits.sort_unstable();
    let percentile = |percent| percentile(&waits, percent);
    WaitTimes {
        p50: percentile(50),
        p90: percentile(90),
        p95: percentile(95),
        p99: percentile(99),
        max: waits.last().copied().unwrap_or_default(),
        sum: waits
            .iter()
            .fold(0, |sum: i64, wait| sum.saturating_add(*wait)),
    }
}

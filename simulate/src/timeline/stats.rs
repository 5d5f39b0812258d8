//! Sums over the timelines of all jobs.

use super::job_trace::{JobTrace, PreemptedRun};
use super::result::{JobTimeline, RunEnd, Stats, WaitTimes};

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
                RunEnd::Open | RunEnd::Evicted(_) => {}
                RunEnd::Finished(_) => stats.finished = stats.finished.saturating_add(1),
                RunEnd::Preempted(eviction) => {
                    stats.preemptions = stats.preemptions.saturating_add(1);
                    let by_reason = &mut stats.preemptions_by_reason;
                    let count = by_reason.entry(eviction.reason.as_str()).or_default();
                    *count = count.saturating_add(1);
                    if trace.mode == PreemptedRun::Restart {
                        let lost_s = eviction.at_s.saturating_sub(run.from_s);
                        stats.lost_seconds = stats.lost_seconds.saturating_add(lost_s);
                    }
                }
            }
        }
    }
    stats.wait = wait_times(waits);
    stats
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

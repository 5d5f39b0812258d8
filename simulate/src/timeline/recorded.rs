//! The timeline of runs that were recorded, not simulated.

use super::job_trace::JobTrace;
use super::result::{Event, EventKind, JobTimeline, Outcome, QuotaUsage, Run, RunEnd, Timeline};
use super::stats::stats;
use super::usage_history::usage_history;

/// Returns the timeline of recorded runs, by job in the order of the trace, up to a time in seconds, with the number of cycles.
/// Costs the logarithm of the number of runs for each run.
#[must_use]
pub fn recorded_timeline(
    trace: &JobTrace,
    runs: Vec<Vec<Run>>,
    cycles: u64,
    until_s: i64,
) -> Timeline {
    let jobs = trace.jobs.iter().zip(runs);
    let jobs = jobs.map(|(job, runs)| JobTimeline {
        name: job.name.clone(),
        runs,
    });
    let jobs: Vec<JobTimeline> = jobs.collect();
    let mut timeline = Timeline {
        outcome: Outcome::Recorded,
        makespan_s: until_s,
        cycles,
        instants: Vec::new(),
        stats: stats(trace, &jobs),
        events: events(&jobs),
        queues: trace
            .cluster_queues
            .iter()
            .map(|it| it.name.clone())
            .collect(),
        planned_starts: Vec::new(),
        usage: Vec::new(),
        jobs,
    };
    timeline.usage = usage(trace, &timeline);
    timeline
}

/// All events in the order of time; those of one second in the order of the jobs.
fn events(jobs: &[JobTimeline]) -> Vec<Event> {
    let mut events = Vec::new();
    for (job, timeline) in jobs.iter().enumerate() {
        for run in &timeline.runs {
            let cycle = run.cycle;
            let mut add = |at_s, kind| events.push(Event { at_s, kind });
            add(run.from_s.max(0), EventKind::Admitted { job, cycle });
            match run.end {
                RunEnd::Open => {}
                RunEnd::Finished(at_s) => add(at_s, EventKind::Finished { job }),
                RunEnd::Evicted(at_s) => add(at_s, EventKind::Released { job }),
                RunEnd::NotReady(eviction) => {
                    let reason = eviction.reason;
                    add(eviction.at_s, EventKind::Evicted { job, reason });
                    if let Some(at_s) = eviction.released_at_s {
                        add(at_s, EventKind::Released { job });
                    }
                }
                RunEnd::Preempted(eviction) => {
                    let (by, cycle) = (eviction.by, eviction.cycle);
                    add(eviction.at_s, EventKind::Preempted { job, by, cycle });
                    if let Some(at_s) = eviction.released_at_s {
                        add(at_s, EventKind::Released { job });
                    }
                }
            }
        }
    }
    events.sort_by_key(|it| it.at_s);
    events
}

/// The use of all quotas until the end, sorted by names.
fn usage(trace: &JobTrace, timeline: &Timeline) -> Vec<QuotaUsage> {
    let histories = usage_history(trace, timeline).into_iter();
    let usage = histories.filter_map(|history| {
        let queue = trace.cluster_queues.get(history.queue)?;
        let ends = history.steps.iter().skip(1).map(|(at_s, _)| *at_s);
        let ends = ends.chain(std::iter::once(timeline.makespan_s));
        let integral = history.steps.iter().zip(ends);
        let integral = integral.fold(0_i64, |sum, ((from_s, amount), to_s)| {
            let length_s = to_s.saturating_sub(*from_s).max(0);
            sum.saturating_add(amount.saturating_mul(length_s))
        });
        let peak = history.steps.iter().map(|(_, amount)| *amount).max();
        Some(QuotaUsage {
            cluster_queue: queue.name.clone(),
            flavor: history.flavor,
            resource: history.resource,
            integral,
            peak: peak.unwrap_or_default(),
        })
    });
    let mut usage: Vec<QuotaUsage> = usage.collect();
    usage.sort_by(|a, b| key(a).cmp(&key(b)));
    usage
}

fn key(it: &QuotaUsage) -> (&str, &str, &str) {
    (&it.cluster_queue, &it.flavor, &it.resource)
}

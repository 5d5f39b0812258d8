//! The jobs that another configuration affects most.

use super::job_trace::JobTrace;
use super::result::{RunEnd, Timeline};
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;

/// The most affected jobs of a comparison.
pub const AFFECTED_MAX: usize = 10;

/// How a job fared in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobOutcome {
    /// The seconds from creation to first admission; `None` if it was never admitted.
    pub wait: Option<i64>,
    /// When it finished, in seconds; `None` if it did not.
    pub finish: Option<i64>,
    /// How often it was preempted.
    pub preemptions: usize,
}

/// A job whose wait changes between two simulations of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AffectedJob {
    /// The index in the trace.
    #[serde(skip)]
    pub job: usize,
    /// Its name.
    pub name: Arc<str>,
    /// In the first simulation.
    pub first: JobOutcome,
    /// In the second simulation.
    pub second: JobOutcome,
}

/// The outcomes of all jobs, in the order of the trace: what remains of a timeline for a comparison.
#[must_use]
pub fn job_outcomes(trace: &JobTrace, timeline: &Timeline) -> Vec<JobOutcome> {
    let jobs = trace.jobs.iter().zip(&timeline.jobs);
    let outcomes = jobs.map(|(job, history)| {
        let mut outcome = JobOutcome {
            wait: None,
            finish: None,
            preemptions: 0,
        };
        let first = history.runs.first();
        outcome.wait = first.map(|run| run.from_s.saturating_sub(job.created_s()));
        for run in &history.runs {
            match run.end {
                RunEnd::Open | RunEnd::NotReady(_) | RunEnd::Evicted(_) => {}
                RunEnd::Finished(at_s) => outcome.finish = Some(at_s),
                RunEnd::Preempted(_) => {
                    outcome.preemptions = outcome.preemptions.saturating_add(1);
                }
            }
        }
        outcome
    });
    outcomes.collect()
}

/// Returns the jobs with the largest change of wait, at most [`AFFECTED_MAX`]; of equal changes those with the largest
/// change of the finish, then in the order of the trace. A job that is never admitted counts as waiting for ever.
///
/// Costs the number of jobs and the logarithm of the number of changes.
#[must_use]
pub fn most_affected(
    trace: &JobTrace,
    first: &[JobOutcome],
    second: &[JobOutcome],
) -> Vec<AffectedJob> {
    let change = |a: Option<i64>, b: Option<i64>| match (a, b) {
        (Some(a), Some(b)) => a.abs_diff(b),
        (None, None) => 0,
        _ => u64::MAX,
    };
    let pairs = first.iter().zip(second).enumerate();
    let changes = pairs.map(|(at, (a, b))| {
        (
            change(a.wait, b.wait),
            change(a.finish, b.finish),
            Reverse(at),
        )
    });
    let mut changes: Vec<_> = changes.filter(|it| (it.0, it.1) != (0, 0)).collect();
    changes.sort_unstable_by(|a, b| b.cmp(a));
    changes.truncate(AFFECTED_MAX);
    let jobs = changes.into_iter().filter_map(|(.., Reverse(job))| {
        Some(AffectedJob {
            job,
            name: Arc::clone(&trace.jobs.get(job)?.name),
            first: *first.get(job)?,
            second: *second.get(job)?,
        })
    });
    jobs.collect()
}

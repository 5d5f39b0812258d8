//! The states of workloads over time.

use crate::simulation::Simulation;
use lockkeeper_simulate::timeline::{Run, RunEnd};

/// The state of a workload during an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IntervalState {
    /// Without quota.
    Pending,
    /// With quota, until its pods are ready or it is evicted.
    NotReady,
    /// Running, until the workload finishes or the simulation ends.
    Running,
    /// A run that ends with a preemption.
    Preempted,
    /// Preempted, with quota during the grace period.
    Terminating,
}

impl IntervalState {
    /// All states, in the order of [`Self::index`].
    pub(crate) const ALL: [Self; 5] = [
        Self::Pending,
        Self::Running,
        Self::Preempted,
        Self::Terminating,
        Self::NotReady,
    ];

    /// The states that a simulation can have.
    pub(crate) fn possible(simulation: &Simulation<'_>) -> impl Iterator<Item = Self> {
        let is_ready = simulation.timeline.stats.pods_ready.is_none();
        let states = Self::ALL.into_iter();
        states.filter(move |it| !is_ready || *it != Self::NotReady)
    }

    /// The class of the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Preempted => "preempted",
            Self::Terminating => "terminating",
            Self::NotReady => "not-ready",
        }
    }

    /// The text of the legend.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Preempted => "Preempted run",
            Self::Terminating => "Terminating",
            Self::NotReady => "Pods not ready",
        }
    }

    /// The position in [`Self::ALL`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Pending => 0,
            Self::Running => 1,
            Self::Preempted => 2,
            Self::Terminating => 3,
            Self::NotReady => 4,
        }
    }
}

/// A time in which the state of a workload does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) state: IntervalState,
    pub(crate) from_s: i64,
    pub(crate) to_s: i64,
}

/// The state of a workload at the end of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalState {
    /// It is finished.
    Finished,
    /// It has no quota.
    Pending,
    /// It runs.
    Running,
    /// It is preempted or evicted, and has quota.
    Terminating,
    /// Its pods were not ready in time too often.
    Deactivated,
}

impl FinalState {
    /// All states.
    pub(crate) const ALL: [Self; 5] = [
        Self::Finished,
        Self::Pending,
        Self::Running,
        Self::Terminating,
        Self::Deactivated,
    ];

    /// The name in tables.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Terminating => "terminating",
            Self::Deactivated => "deactivated",
        }
    }
}

/// A preemption of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preemption {
    /// In seconds.
    pub(crate) at_s: i64,
    /// The index of the preemptor.
    pub(crate) by: usize,
}

/// The history of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkloadHistory {
    /// In order of time; empty intervals are left out.
    pub(crate) intervals: Vec<Interval>,
    pub(crate) state: FinalState,
    pub(crate) preemptions: Vec<Preemption>,
    /// From arrival to first admission, in seconds; `None` if it was never admitted.
    pub(crate) wait_s: Option<i64>,
    /// When it finished, in seconds.
    pub(crate) finished_at_s: Option<i64>,
    pub(crate) admissions: usize,
}

/// Returns the history of each workload, in the order of the trace.
pub(crate) fn workload_histories(simulation: &Simulation<'_>) -> Vec<WorkloadHistory> {
    let jobs = simulation.trace.jobs.iter().zip(&simulation.timeline.jobs);
    let until_s = simulation.until_s();
    let grace_s = simulation.trace.grace_period_seconds;
    let histories = jobs.map(|(job, timeline)| {
        let mut history = WorkloadHistory {
            intervals: Vec::new(),
            state: FinalState::Pending,
            preemptions: Vec::new(),
            wait_s: None,
            finished_at_s: None,
            admissions: timeline.runs.len(),
        };
        let first = timeline.runs.first();
        history.wait_s = first.map(|run| run.from_s.saturating_sub(job.created_s()));
        let mut pending_since_s = job.arrival;
        for run in &timeline.runs {
            history.push(IntervalState::Pending, pending_since_s, run.from_s);
            pending_since_s = history.push_run(run, grace_s, until_s);
        }
        if history.state == FinalState::Pending {
            history.push(IntervalState::Pending, pending_since_s, until_s);
        }
        history
    });
    histories.collect()
}

impl WorkloadHistory {
    fn push(&mut self, state: IntervalState, from_s: i64, to_s: i64) {
        // A run may have begun before the start.
        let from_s = from_s.max(0);
        if from_s < to_s {
            self.intervals.push(Interval {
                state,
                from_s,
                to_s,
            });
        }
    }

    /// Adds a run; returns since when the workload is pending after it, in seconds.
    fn push_run(&mut self, run: &Run, grace_s: i64, until_s: i64) -> i64 {
        let end_s = match run.end {
            RunEnd::Open => until_s,
            RunEnd::Finished(at_s) | RunEnd::Evicted(at_s) => at_s,
            RunEnd::NotReady(eviction) => eviction.at_s,
            RunEnd::Preempted(eviction) => eviction.at_s,
        };
        let from_s = run.ready_at_s.unwrap_or(end_s);
        self.push(IntervalState::NotReady, run.from_s, from_s);
        match run.end {
            RunEnd::Open => {
                self.push(IntervalState::Running, from_s, until_s);
                self.state = FinalState::Running;
                until_s
            }
            RunEnd::Finished(at_s) => {
                self.push(IntervalState::Running, from_s, at_s);
                self.state = FinalState::Finished;
                self.finished_at_s = Some(at_s);
                at_s
            }
            RunEnd::Evicted(at_s) => {
                self.push(IntervalState::Running, from_s, at_s);
                at_s
            }
            RunEnd::Preempted(eviction) => {
                let at_s = eviction.at_s;
                self.push(IntervalState::Preempted, from_s, at_s);
                self.preemptions.push(Preemption {
                    at_s,
                    by: eviction.by,
                });
                self.push_grace_period(at_s, eviction.released_at_s, (grace_s, until_s))
            }
            RunEnd::NotReady(eviction) => {
                let released_at_s = eviction.released_at_s;
                let released_at_s =
                    self.push_grace_period(eviction.at_s, released_at_s, (grace_s, until_s));
                if eviction.is_deactivation() {
                    self.state = FinalState::Deactivated;
                }
                released_at_s
            }
        }
    }

    /// Adds the grace period of a stopped run; returns when it ends, in seconds.
    fn push_grace_period(
        &mut self,
        at_s: i64,
        released_at_s: Option<i64>,
        (grace_s, until_s): (i64, i64),
    ) -> i64 {
        if grace_s == 0 {
            return at_s;
        }
        let end_s = released_at_s.unwrap_or(until_s);
        self.push(IntervalState::Terminating, at_s, end_s);
        if released_at_s.is_none() {
            self.state = FinalState::Terminating;
        }
        end_s
    }
}

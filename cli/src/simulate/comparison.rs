//! The jobs that a configuration affects, against the first configuration of the same trace.

use super::simulated::Simulated;
use anyhow::{Error, anyhow};
use lockkeeper_simulate::timeline::{
    AffectedJob, JobOutcome, first_decisions, job_outcomes, most_affected,
};
use serde::Serialize;

/// The most jobs of a trace for which the first decisions on affected jobs are explained: this simulates the trace again.
const EXPLAINED_JOBS_MAX: usize = 200_000;

/// Two configurations of one trace.
#[derive(Serialize)]
pub(crate) struct Comparison<'a> {
    /// The name of the trace.
    pub(crate) trace: &'a str,
    /// The file of the first configuration.
    pub(crate) first: &'a str,
    /// The file of the second configuration.
    pub(crate) second: &'a str,
    /// The most affected jobs.
    pub(crate) affected: Vec<ExplainedJob>,
}

/// An affected job, and why the second configuration treats it so.
#[derive(Serialize)]
pub(crate) struct ExplainedJob {
    #[serde(flatten)]
    pub(crate) job: AffectedJob,
    /// The first decision on the job in the second simulation; `None` for large traces, and if there is none.
    pub(crate) decision: Option<String>,
}

/// Compares each simulation with the first one of its trace.
#[derive(Default)]
pub(crate) struct Comparer<'a> {
    first: Option<(&'a str, &'a str, Vec<JobOutcome>)>,
    comparisons: Vec<Comparison<'a>>,
}

impl<'a> Comparer<'a> {
    /// Forgets the first simulation: the next one is of another trace.
    pub(crate) fn begin_trace(&mut self) {
        self.first = None;
    }

    /// Adds a simulation. Those of a trace without configurations are not compared.
    pub(crate) fn add(&mut self, simulated: &Simulated<'a>) -> Result<(), Error> {
        let Some(config) = simulated.config else {
            return Ok(());
        };
        let outcomes = job_outcomes(&simulated.trace, &simulated.timeline);
        let Some((trace, first, first_outcomes)) = &self.first else {
            self.first = Some((simulated.id, config, outcomes));
            return Ok(());
        };
        let affected = most_affected(&simulated.trace, first_outcomes, &outcomes);
        let jobs: Vec<usize> = affected.iter().map(|it| it.job).collect();
        let mut decisions = if simulated.trace.jobs.len() <= EXPLAINED_JOBS_MAX {
            first_decisions(&simulated.trace, &jobs)
                .map_err(|error| anyhow!("{}: {error}", simulated.title()))?
        } else {
            std::collections::BTreeMap::new()
        };
        let affected = affected.into_iter().map(|job| ExplainedJob {
            decision: decisions.remove(&job.job),
            job,
        });
        self.comparisons.push(Comparison {
            trace,
            first,
            second: config,
            affected: affected.collect(),
        });
        Ok(())
    }

    /// The comparisons, in the order of the simulations.
    pub(crate) fn comparisons(&self) -> &[Comparison<'a>] {
        &self.comparisons
    }
}

//! Simulated traces.

use lockkeeper_report::Simulation;
use lockkeeper_simulate::timeline::{JobTrace, Metrics, Timeline};
use std::borrow::Cow;

/// A simulated trace.
pub(crate) struct Simulated<'a> {
    pub(crate) id: &'a str,
    /// The file of the configuration.
    pub(crate) config: Option<&'a str>,
    /// With the configuration.
    pub(crate) trace: Cow<'a, JobTrace>,
    pub(crate) timeline: Timeline,
    pub(crate) metrics: Metrics,
}

impl Simulated<'_> {
    /// The heading of the simulation.
    pub(crate) fn title(&self) -> String {
        match self.config {
            Some(config) => format!("{}, {config}", self.id),
            None => self.id.to_owned(),
        }
    }

    /// The input of a report.
    pub(crate) fn simulation(&self) -> Simulation<'_> {
        Simulation {
            id: self.id,
            config: self.config,
            trace: &self.trace,
            timeline: &self.timeline,
        }
    }
}

//! The input of a report.

use lockkeeper_simulate::timeline::{JobTrace, Timeline};

/// The most simulations of a report.
pub const SIMULATIONS_MAX: usize = 12;

/// The most workloads of a simulation that a report shows one by one; of more it shows numbers and a selection.
pub const WORKLOADS_MAX: usize = 10_000;

/// A simulation and its result.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// The name of the trace.
    pub id: &'a str,
    /// The name of the configuration, if there is one.
    pub config: Option<&'a str>,
    /// The trace with its configuration.
    pub trace: &'a JobTrace,
    /// The result of the trace.
    pub timeline: &'a Timeline,
}

impl Simulation<'_> {
    /// The heading of the simulation.
    pub(crate) fn title(&self) -> String {
        match self.config {
            Some(config) => format!("{}, {config}", self.id),
            None => self.id.to_owned(),
        }
    }

    /// The end of all time axes, in seconds: the last event or arrival, and at least 1.
    pub(crate) fn until_s(&self) -> i64 {
        let event_s = self.timeline.events.last().map(|it| it.at_s);
        let arrival_s = self.trace.jobs.last().map(|it| it.arrival);
        event_s.max(arrival_s).unwrap_or_default().max(1)
    }

    /// Returns whether the report shows each workload.
    pub(crate) fn is_detailed(&self) -> bool {
        self.trace.jobs.len() <= WORKLOADS_MAX
    }
}

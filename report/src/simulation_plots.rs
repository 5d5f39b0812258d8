//! The plots of one simulation.

use crate::plot::Plot;
use crate::plot_set::PlotSet;
use crate::quota_usage::QuotaUsage;
use crate::simulation::Simulation;
use crate::stacked_chart::{ChartSize, StackedChart};
use crate::state_plot::state_chart;
use crate::usage_plots::{QUEUE_PLOTS_MAX, cohort_plots, queue_plots};
use crate::wait_groups::{groups_by_priority, groups_by_queue};
use crate::wait_plot::wait_plot;
use crate::workload_states::WorkloadHistory;

/// The plots of one simulation, except the Gantt chart.
#[derive(Clone, Debug)]
pub(crate) struct SimulationPlots {
    pub(crate) cohorts: PlotSet,
    pub(crate) queues: PlotSet,
    pub(crate) states: Plot,
    /// By ClusterQueue, in place of a Gantt chart.
    pub(crate) queue_states: PlotSet,
    pub(crate) waits_by_queue: Plot,
    pub(crate) waits_by_priority: Plot,
}

impl SimulationPlots {
    pub(crate) fn new(
        simulation: &Simulation<'_>,
        usage: &QuotaUsage<'_>,
        histories: &[WorkloadHistory],
        wait_bounds_s: &[i64],
    ) -> Self {
        let queue_states = if simulation.is_detailed() {
            PlotSet::default()
        } else {
            queue_state_plots(simulation, histories)
        };
        Self {
            cohorts: cohort_plots(simulation, usage),
            queues: queue_plots(simulation, usage),
            states: state_chart(simulation, histories, None, ChartSize::Wide).plot(),
            queue_states,
            waits_by_queue: wait_plot(
                "wait-times-by-queue",
                "Wait times by ClusterQueue",
                groups_by_queue(simulation, histories),
                wait_bounds_s,
            ),
            waits_by_priority: wait_plot(
                "wait-times-by-priority",
                "Wait times by priority",
                groups_by_priority(simulation, histories),
                wait_bounds_s,
            ),
        }
    }

    /// Returns all plots.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Plot> {
        let usage = self.cohorts.plots.iter().chain(&self.queues.plots);
        let states = std::iter::once(&self.states).chain(&self.queue_states.plots);
        let waits = [&self.waits_by_queue, &self.waits_by_priority];
        usage.chain(states).chain(waits)
    }
}

/// The plots of all ClusterQueues with workloads, with the same value axis.
fn queue_state_plots(simulation: &Simulation<'_>, histories: &[WorkloadHistory]) -> PlotSet {
    let queues = simulation.trace.cluster_queues.iter();
    let charts =
        queues.map(|it| state_chart(simulation, histories, Some(&it.name), ChartSize::Half));
    let mut charts: Vec<StackedChart<'_>> = charts.filter(|it| !it.series.is_empty()).collect();
    let peak = charts.iter().map(StackedChart::peak).max();
    for chart in &mut charts {
        chart.least_peak = peak.unwrap_or_default();
    }
    PlotSet::new(charts, QUEUE_PLOTS_MAX)
}

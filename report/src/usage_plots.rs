//! Plots of quota and use over time.

use crate::plot_set::PlotSet;
use crate::quota_usage::QuotaUsage;
use crate::simulation::Simulation;
use crate::usage_charts::{cohort_chart, queue_chart};

/// The most plots of ClusterQueues.
pub(crate) const QUEUE_PLOTS_MAX: usize = 48;

/// The most plots of cohorts.
const COHORT_PLOTS_MAX: usize = 24;

/// Returns a plot for each cohort and resource, stacked by its children. Those without quota and use are left out.
pub(crate) fn cohort_plots(simulation: &Simulation<'_>, usage: &QuotaUsage<'_>) -> PlotSet {
    let nodes = usage.tree.nodes.iter().enumerate();
    let cohorts = nodes.filter(|(_, it)| it.queue.is_none());
    let charts = cohorts.flat_map(|(at, _)| {
        let resources = usage.resources.iter();
        resources.filter_map(move |it| cohort_chart(simulation, usage, at, it))
    });
    PlotSet::new(charts.collect(), COHORT_PLOTS_MAX)
}

/// Returns a plot for each ClusterQueue and resource, stacked by flavor. Those without quota and use are left out.
pub(crate) fn queue_plots(simulation: &Simulation<'_>, usage: &QuotaUsage<'_>) -> PlotSet {
    let charts = (0..simulation.trace.cluster_queues.len()).flat_map(|at| {
        let resources = usage.resources.iter();
        resources.filter_map(move |it| queue_chart(simulation, usage, at, it))
    });
    PlotSet::new(charts.collect(), QUEUE_PLOTS_MAX)
}

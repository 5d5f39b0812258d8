//! The report of several simulations.

use crate::markup_text::permitted_text;
use crate::page::page;
use crate::plot::{Plot, PlotFile};
use crate::quota_usage::QuotaUsage;
use crate::sections::simulation_section;
use crate::simulation::Simulation;
use crate::simulation_plots::SimulationPlots;
use crate::stacked_chart::{ChartSize, StackedChart};
use crate::state_plot::state_chart;
use crate::wait_plot::wait_plot;
use crate::wait_rows::{WaitGroup, common_wait_bounds_s};
use crate::workload_states::workload_histories;
use maud::Markup;

/// Returns the report as an HTML file. Give at most [`SIMULATIONS_MAX`](crate::SIMULATIONS_MAX) simulations.
///
/// Costs the events of all simulations and the logarithm of their number. The size of the report is that of the
/// workloads, at most [`WORKLOADS_MAX`](crate::WORKLOADS_MAX) of each simulation.
#[must_use]
pub fn render(simulations: &[Simulation<'_>]) -> String {
    let bounds_s = common_wait_bounds_s(simulations);
    let sections = simulations.iter().enumerate();
    let sections = sections.map(|(at, it)| simulation_section(it, at, &bounds_s));
    let sections: Vec<Markup> = sections.collect();
    let comparison = comparison_plots(simulations, &bounds_s);
    permitted_text(page(simulations, &comparison, &sections).into_string())
}

/// Returns each plot of a report as an SVG file, except Gantt charts and tables.
///
/// Costs as much as [`render`].
#[must_use]
pub fn plot_files(simulations: &[Simulation<'_>]) -> Vec<PlotFile> {
    let bounds_s = common_wait_bounds_s(simulations);
    let mut plots = comparison_plots(simulations, &bounds_s);
    for simulation in simulations {
        let usage = QuotaUsage::new(simulation.trace, simulation.timeline);
        let histories = workload_histories(simulation);
        let own = SimulationPlots::new(simulation, &usage, &histories, &bounds_s);
        plots.extend(own.all().cloned());
    }
    let files = plots.iter().enumerate();
    files
        .map(|(at, it)| it.file(at.saturating_add(1)))
        .collect()
}

/// The waits and the states of all simulations with the same axes.
fn comparison_plots(simulations: &[Simulation<'_>], bounds_s: &[i64]) -> Vec<Plot> {
    if simulations.len() < 2 {
        return Vec::new();
    }
    let groups = simulations.iter().map(|simulation| {
        let jobs = simulation.trace.jobs.iter().zip(&simulation.timeline.jobs);
        let mut group = WaitGroup {
            name: simulation.title(),
            ..WaitGroup::default()
        };
        for (job, timeline) in jobs {
            let first = timeline.runs.first();
            group.add(first.map(|run| run.from_s.saturating_sub(job.created_s())));
        }
        group
    });
    let waits = wait_plot("wait-times", "Wait times", groups.collect(), bounds_s);
    let charts = simulations.iter().map(|simulation| {
        let histories = workload_histories(simulation);
        let mut chart = state_chart(simulation, &histories, None, ChartSize::Half);
        chart.title = format!("Workloads by state: {}", simulation.title());
        chart
    });
    let mut charts: Vec<StackedChart<'_>> = charts.collect();
    let until_s = charts.iter().map(|it| it.until_s).max();
    let peak = charts.iter().map(StackedChart::peak).max();
    for chart in &mut charts {
        chart.until_s = until_s.unwrap_or(1);
        chart.least_peak = peak.unwrap_or_default();
    }
    let charts = charts.iter().map(StackedChart::plot);
    std::iter::once(waits).chain(charts).collect()
}

//! The plots of one kind, of which a report has a limited number.

use crate::plot::Plot;
use crate::stacked_chart::StackedChart;
use crate::step_series::integral;
use std::cmp::Reverse;

/// The plots, and the number of those that are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlotSet {
    pub(crate) plots: Vec<Plot>,
    pub(crate) omitted: usize,
}

impl PlotSet {
    /// Draws the charts in their order; if there are too many, those with the most use in proportion to their quota.
    pub(crate) fn new(charts: Vec<StackedChart<'_>>, plots_max: usize) -> Self {
        let omitted = charts.len().saturating_sub(plots_max);
        let mut charts: Vec<(usize, StackedChart<'_>)> = charts.into_iter().enumerate().collect();
        if omitted > 0 {
            charts.sort_by_cached_key(|(at, chart)| (Reverse(use_per_mille(chart)), *at));
            charts.truncate(plots_max);
            charts.sort_by_key(|(at, _)| *at);
        }
        Self {
            plots: charts.iter().map(|(_, chart)| chart.plot()).collect(),
            omitted,
        }
    }
}

/// The use in thousandths of the first line, or of 1 without one.
fn use_per_mille(chart: &StackedChart<'_>) -> i128 {
    let used = chart.series.iter();
    let used = used.map(|it| integral(&it.steps, chart.until_s));
    let used = used.fold(0, i128::saturating_add);
    let quota = chart.lines.first();
    let quota = quota.map(|it| integral(&it.steps, chart.until_s));
    let quota = quota.unwrap_or(1).max(1);
    let used = used.saturating_mul(1_000);
    used.checked_div(quota).unwrap_or_default()
}

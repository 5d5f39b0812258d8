//! The values of a stacked chart by column of a terminal.

use super::time_scale::TimeScale;
use crate::stacked_chart::StackedChart;
use crate::step_series::{Samples, Steps};
use crate::value_axis::value_marks;

/// Values over time: of a part of the stack, or of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueColumns {
    pub(crate) name: String,
    /// The class in the report.
    pub(crate) class: String,
    /// By column.
    pub(crate) values: Vec<i64>,
}

/// A chart with a value for each column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChartColumns {
    pub(crate) title: String,
    pub(crate) resource: String,
    /// The lowest first.
    pub(crate) series: Vec<ValueColumns>,
    pub(crate) lines: Vec<ValueColumns>,
    /// The marks of the value axis; the last one is its end.
    pub(crate) marks: Vec<i64>,
    pub(crate) scale: TimeScale,
    /// The seconds over which each value is a mean.
    pub(crate) mean_over_s: i64,
}

impl ChartColumns {
    /// Computes the values. Costs the steps of all series.
    pub(crate) fn new(chart: &StackedChart<'_>, width: u16) -> Self {
        let scale = TimeScale {
            from_s: 0,
            length_s: chart.until_s,
            width,
        };
        let series = chart.series.iter();
        let series = series.map(|it| (it.name.as_str(), it.class.as_str(), &it.steps));
        let lines = chart.lines.iter().map(|it| (it.name, it.class, &it.steps));
        let all: Vec<(&str, &str, &Steps)> = series.chain(lines).collect();
        let steps: Vec<&Steps> = all.iter().map(|(.., steps)| *steps).collect();
        let samples = Samples::means(&steps, chart.until_s, width.into());
        let mean_over_s = samples.mean_over_s.unwrap_or(1).max(1);
        let columns = all.iter().zip(&samples.values);
        let columns = columns.map(|((name, class, _), values)| ValueColumns {
            name: (*name).to_owned(),
            class: (*class).to_owned(),
            values: by_column(values, scale, mean_over_s),
        });
        let mut series: Vec<ValueColumns> = columns.collect();
        let lines = series.split_off(chart.series.len());
        Self {
            title: chart.title.clone(),
            resource: chart.resource.to_owned(),
            series,
            lines,
            marks: value_marks(chart.resource, chart.peak().max(chart.least_peak)),
            scale,
            mean_over_s,
        }
    }

    /// Returns the end of the value axis.
    pub(crate) fn value_max(&self) -> i64 {
        self.marks.last().copied().unwrap_or(1)
    }
}

/// Means are of whole seconds, of which a column may have a part.
fn by_column(values: &[i64], scale: TimeScale, mean_over_s: i64) -> Vec<i64> {
    let columns = (0..scale.width).map(|column| {
        let at = scale.at_s(column).checked_div(mean_over_s);
        let at = usize::try_from(at.unwrap_or_default()).unwrap_or_default();
        values.get(at).copied().unwrap_or_default()
    });
    columns.collect()
}

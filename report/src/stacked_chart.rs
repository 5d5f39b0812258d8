//! Amounts over time, stacked, with lines for quotas.

use crate::amount_text::amount_text;
use crate::legend::{LegendEntry, draw_legend};
use crate::plot::{Plot, TimeAxis};
use crate::step_series::{Samples, Steps, peak};
use crate::svg_path::{StepPath, pixels, position};
use crate::time_text::{duration_text, time_marks};
use crate::value_axis::value_marks;
use maud::{Markup, html};

/// The most times of changes that are drawn exactly.
const EXACT_TIMES_MAX: usize = 600;

/// The number of intervals whose means are drawn otherwise.
const INTERVALS: i64 = 300;

/// The number of rows of the table.
const TABLE_ROWS: i64 = 40;

const LEFT: i64 = 64;
const RIGHT: i64 = 14;

/// A part of the stack.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The class of the style sheet.
    pub(crate) class: String,
    pub(crate) steps: Steps,
}

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// The class of the style sheet.
    pub(crate) class: &'static str,
    pub(crate) steps: Steps,
}

/// The size of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartSize {
    /// The width of the page.
    Wide,
    /// Two in a row.
    Half,
}

impl ChartSize {
    /// In pixels.
    pub(crate) fn width(self) -> i64 {
        match self {
            Self::Wide => 960,
            Self::Half => 470,
        }
    }

    /// The height of the area with values, in pixels.
    fn plot_height(self) -> i64 {
        match self {
            Self::Wide => 180,
            Self::Half => 120,
        }
    }
}

/// A chart of amounts over time.
#[derive(Clone, Debug)]
pub(crate) struct StackedChart<'a> {
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    /// The resource, which decides on the unit.
    pub(crate) resource: &'a str,
    pub(crate) series: Vec<Series>,
    pub(crate) lines: Vec<Line>,
    /// The end of the time axis, in seconds.
    pub(crate) until_s: i64,
    /// The value axis has at least this amount.
    pub(crate) least_peak: i64,
    pub(crate) size: ChartSize,
}

/// The axes: the position of a time and of a value, in tenths of a pixel from the upper left corner of the plot.
#[derive(Clone, Copy, Debug)]
struct Axes {
    until_s: i64,
    value_max: i64,
    width: i64,
    height: i64,
}

impl Axes {
    fn x(&self, at_s: i64) -> i64 {
        position(at_s, self.until_s, self.width)
    }

    fn y(&self, value: i64) -> i64 {
        self.height
            .saturating_sub(position(value, self.value_max, self.height))
    }
}

impl StackedChart<'_> {
    /// Returns the largest sum of the series, or the largest value of a line.
    pub(crate) fn peak(&self) -> i64 {
        let total = crate::step_series::sum_steps(self.series.iter().map(|it| &it.steps));
        let lines = self.lines.iter().map(|it| peak(&it.steps));
        lines.fold(peak(&total), i64::max)
    }

    /// Draws the chart. Costs the steps of all series and a logarithm of their number.
    pub(crate) fn plot(&self) -> Plot {
        let steps: Vec<&Steps> = self.series.iter().map(|it| &it.steps).collect();
        let samples = Samples::new(&steps, self.until_s, EXACT_TIMES_MAX, INTERVALS);
        let marks = value_marks(self.resource, self.peak().max(self.least_peak));
        let axes = Axes {
            until_s: self.until_s,
            value_max: marks.last().copied().unwrap_or(1),
            width: self
                .size
                .width()
                .saturating_sub(LEFT + RIGHT)
                .saturating_mul(10),
            height: self.size.plot_height().saturating_mul(10),
        };
        let areas = self.areas(&samples, axes);
        let lines = self
            .lines
            .iter()
            .map(|line| (line.class, line_path(&line.steps, axes)));
        let (legend, legend_height) =
            draw_legend(&self.legend(), LEFT, self.size.width().saturating_sub(LEFT));
        let top = legend_height.saturating_add(8);
        let content = html! {
            (legend)
            g transform={ "translate(" (LEFT) " " (top) ")" } {
                (draw_axes(self.resource, &marks, axes))
                g transform="scale(.1)" {
                    @for (class, path) in areas { path class=(class) d=(path.as_str()) {} }
                    @for (class, path) in lines { path class=(class) d=(path.as_str()) {} }
                }
            }
        };
        let (table, interval_s) = self.table();
        let mean = samples.mean_over_s.filter(|it| *it > 1);
        Plot {
            kind: self.kind,
            title: self.title.clone(),
            width: self.size.width(),
            height: top
                .saturating_add(self.size.plot_height())
                .saturating_add(26),
            content,
            note: mean.map(|it| format!("Areas are means over {}.", duration_text(it))),
            table,
            time_axis: Some(TimeAxis {
                left: LEFT,
                length: axes.width.div_euclid(10),
                until_s: self.until_s,
                interval_s,
            }),
        }
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let areas = self.series.iter().map(|it| LegendEntry {
            name: it.name.clone(),
            class: it.class.clone(),
            is_line: false,
        });
        let lines = self.lines.iter().map(|it| LegendEntry {
            name: it.name.to_owned(),
            class: it.class.to_owned(),
            is_line: true,
        });
        areas.chain(lines).collect()
    }

    /// The area of each series, between the sums below and with it.
    fn areas(&self, samples: &Samples, axes: Axes) -> Vec<(&str, StepPath)> {
        let mut below = vec![0_i64; samples.times_s.len()];
        let areas = self
            .series
            .iter()
            .zip(&samples.values)
            .map(|(series, values)| {
                let sums = below.iter().zip(values);
                let above: Vec<i64> = sums
                    .map(|(sum, value)| sum.saturating_add(*value))
                    .collect();
                let path = area_path(&samples.times_s, &below, &above, axes);
                below = above;
                (series.class.as_str(), path)
            });
        areas.filter(|(_, path)| !path.is_empty()).collect()
    }

    /// The values as a table, and the distance between its rows in seconds.
    fn table(&self) -> (Markup, i64) {
        let series = self.series.iter().map(|it| (it.name.as_str(), &it.steps));
        let lines = self.lines.iter().map(|it| (it.name, &it.steps));
        let columns: Vec<(&str, &Steps)> = series.chain(lines).collect();
        let steps: Vec<&Steps> = columns.iter().map(|(_, steps)| *steps).collect();
        let samples = Samples::means(&steps, self.until_s, TABLE_ROWS);
        let length_s = samples.mean_over_s.unwrap_or(1);
        let table = html! {
            table {
                caption { "Means over " (duration_text(length_s)) }
                thead { tr {
                    th scope="col" { "From" }
                    @for (name, _) in &columns { th scope="col" { (name) } }
                } }
                tbody {
                    @for (at, at_s) in samples.times_s.iter().enumerate() {
                        tr {
                            th scope="row" { (duration_text(*at_s)) }
                            @for values in &samples.values {
                                td { (amount_text(self.resource, values.get(at).copied().unwrap_or_default())) }
                            }
                        }
                    }
                }
            }
        };
        (table, length_s)
    }
}

/// The area between two series: forwards along the upper one, and back along the lower one. Empty intervals are left out.
fn area_path(times_s: &[i64], below: &[i64], above: &[i64], axes: Axes) -> StepPath {
    let mut path = StepPath::default();
    let ends_s = times_s.iter().skip(1).copied();
    let ends_s = ends_s.chain(std::iter::once(axes.until_s));
    let intervals = times_s.iter().zip(ends_s).zip(below.iter().zip(above));
    let intervals = intervals.map(|((from_s, to_s), (low, high))| {
        (axes.x(*from_s), axes.x(to_s), axes.y(*low), axes.y(*high))
    });
    let intervals: Vec<(i64, i64, i64, i64)> = intervals.collect();
    // An area that is zero for a while is two shapes.
    for shape in intervals.split(|(.., low, high)| low == high) {
        let Some((left, _, low, _)) = shape.first() else {
            continue;
        };
        path.move_to(*left, *low);
        for (_, right, _, high) in shape {
            path.vertical_to(*high);
            path.horizontal_to(*right);
        }
        for (left, _, low, _) in shape.iter().rev() {
            path.vertical_to(*low);
            path.horizontal_to(*left);
        }
        path.close();
    }
    path
}

fn line_path(steps: &Steps, axes: Axes) -> StepPath {
    let mut path = StepPath::default();
    let before = steps.iter().take_while(|(at_s, _)| *at_s <= 0).last();
    path.move_to(0, axes.y(before.map_or(0, |(_, value)| *value)));
    for (at_s, value) in steps
        .iter()
        .filter(|(at_s, _)| (1..=axes.until_s).contains(at_s))
    {
        path.horizontal_to(axes.x(*at_s));
        path.vertical_to(axes.y(*value));
    }
    path.horizontal_to(axes.width);
    path
}

fn draw_axes(resource: &str, marks: &[i64], axes: Axes) -> Markup {
    let width = pixels(axes.width);
    let height = pixels(axes.height);
    let times_s = time_marks(axes.until_s, axes.width.checked_div(900).unwrap_or(4));
    html! {
        @for mark in marks {
            @let y = pixels(axes.y(*mark));
            path.grid d={ "M0 " (y) "H" (width) } {}
            text.value x="-6" y=(y) dy="4" { (amount_text(resource, *mark)) }
        }
        @for at_s in &times_s {
            @let x = pixels(axes.x(*at_s));
            path.grid d={ "M" (x) " " (height) "v4" } {}
            text.time x=(x) y=(height) dy="16" { (duration_text(*at_s)) }
        }
    }
}

//! The distributions of the times from arrival to first admission.

use crate::amount_text::{number_text, percent_text, short_name};
use crate::legend::{LegendEntry, draw_legend};
use crate::plot::Plot;
use crate::svg_path::{pixels, position};
use crate::time_text::{duration_text, steps_s};
use maud::{Markup, html};

/// The most rows of a plot.
pub(crate) const ROWS_MAX: usize = 40;

/// The number of bounds between zero and the longest wait.
const BOUNDS: usize = 5;

/// The class of workloads that were never admitted.
const NEVER_CLASS: &str = "never";

const NAME_CHARACTERS_MAX: usize = 24;
const LEFT: i64 = 180;
const BAR_WIDTH: i64 = 480;
const ROW_HEIGHT: i64 = 24;
const WIDTH: i64 = 960;

/// The waits of a group of workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitGroup {
    pub(crate) name: String,
    /// In seconds, in any order.
    pub(crate) waits_s: Vec<i64>,
    pub(crate) never_admitted: usize,
}

impl WaitGroup {
    /// Adds a workload; `None` if it was never admitted.
    pub(crate) fn add(&mut self, wait_s: Option<i64>) {
        match wait_s {
            Some(wait_s) => self.waits_s.push(wait_s),
            None => self.never_admitted = self.never_admitted.saturating_add(1),
        }
    }

    /// Returns the number of workloads.
    pub(crate) fn count(&self) -> usize {
        self.waits_s.len().saturating_add(self.never_admitted)
    }
}

/// A row of the plot.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    /// By class of wait: the number of workloads; the last one is never admitted.
    counts: Vec<usize>,
    total: usize,
    /// Median, 95th percentile and maximum, in seconds.
    percentiles_s: [Option<i64>; 3],
}

/// Returns the upper bounds of the classes of waits in seconds, up to the longest wait: 0 and round durations.
pub(crate) fn wait_bounds_s(longest_s: i64) -> Vec<i64> {
    let above = steps_s().filter(|it| *it < longest_s);
    let mut bounds_s: Vec<i64> = above.collect();
    // The first one at or above the longest wait, or the wait itself beyond the last one.
    let last_s = steps_s().find(|it| *it >= longest_s);
    bounds_s.push(last_s.unwrap_or(longest_s));
    let every_second = bounds_s.iter().rev().step_by(2).take(BOUNDS);
    let mut bounds_s: Vec<i64> = every_second.copied().collect();
    bounds_s.push(0);
    bounds_s.reverse();
    bounds_s
}

/// Draws the share of workloads by their waits, one bar for each group: those with the most workloads, in their order.
/// The bounds are those of [`wait_bounds_s`].
pub(crate) fn wait_plot(
    kind: &'static str,
    title: &str,
    groups: Vec<WaitGroup>,
    bounds_s: &[i64],
) -> Plot {
    let count = groups.len();
    let rows: Vec<Row> = largest(groups)
        .into_iter()
        .map(|group| Row::new(group, bounds_s))
        .collect();
    let labels = class_labels(bounds_s);
    let entries = labels.iter().enumerate().map(|(at, label)| LegendEntry {
        name: label.clone(),
        class: class_name(at, labels.len()),
        is_line: false,
    });
    let has_never = rows.iter().any(|it| it.counts.last() > Some(&0));
    let entries = entries.filter(|it| has_never || it.class != NEVER_CLASS);
    let entries: Vec<LegendEntry> = entries.collect();
    let (legend, legend_height) = draw_legend(&entries, 8, WIDTH);
    let top = legend_height.saturating_add(20);
    let height = i64::try_from(rows.len()).unwrap_or_default();
    let height = height.saturating_mul(ROW_HEIGHT).saturating_add(top);
    let omitted = count.saturating_sub(rows.len());
    Plot {
        kind,
        title: title.to_owned(),
        width: WIDTH,
        height: height.saturating_add(8),
        content: html! {
            (legend)
            g transform={ "translate(0 " (top) ")" } { (draw_rows(&rows, &labels)) }
        },
        time_axis: None,
        note: (omitted > 0).then(|| {
            format!("The {ROWS_MAX} groups with the most workloads; {omitted} groups are left out.")
        }),
        table: wait_table(&rows, &labels),
    }
}

fn largest(groups: Vec<WaitGroup>) -> Vec<WaitGroup> {
    if groups.len() <= ROWS_MAX {
        return groups;
    }
    let mut groups: Vec<(usize, WaitGroup)> = groups.into_iter().enumerate().collect();
    groups.sort_by_key(|(at, group)| (std::cmp::Reverse(group.count()), *at));
    groups.truncate(ROWS_MAX);
    groups.sort_by_key(|(at, _)| *at);
    groups.into_iter().map(|(_, group)| group).collect()
}

impl Row {
    fn new(mut group: WaitGroup, bounds_s: &[i64]) -> Self {
        group.waits_s.sort_unstable();
        let waits_s = &group.waits_s;
        let mut below = 0;
        let mut counts = Vec::new();
        for bound_s in bounds_s {
            let until = waits_s.partition_point(|it| it <= bound_s);
            counts.push(until.saturating_sub(below));
            below = until;
        }
        counts.push(group.never_admitted);
        let percentile = |percent: usize| {
            let rank = waits_s.len().saturating_mul(percent).div_ceil(100);
            waits_s.get(rank.checked_sub(1)?).copied()
        };
        Self {
            counts,
            total: group.count(),
            percentiles_s: [percentile(50), percentile(95), percentile(100)],
            name: group.name,
        }
    }

    /// A number of workloads, and its part of all.
    fn share_text(&self, count: usize) -> String {
        let count = number(count);
        let part = percent_text(i128::from(count), i128::from(number(self.total)));
        format!("{} ({part})", number_text(count))
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn class_name(at: usize, count: usize) -> String {
    if at.saturating_add(1) == count {
        return NEVER_CLASS.to_owned();
    }
    format!("w{at}")
}

fn class_labels(bounds_s: &[i64]) -> Vec<String> {
    let labels = bounds_s.iter().map(|it| match *it {
        0 => "no wait".to_owned(),
        seconds => format!("up to {}", duration_text(seconds)),
    });
    labels
        .chain(std::iter::once("never admitted".to_owned()))
        .collect()
}

fn wait_text(wait_s: Option<i64>) -> String {
    wait_s.map_or_else(|| "–".to_owned(), duration_text)
}

fn draw_rows(rows: &[Row], labels: &[String]) -> Markup {
    let columns = [("median", 740), ("95 %", 840), ("longest", 940)];
    let tops = (0_i64..).map(|at| at.saturating_mul(ROW_HEIGHT));
    html! {
        text.column x=(LEFT) y="-6" { "share of workloads" }
        @for (name, x) in columns { text.number x=(x) y="-6" { (name) } }
        @for (row, y) in rows.iter().zip(tops) {
            g transform={ "translate(0 " (y) ")" } {
                text.name x=(LEFT - 10) y="15" {
                    @if row.name.chars().count() > NAME_CHARACTERS_MAX { title { (row.name) } }
                    (short_name(&row.name, NAME_CHARACTERS_MAX))
                }
                (draw_bar(row, labels))
                @for ((_, x), wait_s) in columns.iter().zip(row.percentiles_s) {
                    text.number x=(x) y="15" { (wait_text(wait_s)) }
                }
            }
        }
    }
}

fn draw_bar(row: &Row, labels: &[String]) -> Markup {
    let total = number(row.total);
    let mut until = 0_i64;
    let mut parts = Vec::new();
    let counts = row.counts.iter().zip(labels).enumerate();
    for (at, (count, label)) in counts.filter(|(_, (count, _))| **count > 0) {
        let left = position(until, total, BAR_WIDTH * 10);
        until = until.saturating_add(number(*count));
        let right = position(until, total, BAR_WIDTH * 10);
        let title = format!("{label}: {}", row.share_text(*count));
        let class = class_name(at, row.counts.len());
        parts.push((class, left, right.saturating_sub(left), title));
    }
    html! {
        @for (class, left, width, title) in parts {
            rect class=(class) x=(pixels(left.saturating_add(LEFT * 10))) y="3" width=(pixels(width)) height="16" {
                title { (title) }
            }
        }
    }
}

fn wait_table(rows: &[Row], labels: &[String]) -> Markup {
    html! {
        table {
            caption { "Workloads by wait" }
            thead { tr {
                th scope="col" { "Group" }
                th scope="col" { "Workloads" }
                @for label in labels { th scope="col" { (label) } }
                th scope="col" { "Median" } th scope="col" { "95 %" } th scope="col" { "Longest" }
            } }
            tbody { @for row in rows { tr {
                th scope="row" { (row.name) }
                td { (number_text(number(row.total))) }
                @for count in &row.counts { td { (row.share_text(*count)) } }
                @for wait_s in row.percentiles_s { td { (wait_text(wait_s)) } }
            } } }
        }
    }
}

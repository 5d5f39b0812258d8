//! The distributions of the times from arrival to first admission.

use crate::amount_text::{number_text, short_name};
use crate::legend::{LegendEntry, draw_legend};
use crate::plot::Plot;
use crate::svg_path::{pixels, position};
use crate::wait_rows::{ROWS_MAX, WaitGroup, WaitRow, class_labels, largest, number, wait_text};
use maud::{Markup, html};

/// The class of workloads that were never admitted.
const NEVER_CLASS: &str = "never";

const NAME_CHARACTERS_MAX: usize = 24;
const LEFT: i64 = 180;
const BAR_WIDTH: i64 = 480;
const ROW_HEIGHT: i64 = 24;
const WIDTH: i64 = 960;

/// Draws the share of workloads by their waits, one bar for each group: those with the most workloads, in their order.
/// The bounds are those of [`wait_bounds_s`](crate::wait_rows::wait_bounds_s).
pub(crate) fn wait_plot(
    kind: &'static str,
    title: &str,
    groups: Vec<WaitGroup>,
    bounds_s: &[i64],
) -> Plot {
    let count = groups.len();
    let rows: Vec<WaitRow> = largest(groups)
        .into_iter()
        .map(|group| WaitRow::new(group, bounds_s))
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

fn class_name(at: usize, count: usize) -> String {
    if at.saturating_add(1) == count {
        return NEVER_CLASS.to_owned();
    }
    format!("w{at}")
}

fn draw_rows(rows: &[WaitRow], labels: &[String]) -> Markup {
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

fn draw_bar(row: &WaitRow, labels: &[String]) -> Markup {
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

fn wait_table(rows: &[WaitRow], labels: &[String]) -> Markup {
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

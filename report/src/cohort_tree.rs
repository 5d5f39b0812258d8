//! The quota trees as a table, with the use of each node.

use crate::amount_text::{amount_text, percent_text};
use crate::quota_usage::QuotaUsage;
use crate::step_series::{Steps, integral, peak};
use crate::svg_path::{pixels, position};
use maud::{Markup, html};

/// The width of a bar in pixels, and the part of it that the nominal quota has.
const BAR_WIDTH: i64 = 160;
const NOMINAL_WIDTH: i64 = 100;

/// The deepest level with an indentation of its own.
const DEPTH_MAX: usize = 8;

/// The most rows.
pub(crate) const ROWS_MAX: usize = 500;

/// The use of one resource by one node.
#[derive(Clone, Debug)]
struct Row<'a> {
    name: &'a str,
    is_queue: bool,
    depth: usize,
    resource: &'a str,
    nominal: Steps,
    usage: Steps,
}

/// Returns the table: a row for each node and resource with quota or use, until a time in seconds.
pub(crate) fn cohort_tree(usage: &QuotaUsage<'_>, until_s: i64) -> Markup {
    let nodes = usage.tree.nodes.iter().enumerate();
    let rows = nodes.flat_map(|(at, node)| {
        usage.resources.iter().map(move |resource| Row {
            name: node.name,
            is_queue: node.queue.is_some(),
            depth: node.depth.min(DEPTH_MAX),
            resource,
            nominal: usage.nominal(at, resource),
            usage: usage.usage(at, resource),
        })
    });
    let mut rows = rows.filter(|it| !it.nominal.is_empty() || !it.usage.is_empty());
    let shown: Vec<Row<'_>> = rows.by_ref().take(ROWS_MAX).collect();
    let omitted = rows.count();
    html! {
        div.scroll tabindex="0" role="group" aria-label="Cohorts and ClusterQueues" {
            table.tree {
                caption { "Cohorts and ClusterQueues. The mark of a bar is the nominal quota." }
                thead { tr {
                    th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "Resource" }
                    th.number scope="col" { "Nominal quota" } th.number scope="col" { "Mean use" }
                    th scope="col" { "Use of nominal quota" } th.number scope="col" { "Peak" }
                } }
                tbody { @for row in &shown { (draw_row(row, until_s)) } }
            }
        }
        @if omitted > 0 { p.note { "The first " (ROWS_MAX) " rows; " (omitted) " rows are left out." } }
    }
}

fn draw_row(row: &Row<'_>, until_s: i64) -> Markup {
    let nominal = integral(&row.nominal, until_s);
    let used = integral(&row.usage, until_s);
    let mean = |sum: i128| {
        let mean = sum.checked_div(i128::from(until_s.max(1)));
        i64::try_from(mean.unwrap_or_default()).unwrap_or(i64::MAX)
    };
    html! {
        tr {
            th scope="row" class={ "level" (row.depth) } { (row.name) }
            td { @if row.is_queue { "ClusterQueue" } @else { "Cohort" } }
            td { (row.resource) }
            td.number { (amount_text(row.resource, mean(nominal))) }
            td.number { (amount_text(row.resource, mean(used))) }
            td.bar { (draw_bar(mean(used), mean(nominal))) " " (percent_text(used, nominal)) }
            td.number { (amount_text(row.resource, peak(&row.usage))) }
        }
    }
}

/// A bar in which the nominal quota is at a mark. Beyond the width of the bar, it ends there.
fn draw_bar(used: i64, nominal: i64) -> Markup {
    // In 128 bits: the nominal quota may be near the largest amount.
    let span = i128::from(nominal.max(0)).saturating_mul(i128::from(BAR_WIDTH));
    let span = span
        .checked_div(i128::from(NOMINAL_WIDTH))
        .unwrap_or_default();
    let span = i64::try_from(span).unwrap_or(i64::MAX);
    let width = position(used, span, BAR_WIDTH * 10);
    let view = format!("0 0 {BAR_WIDTH} 12");
    html! {
        svg.meter viewBox=(view) aria-hidden="true" {
            rect.track width=(BAR_WIDTH) height="12" rx="2" {}
            rect class=(if used > nominal { "over" } else { "running" }) width=(pixels(width)) height="12" rx="2" {}
            path.nominal d={ "M" (NOMINAL_WIDTH) " 0v12" } {}
        }
    }
}

//! The quota trees as a table, with the use of each node.

use crate::amount_text::{amount_text, mean_text, percent_text};
use crate::node_rows::{NodeRow, NodeRows, node_rows};
use crate::quota_usage::QuotaUsage;
use crate::step_series::{integral, peak};
use crate::svg_path::pixels;
use maud::{Markup, html};

/// The width of a bar in pixels, and the part of it that the nominal quota has.
const BAR_WIDTH: i64 = 160;
const NOMINAL_WIDTH: i64 = 100;

/// The deepest level with an indentation of its own.
const DEPTH_MAX: usize = 8;

/// Returns the table: a row for each node and resource with quota or use, until a time in seconds.
pub(crate) fn cohort_tree(usage: &QuotaUsage<'_>, until_s: i64) -> Markup {
    let (shown, omitted) = node_rows(usage);
    html! {
        div.scroll tabindex="0" role="group" aria-label="Cohorts and ClusterQueues" {
            table.tree {
                caption { "Cohorts and ClusterQueues. The mark of a bar is the nominal quota." }
                thead { tr {
                    th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "Resource" }
                    th.number scope="col" { "Mean nominal quota" } th.number scope="col" { "Mean use" }
                    th scope="col" { "Use of nominal quota" } th.number scope="col" { "Peak use" }
                } }
                @for node in &shown { @if !node.rows.is_empty() { tbody { (draw_node(node, until_s)) } } }
            }
        }
        @if omitted > 0 { p.note { (omitted) " more cohorts and ClusterQueues are left out." } }
    }
}

fn draw_node(node: &NodeRows<'_>, until_s: i64) -> Markup {
    let count = node.rows.len();
    html! {
        @for (at, row) in node.rows.iter().enumerate() {
            tr {
                @if at == 0 {
                    th scope="rowgroup" rowspan=(count) class={ "level" (node.depth.min(DEPTH_MAX)) } { (node.name) }
                    td rowspan=(count) { @if node.is_queue { "ClusterQueue" } @else { "Cohort" } }
                }
                (draw_cells(row, until_s))
            }
        }
    }
}

fn draw_cells(row: &NodeRow<'_>, until_s: i64) -> Markup {
    let nominal = integral(&row.nominal, until_s);
    let used = integral(&row.usage, until_s);
    html! {
        td { (row.resource) }
        td.number { (mean_text(row.resource, nominal, until_s)) }
        td.number { (mean_text(row.resource, used, until_s)) }
        td.bar { (draw_bar(used, nominal)) " " (percent_text(used, nominal)) }
        td.number { (amount_text(row.resource, peak(&row.usage))) }
    }
}

/// A bar in which the nominal quota is at a mark. Beyond the width of the bar, it ends there.
pub(crate) fn draw_bar(used: i128, nominal: i128) -> Markup {
    let length = used.saturating_mul(i128::from(NOMINAL_WIDTH * 10));
    let length = length.checked_div(nominal).unwrap_or_default();
    let length = length.clamp(0, i128::from(BAR_WIDTH * 10));
    let width = i64::try_from(length).unwrap_or_default();
    let view = format!("0 0 {BAR_WIDTH} 12");
    html! {
        svg.meter viewBox=(view) aria-hidden="true" {
            rect.track width=(BAR_WIDTH) height="12" rx="2" {}
            rect class=(if used > nominal { "over" } else { "running" }) width=(pixels(width)) height="12" rx="2" {}
            path.nominal d={ "M" (NOMINAL_WIDTH) " 0v12" } {}
        }
    }
}

//! The table of workloads. The script sorts and filters it.

use crate::simulation::{Simulation, WORKLOADS_MAX};
use crate::workload_rows::{COLUMNS, workload_cells};
use crate::workload_states::{FinalState, WorkloadHistory};
use maud::{Markup, html};

/// The rows that the page has without the script, which is also the number of rows of a page of the table.
pub(crate) const ROWS_PER_PAGE: usize = 50;

/// Returns the table with its controls. `number` makes the identifiers unique on the page.
pub(crate) fn workload_table(
    simulation: &Simulation<'_>,
    histories: &[WorkloadHistory],
    listed: &[usize],
    number: usize,
) -> Markup {
    let id = |name: &str| format!("{name}-{number}");
    let total = simulation.trace.jobs.len();
    let mut states = histories.iter().map(|it| it.state);
    let has_deactivated = states.any(|it| it == FinalState::Deactivated);
    html! {
        @if listed.len() < total {
            p.note {
                "The table has the " (WORKLOADS_MAX) " workloads with the longest waits, of " (total) "."
            }
        }
        form.controls hidden="" data-table=(number) {
            label for=(id("search")) { "Name contains" }
            input type="search" id=(id("search")) autocomplete="off" spellcheck="false";
            label for=(id("queue")) { "ClusterQueue" }
            select id=(id("queue")) {
                option value="" { "all" }
                @for (at, queue) in simulation.trace.cluster_queues.iter().enumerate() {
                    option value=(at) { (queue.name) }
                }
            }
            label for=(id("state")) { "State" }
            select id=(id("state")) {
                option value="" { "all" }
                @for (at, state) in FinalState::ALL.iter().enumerate() {
                    @if has_deactivated || *state != FinalState::Deactivated {
                        option value=(at) { (state.as_str()) }
                    }
                }
                option value="preempted" { "preempted at least once" }
            }
        }
        div.scroll tabindex="0" role="group" aria-label="Table of workloads" {
            table.workloads id=(id("workloads")) {
                caption { "Workloads" }
                thead { tr { @for (name, is_number) in COLUMNS {
                    th scope="col" class=(if is_number { "number" } else { "" }) aria-sort="none" { (name) }
                } } }
                tbody { @for at in listed.iter().take(ROWS_PER_PAGE) {
                    (draw_row(simulation, histories, *at))
                } }
            }
        }
        p.pager hidden="" data-pager=(number) {
            button type="button" data-step="-1" { "Previous page" }
            span role="status" {}
            button type="button" data-step="1" { "Next page" }
        }
        @if listed.len() > ROWS_PER_PAGE {
            noscript { p.note { "The first " (ROWS_PER_PAGE) " workloads; the others need scripts." } }
        }
    }
}

fn draw_row(simulation: &Simulation<'_>, histories: &[WorkloadHistory], at: usize) -> Markup {
    let Some([name, cells @ ..]) = workload_cells(simulation, histories, at) else {
        return Markup::default();
    };
    let columns = COLUMNS.iter().skip(1);
    html! {
        tr {
            th scope="row" { (name) }
            @for (cell, (_, is_number)) in cells.iter().zip(columns) {
                @if *is_number { td.number { (cell) } } @else { td { (cell) } }
            }
        }
    }
}

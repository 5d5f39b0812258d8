//! The table of workloads. The script sorts and filters it.

use crate::simulation::{Simulation, WORKLOADS_MAX};
use crate::time_text::duration_text;
use crate::workload_states::{FinalState, WorkloadHistory};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// The rows that the page has without the script, which is also the number of rows of a page of the table.
pub(crate) const ROWS_PER_PAGE: usize = 50;

const COLUMNS: [(&str, &str); 10] = [
    ("Workload", ""),
    ("ClusterQueue", ""),
    ("Priority", "number"),
    ("Arrival", "number"),
    ("Wait", "number"),
    ("Finished at", "number"),
    ("State", ""),
    ("Admissions", "number"),
    ("Preemptions", "number"),
    ("Preempted by", ""),
];

/// Returns the table with its controls. `number` makes the identifiers unique on the page.
pub(crate) fn workload_table(
    simulation: &Simulation<'_>,
    histories: &[WorkloadHistory],
    listed: &[usize],
    number: usize,
) -> Markup {
    let id = |name: &str| format!("{name}-{number}");
    let total = simulation.trace.jobs.len();
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
                    option value=(at) { (state.as_str()) }
                }
                option value="preempted" { "preempted at least once" }
            }
        }
        div.scroll tabindex="0" role="group" aria-label="Table of workloads" {
            table.workloads id=(id("workloads")) {
                caption { "Workloads" }
                thead { tr { @for (name, class) in COLUMNS {
                    th scope="col" class=(class) aria-sort="none" { (name) }
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
    let jobs = &simulation.trace.jobs;
    let (Some(job), Some(history)) = (jobs.get(at), histories.get(at)) else {
        return Markup::default();
    };
    let time = |at_s: Option<i64>| at_s.map_or_else(|| "–".to_owned(), duration_text);
    // Each preemptor once, in the order of their first preemptions.
    let mut names: BTreeMap<usize, usize> = BTreeMap::new();
    for (order, preemption) in history.preemptions.iter().enumerate() {
        names.entry(preemption.by).or_insert(order);
    }
    let mut names: Vec<(usize, usize)> = names.into_iter().map(|(by, order)| (order, by)).collect();
    names.sort_unstable();
    let names = names.iter().filter_map(|(_, by)| jobs.get(*by));
    let names: Vec<&str> = names.map(|it| &*it.name).collect();
    html! {
        tr {
            th scope="row" { (job.name) }
            td { (job.cluster_queue) }
            td.number { (job.priority) }
            td.number { (duration_text(job.arrival)) }
            td.number { (time(history.wait_s)) }
            td.number { (time(history.finished_at_s)) }
            td { (history.state.as_str()) }
            td.number { (history.admissions) }
            td.number { (history.preemptions.len()) }
            td { (names.join(", ")) }
        }
    }
}

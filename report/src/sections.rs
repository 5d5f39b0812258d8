//! The sections of one simulation.

use crate::amount_text::number_text;
use crate::cohort_tree::cohort_tree;
use crate::comparison_rows::{eviction_reasons, lost_name, outcome_text};
use crate::gantt::{LINKS_MAX, draw_gantt};
use crate::gantt_layout::GanttLayout;
use crate::plot::Plot;
use crate::quota_usage::QuotaUsage;
use crate::script_data::script_data;
use crate::simulation::{Simulation, WORKLOADS_MAX};
use crate::simulation_plots::SimulationPlots;
use crate::time_text::duration_text;
use crate::workload_rows::listed_workloads;
use crate::workload_states::{WorkloadHistory, workload_histories};
use crate::workload_table::workload_table;
use maud::{Markup, PreEscaped, html};

/// Returns the section of a simulation. `number` makes its identifiers unique on the page; the waits are classified by
/// the bounds.
pub(crate) fn simulation_section(
    simulation: &Simulation<'_>,
    number: usize,
    wait_bounds_s: &[i64],
) -> Markup {
    let usage = QuotaUsage::new(simulation.trace, simulation.timeline);
    let histories = workload_histories(simulation);
    let plots = SimulationPlots::new(simulation, &usage, &histories, wait_bounds_s);
    let listed = listed_workloads(&histories);
    let layout = simulation
        .is_detailed()
        .then(|| GanttLayout::new(simulation.trace));
    let data = script_data(simulation, &histories, &listed, layout.as_ref());
    let id = |name: &str| format!("{name}-{number}");
    html! {
        section id=(id("simulation")) aria-labelledby=(id("title")) {
            h2 id=(id("title")) { (simulation.title()) }
            (summary(simulation))
            (assumptions(simulation))
            h3 id=(id("quota")) { "Quota and use" }
            (cohort_tree(&usage, simulation.until_s()))
            (grid(&plots.cohorts.plots))
            (omitted_note(plots.cohorts.omitted, "cohorts"))
            (grid(&plots.queues.plots))
            (omitted_note(plots.queues.omitted, "ClusterQueues"))
            h3 id=(id("time")) { "Workloads over time" }
            (plots.states.figure())
            @if let Some(layout) = &layout {
                (gantt_figure(simulation, layout, &histories, number))
            } @else {
                p.note {
                    "The trace has more than " (count_text(WORKLOADS_MAX))
                    " workloads: in place of the Gantt chart, the report has the numbers of workloads by state for each ClusterQueue."
                }
                (grid(&plots.queue_states.plots))
                (omitted_note(plots.queue_states.omitted, "ClusterQueues"))
            }
            h3 id=(id("waits")) { "Wait times" }
            p { "The wait of a workload is the time from its arrival to its first admission." }
            (plots.waits_by_queue.figure())
            (plots.waits_by_priority.figure())
            h3 id=(id("list")) { "Workloads" }
            (workload_table(simulation, &histories, &listed, number))
            script type="application/json" id=(id("data")) { (PreEscaped(data)) }
        }
    }
}

fn grid(plots: &[Plot]) -> Markup {
    html! { div.grid { @for plot in plots { (plot.figure()) } } }
}

fn omitted_note(omitted: usize, kind: &str) -> Markup {
    html! {
        @if omitted > 0 {
            p.note { (omitted) " more plots of " (kind) " are left out: those with the least use." }
        }
    }
}

fn count_text(count: usize) -> String {
    number_text(i64::try_from(count).unwrap_or(i64::MAX))
}

fn summary(simulation: &Simulation<'_>) -> Markup {
    let timeline = simulation.timeline;
    let stats = &timeline.stats;
    let reasons = stats.preemptions_by_reason.iter();
    let reasons: Vec<String> = reasons
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let mut rows = vec![
        ("Outcome", outcome_text(timeline.outcome).to_owned()),
        ("Makespan", duration_text(timeline.makespan_s)),
        (
            "Finished",
            format!(
                "{} of {}",
                count_text(stats.finished),
                count_text(stats.jobs)
            ),
        ),
        ("Never admitted", count_text(stats.never_admitted)),
        ("Median wait", duration_text(stats.wait.p50)),
        ("95 % wait", duration_text(stats.wait.p95)),
        ("Backfilled", count_text(stats.backfilled)),
        ("Preemptions", count_text(stats.preemptions)),
    ];
    rows.extend(pods_ready_rows(simulation));
    rows.push((lost_name(stats), duration_text(stats.lost_seconds)));
    html! {
        dl.summary { @for (name, value) in rows {
            div { dt { (name) } dd { (value) } }
        } }
        @if !reasons.is_empty() { p { "Preemptions by reason: " (reasons.join(", ")) "." } }
        @if let Some(reasons) = eviction_reasons(stats) { p { (reasons) } }
    }
}

/// What happened because pods were not ready; nothing if the trace does not say when they are.
fn pods_ready_rows(simulation: &Simulation<'_>) -> Vec<(&'static str, String)> {
    let stats = simulation.timeline.stats.pods_ready.as_ref();
    let rows = stats.map(|it| {
        [
            ("Evictions, pods not ready", count_text(it.evictions)),
            ("Deactivated", count_text(it.deactivated)),
            (
                "Time without ready pods",
                duration_text(it.not_ready_seconds),
            ),
        ]
    });
    rows.into_iter().flatten().collect()
}

/// What the source of the jobs does not say.
fn assumptions(simulation: &Simulation<'_>) -> Markup {
    let assumptions = &simulation.trace.assumptions;
    html! {
        @if !assumptions.is_empty() {
            details open="" {
                summary { "Assumptions" }
                div.scroll tabindex="0" role="group" aria-label="Assumptions" {
                    table {
                        thead { tr { th scope="col" { "Count" } th scope="col" { "Assumption" } } }
                        tbody { @for it in assumptions {
                            tr { td.number { (it.count) } td { (it.text) } }
                        } }
                    }
                }
            }
        }
    }
}

fn gantt_figure(
    simulation: &Simulation<'_>,
    layout: &GanttLayout,
    histories: &[WorkloadHistory],
    number: usize,
) -> Markup {
    let gantt = draw_gantt(simulation, layout, histories);
    let (axis_height, axis) = gantt.axis;
    let axis_view = format!("0 0 960 {axis_height}");
    let view = format!("0 0 960 {}", gantt.height);
    html! {
        figure.gantt data-gantt=(number) {
            figcaption { "Gantt chart of workloads" }
            p.hint hidden="" {
                "Point at a row for its times. Click a row, or press the arrow keys in the chart, to select a workload and its preemptions."
            }
            div.scroll.rows tabindex="0" role="group" aria-label="Gantt chart of workloads; the table of workloads has the same times" {
                svg.plot.wide.axis viewBox=(axis_view) aria-hidden="true" { (axis) }
                svg.plot.wide viewBox=(view) role="img" aria-label="Gantt chart of workloads by ClusterQueue" { (gantt.rows) }
            }
            p.detail role="status" {}
            @if !gantt.has_links {
                p.note {
                    "There are more than " (LINKS_MAX) " preemptions: the chart has the lines of the selected workload only."
                }
            }
        }
    }
}

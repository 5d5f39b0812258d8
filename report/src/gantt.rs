//! The Gantt chart: a row for each workload with its states, and lines from preemptors to victims.

use crate::amount_text::short_name;
use crate::gantt_layout::{GanttGroup, GanttLayout, HEADING_HEIGHT};
use crate::legend::{LegendEntry, draw_legend};
use crate::simulation::Simulation;
use crate::svg_path::{StepPath, pixels, position};
use crate::time_text::{duration_text, time_marks};
use crate::workload_states::{IntervalState, WorkloadHistory};
use maud::{Markup, html};

/// The chart has all lines from preemptors to victims if there are at most so many; else those of the selected workload.
pub(crate) const LINKS_MAX: usize = 200;

/// The left end of the time axis, in pixels.
pub(crate) const LEFT: i64 = 150;

/// The length of the time axis, in pixels.
pub(crate) const LENGTH: i64 = 800;

const WIDTH: i64 = 960;

/// Rows of at least this height have the names of their workloads.
const NAMED_ROW_HEIGHT: i64 = 120;

const NAME_CHARACTERS_MAX: usize = 22;

/// The workloads whose bars are one path, so that a browser draws only those in view.
const CHUNK_ROWS: usize = 200;

/// The shortest bar, in tenths of a pixel.
const BAR_WIDTH_MIN: i64 = 5;

/// The parts of a Gantt chart.
#[derive(Clone, Debug)]
pub(crate) struct Gantt {
    /// In pixels.
    pub(crate) height: i64,
    /// The bars and lines.
    pub(crate) rows: Markup,
    /// The time axis: its height in pixels, and its content.
    pub(crate) axis: (i64, Markup),
    pub(crate) has_links: bool,
}

/// Draws the chart. Costs the number of intervals.
pub(crate) fn draw_gantt(
    simulation: &Simulation<'_>,
    layout: &GanttLayout,
    histories: &[WorkloadHistory],
) -> Gantt {
    let until_s = simulation.until_s();
    let preemptions = histories.iter().map(|it| it.preemptions.len());
    let has_links = preemptions.sum::<usize>() <= LINKS_MAX;
    let height = layout.height.saturating_add(9).div_euclid(10);
    let marks = time_marks(until_s, 8);
    let rows = html! {
        @for at_s in &marks {
            path.grid d={ "M" (pixels(x(*at_s, until_s))) " 0V" (height) } {}
        }
        @for group in &layout.groups { (draw_group(simulation, layout, group, histories)) }
        @if has_links { g transform="scale(.1)" { (draw_links(layout, histories, until_s)) } }
        g.selection transform="scale(.1)" {}
    };
    let (legend, legend_height) = draw_legend(&legend_entries(simulation), 8, WIDTH);
    let axis_y = legend_height.saturating_add(16);
    let axis = html! {
        (legend)
        @for at_s in &marks {
            text.time x=(pixels(x(*at_s, until_s))) y=(axis_y) { (duration_text(*at_s)) }
        }
    };
    Gantt {
        height,
        rows,
        axis: (axis_y.saturating_add(6), axis),
        has_links,
    }
}

/// The position of a time, in tenths of a pixel.
fn x(at_s: i64, until_s: i64) -> i64 {
    position(at_s, until_s, LENGTH * 10).saturating_add(LEFT * 10)
}

fn legend_entries(simulation: &Simulation<'_>) -> Vec<LegendEntry> {
    let states = IntervalState::possible(simulation).map(|state| LegendEntry {
        name: state.label().to_owned(),
        class: state.class().to_owned(),
        is_line: false,
    });
    let link = LegendEntry {
        name: "Preemptor → victim".to_owned(),
        class: "link".to_owned(),
        is_line: true,
    };
    states.chain(std::iter::once(link)).collect()
}

fn draw_group(
    simulation: &Simulation<'_>,
    layout: &GanttLayout,
    group: &GanttGroup,
    histories: &[WorkloadHistory],
) -> Markup {
    let queue = simulation.trace.cluster_queues.get(group.queue);
    let name = queue.map_or("", |it| &*it.name);
    let has_names = layout.row_height >= NAMED_ROW_HEIGHT;
    let until_s = simulation.until_s();
    let baseline = layout.row_height.saturating_mul(3).div_euclid(4);
    html! {
        g {
            path.band d={ "M0 " (pixels(group.top.saturating_add(20))) "h" (WIDTH) "v" (pixels(HEADING_HEIGHT - 40)) "H0z" } {}
            text.heading x="8" y=(pixels(group.top.saturating_add(155))) {
                (short_name(name, 60)) " (" (group.jobs.len()) ")"
            }
            @if has_names { @for job in &group.jobs {
                @let name = simulation.trace.jobs.get(*job).map_or("", |it| &*it.name);
                text.row x=(LEFT - 8) y=(pixels(layout.top(*job).saturating_add(baseline))) {
                    (short_name(name, NAME_CHARACTERS_MAX))
                }
            } }
            g transform="scale(.1)" {
                @for jobs in group.jobs.chunks(CHUNK_ROWS) {
                    @for (state, path) in bars(layout, jobs, histories, until_s) {
                        path class=(state.class()) d=(path.as_str()) {}
                    }
                }
            }
        }
    }
}

/// The bars of some workloads, by state.
fn bars(
    layout: &GanttLayout,
    jobs: &[usize],
    histories: &[WorkloadHistory],
    until_s: i64,
) -> impl Iterator<Item = (IntervalState, StepPath)> + use<> {
    let mut paths: [StepPath; IntervalState::ALL.len()] = Default::default();
    for job in jobs {
        let intervals = histories.get(*job).map(|it| it.intervals.as_slice());
        for interval in intervals.unwrap_or_default() {
            let left = x(interval.from_s, until_s);
            let width = x(interval.to_s, until_s).saturating_sub(left);
            // Pending workloads are thin, so that the states differ without their colours.
            let (from, height) = match interval.state {
                IntervalState::Pending => (40, 20),
                _ => (10, 80),
            };
            let part = |percent: i64| layout.row_height.saturating_mul(percent).div_euclid(100);
            let top = layout.top(*job).saturating_add(part(from));
            if let Some(path) = paths.get_mut(interval.state.index()) {
                path.rectangle((left, top), width.max(BAR_WIDTH_MIN), part(height));
            }
        }
    }
    let paths = IntervalState::ALL.into_iter().zip(paths);
    paths.filter(|(_, path)| !path.is_empty())
}

/// Vertical lines at the time of each preemption, with an arrow at the victim.
fn draw_links(layout: &GanttLayout, histories: &[WorkloadHistory], until_s: i64) -> Markup {
    let middle = |job: usize| {
        layout
            .top(job)
            .saturating_add(layout.row_height.div_euclid(2))
    };
    let mut lines = StepPath::default();
    let mut arrows = StepPath::default();
    for (victim, history) in histories.iter().enumerate() {
        for preemption in &history.preemptions {
            let at = x(preemption.at_s, until_s);
            let (from, to) = (middle(preemption.by), middle(victim));
            lines.move_to(at, from);
            lines.vertical_to(to);
            let back = if from < to { -60 } else { 60 };
            arrows.push(&format!("M{at} {to}l-30 {back}h60z"));
        }
    }
    html! {
        @if !lines.is_empty() {
            path.link d=(lines.as_str()) {}
            path.arrow d=(arrows.as_str()) {}
        }
    }
}

//! The selected workload of the Gantt chart: its times and its preemptions.

use super::areas::{cells, row, split_top};
use super::canvas::Canvas;
use super::gantt_rows::{GanttRows, PreemptionLink};
use super::palette::{DIM, HEADING};
use super::simulation_data::SimulationData;
use crate::simulation::Simulation;
use crate::time_text::duration_text;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Draws a workload, by index, with the visible ones of its preemptions.
pub(crate) fn draw_detail(
    canvas: &mut Canvas<'_>,
    area: Rect,
    data: &SimulationData<'_>,
    (job, chosen): (usize, usize),
) {
    let (head, links) = split_top(area, 1);
    canvas.text(head, &workload_text(data, job).unwrap_or_default(), HEADING);
    let rows: &GanttRows = data.gantt_rows();
    let count = rows.links_count(data.histories(), job);
    if count == 0 {
        let text = "It is not preempted, and preempts no workload.";
        canvas.text(row(links, 0), text, DIM);
        return;
    }
    let height = usize::from(links.height);
    let first = chosen.saturating_add(1).saturating_sub(height);
    for offset in 0..links.height {
        let at = first.saturating_add(usize::from(offset));
        let Some(link) = rows.link(data.histories(), job, at) else {
            return;
        };
        let mark = if at == chosen { "▸" } else { " " };
        let mut text = format!("{mark} {}", link_text(&data.simulation, link));
        let is_last = offset.saturating_add(1) == cells(height);
        let others = count.saturating_sub(at.saturating_add(1));
        if is_last && others > 0 {
            text = format!("{text} ({others} more)");
        }
        canvas.text(row(links, offset), &text, Style::new());
    }
}

fn workload_text(data: &SimulationData<'_>, job: usize) -> Option<String> {
    let history = data.histories().get(job)?;
    let job = data.simulation.trace.jobs.get(job)?;
    let wait = history.wait_s.map_or_else(
        || "never admitted".to_owned(),
        |it| format!("wait {}", duration_text(it)),
    );
    let state = match history.finished_at_s {
        Some(at_s) => format!("finished at {}", duration_text(at_s)),
        None => history.state.as_str().to_owned(),
    };
    Some(format!(
        "{}: ClusterQueue {}, priority {}, arrival {}, {wait}, {state}",
        job.name,
        job.cluster_queue,
        job.priority,
        duration_text(job.arrival)
    ))
}

fn link_text(simulation: &Simulation<'_>, link: PreemptionLink) -> String {
    let at = duration_text(link.at_s);
    let verb = if link.is_victim {
        "preempts"
    } else {
        "is preempted by"
    };
    let Some(other) = simulation.trace.jobs.get(link.other) else {
        return format!("{at}: {verb} another workload");
    };
    format!(
        "{at}: {verb} {} (ClusterQueue {}, priority {})",
        other.name, other.cluster_queue, other.priority
    )
}

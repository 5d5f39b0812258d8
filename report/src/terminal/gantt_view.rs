//! The Gantt chart: a row for each workload, a column for each part of the time.

use super::areas::{row, split_bottom, split_left, split_top};
use super::canvas::Canvas;
use super::gantt_bars::column_states;
use super::gantt_detail::draw_detail;
use super::gantt_rows::{GanttRow, GanttRows, PreemptionLink, preemption_roles};
use super::key::Key;
use super::list_state::ListState;
use super::motion::Motion;
use super::palette::{DIM, HEADING, Mark, SELECTED};
use super::pane::{Context, Handled, Pane};
use super::simulation_data::SimulationData;
use super::time_scale::TimeScale;
use crate::amount_text::number_text;
use crate::simulation::{Simulation, WORKLOADS_MAX};
use crate::workload_states::IntervalState;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// The most times that the scale of time is doubled.
const ZOOM_MAX: u32 = 40;

/// The most workloads to go back to.
const BACK_MAX: usize = 100;

/// The least and the most cells of the names of workloads.
const NAME_WIDTHS: (u16, u16) = (10, 30);

/// The least and the most rows for the selected workload.
const DETAIL_HEIGHTS: (u16, u16) = (2, 8);

/// The view.
#[derive(Clone, Debug, Default)]
pub(crate) struct GanttView {
    list: ListState,
    /// The chosen preemption of the selected workload.
    link: usize,
    /// The workloads from which a preemption was followed, the last one at the end.
    back: Vec<usize>,
    zoom: u32,
    from_s: i64,
}

impl Pane for GanttView {
    fn keys(&self) -> &'static str {
        "↑↓ select  g preemptor  e next  b back  +- ←→ time"
    }

    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled {
        let data = context.shown;
        if !data.simulation.is_detailed() {
            return Handled::No;
        }
        let rows = data.gantt_rows();
        let until_s = data.simulation.until_s();
        match key {
            Key::Enter | Key::Char('g') => self.follow(data, rows),
            Key::Char('e') => self.choose(data, rows, true),
            Key::Char('E') => self.choose(data, rows, false),
            Key::Char('b') | Key::Backspace => {
                if let Some(job) = self.back.pop() {
                    self.select(rows, job);
                }
            }
            Key::Char('+') => self.scale(until_s, self.zoom.saturating_add(1)),
            Key::Char('-') => self.scale(until_s, self.zoom.saturating_sub(1)),
            Key::Char('0') => self.scale(until_s, 0),
            _ => {
                let Some(motion) = Motion::from_key(key) else {
                    return Handled::No;
                };
                self.step(motion, rows, until_s);
            }
        }
        Handled::Yes
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>) {
        let data = context.shown;
        if !data.simulation.is_detailed() {
            draw_note(canvas, area);
            return;
        }
        let rows = data.gantt_rows();
        let (legend, area) = split_top(area, 1);
        canvas.legend(legend, &legend_entries(canvas, &data.simulation));
        let (least, most) = DETAIL_HEIGHTS;
        let (area, detail) = split_bottom(area, area.height.div_euclid(4).clamp(least, most));
        let (body, axis) = split_bottom(area, 1);
        let (least, most) = NAME_WIDTHS;
        let name_width = area.width.div_euclid(4).clamp(least, most);
        let (_, axis) = split_left(axis, name_width);
        let scale = self.time_scale(data.simulation.until_s(), axis.width);
        scale.draw_axis(canvas, axis);
        let Some(job) = self.selected_job(rows) else {
            canvas.text(row(body, 0), "No workloads.", Style::new());
            return;
        };
        let window = self.window(usize::from(body.height), rows);
        if let Some(link) = rows.link(data.histories(), job, self.link) {
            draw_time_mark(canvas, axis, scale, link);
            let ends = [rows.row_of(job), rows.row_of(link.other)];
            let column = scale.column(link.at_s);
            draw_line(canvas, (body, axis.x), window.start, (ends, column));
        }
        for (offset, at) in (0_u16..).zip(window) {
            let line = row(body, offset);
            match rows.rows.get(at) {
                Some(GanttRow::Heading { queue, count }) => {
                    draw_heading(canvas, line, data, (*queue, *count));
                }
                Some(GanttRow::Workload(it)) => {
                    let (name, bar) = split_left(line, name_width);
                    draw_name(canvas, name, data, (*it, job));
                    draw_bar(canvas, bar, data, (*it, scale));
                }
                None => break,
            }
        }
        draw_detail(canvas, detail, data, (job, self.link));
    }
}

impl GanttView {
    /// Selects a workload.
    pub(crate) fn select(&mut self, rows: &GanttRows, job: usize) {
        self.list.select(rows.row_of(job));
        self.link = 0;
    }

    /// The selected workload; `None` if there are no workloads.
    fn selected_job(&self, rows: &GanttRows) -> Option<usize> {
        let at = self.list.selected(rows.rows.len());
        let below = rows.rows.iter().skip(at);
        let mut workloads = below.filter_map(|it| match it {
            GanttRow::Workload(job) => Some(*job),
            GanttRow::Heading { .. } => None,
        });
        workloads.next()
    }

    fn step(&mut self, motion: Motion, rows: &GanttRows, until_s: i64) {
        let quarter_s = self.length_s(until_s).div_euclid(4).max(1);
        match motion {
            Motion::Left => self.from_s = self.from_s.saturating_sub(quarter_s),
            Motion::Right => self.from_s = self.from_s.saturating_add(quarter_s),
            _ => {
                let count = rows.rows.len();
                self.list.step(motion, count);
                let at = self.list.selected(count);
                let is_up = matches!(motion, Motion::Up | Motion::PageUp);
                if let Some(GanttRow::Heading { .. }) = rows.rows.get(at) {
                    let above = at.checked_sub(1).filter(|_| is_up);
                    self.list.select(above.unwrap_or(at.saturating_add(1)));
                }
                self.link = 0;
                self.back.clear();
            }
        }
        self.clamp_time(until_s);
    }

    /// Selects the other workload of the chosen preemption.
    fn follow(&mut self, data: &SimulationData<'_>, rows: &GanttRows) {
        let histories = data.histories();
        let Some(job) = self.selected_job(rows) else {
            return;
        };
        let Some(link) = rows.link(histories, job, self.link) else {
            return;
        };
        self.select(rows, link.other);
        // The same preemption is chosen there, so that the same key leads back.
        let count = rows.links_count(histories, link.other);
        let is_same = |at: &usize| {
            let it = rows.link(histories, link.other, *at);
            it.is_some_and(|it| it.other == job && it.at_s == link.at_s)
        };
        self.link = (0..count).find(is_same).unwrap_or_default();
        self.back.push(job);
        if self.back.len() > BACK_MAX {
            self.back.remove(0);
        }
        self.show_time(data.simulation.until_s(), link.at_s);
    }

    /// Chooses the next or the previous preemption of the selected workload.
    fn choose(&mut self, data: &SimulationData<'_>, rows: &GanttRows, is_next: bool) {
        let Some(job) = self.selected_job(rows) else {
            return;
        };
        let count = rows.links_count(data.histories(), job);
        let by = if is_next { 1 } else { count.saturating_sub(1) };
        let at = self.link.saturating_add(by).checked_rem(count);
        self.link = at.unwrap_or_default();
        if let Some(link) = rows.link(data.histories(), job, self.link) {
            self.show_time(data.simulation.until_s(), link.at_s);
        }
    }

    fn length_s(&self, until_s: i64) -> i64 {
        until_s.checked_shr(self.zoom).unwrap_or_default().max(1)
    }

    /// Changes the scale; the middle stays where it is.
    fn scale(&mut self, until_s: i64, zoom: u32) {
        let half_s = self.length_s(until_s).div_euclid(2);
        let middle_s = self.from_s.saturating_add(half_s);
        self.zoom = zoom.min(ZOOM_MAX);
        let half_s = self.length_s(until_s).div_euclid(2);
        self.from_s = middle_s.saturating_sub(half_s);
        self.clamp_time(until_s);
    }

    /// Moves the range of time so that it has a time, unless it already does.
    fn show_time(&mut self, until_s: i64, at_s: i64) {
        let length_s = self.length_s(until_s);
        let to_s = self.from_s.saturating_add(length_s);
        if !(self.from_s..to_s).contains(&at_s) {
            self.from_s = at_s.saturating_sub(length_s.div_euclid(2));
        }
        self.clamp_time(until_s);
    }

    fn clamp_time(&mut self, until_s: i64) {
        let last_s = until_s.saturating_sub(self.length_s(until_s)).max(0);
        self.from_s = self.from_s.clamp(0, last_s);
    }

    fn time_scale(&mut self, until_s: i64, width: u16) -> TimeScale {
        self.clamp_time(until_s);
        TimeScale {
            from_s: self.from_s,
            length_s: self.length_s(until_s),
            width,
        }
    }

    /// The visible rows, with the heading above the selected row if it is the first of its ClusterQueue.
    fn window(&mut self, height: usize, rows: &GanttRows) -> std::ops::Range<usize> {
        let count = rows.rows.len();
        let at = self.list.selected(count);
        let above = at.checked_sub(1);
        let above = above.filter(|it| matches!(rows.rows.get(*it), Some(GanttRow::Heading { .. })));
        if let Some(above) = above {
            self.list.select(above);
            self.list.window(height, count);
            self.list.select(at);
        }
        self.list.window(height, count)
    }
}

/// In place of the chart of too many workloads.
fn draw_note(canvas: &mut Canvas<'_>, area: Rect) {
    let most = number_text(i64::try_from(WORKLOADS_MAX).unwrap_or(i64::MAX));
    let lines = [
        format!("The trace has more than {most} workloads."),
        "In place of the Gantt chart, the view States (4) has the numbers".to_owned(),
        "of workloads by state for each ClusterQueue.".to_owned(),
    ];
    for (offset, line) in (0_u16..).zip(&lines) {
        canvas.text(row(area, offset), line, Style::new());
    }
}

fn legend_entries(canvas: &Canvas<'_>, simulation: &Simulation<'_>) -> Vec<(Mark, String)> {
    let states = IntervalState::possible(simulation);
    let states = states.map(|it| (canvas.palette.state(it), it.label().to_owned()));
    let style = HEADING;
    let roles = [('▲', "Preemptor"), ('▼', "Victim")];
    let roles = roles.map(|(glyph, text)| (Mark { glyph, style }, text.to_owned()));
    states.chain(roles).collect()
}

/// A mark on the axis at the time of the chosen preemption.
fn draw_time_mark(canvas: &mut Canvas<'_>, axis: Rect, scale: TimeScale, link: PreemptionLink) {
    let Some(column) = scale.column(link.at_s) else {
        return;
    };
    let mark = Rect {
        x: axis.x.saturating_add(column),
        width: 1,
        ..axis
    };
    canvas.restyle(mark, SELECTED);
}

/// A line between the rows of a preemptor and its victim, at the time of the preemption. Bars are drawn over it.
fn draw_line(
    canvas: &mut Canvas<'_>,
    (body, left): (Rect, u16),
    first_row: usize,
    (ends, column): ([usize; 2], Option<u16>),
) {
    let Some(column) = column else { return };
    let [from, to] = ends;
    let mark = Mark {
        glyph: '┊',
        style: DIM,
    };
    for offset in 0..body.height {
        let row = first_row.saturating_add(usize::from(offset));
        if row > from.min(to) && row < from.max(to) {
            let y = body.y.saturating_add(offset);
            canvas.glyph((left.saturating_add(column), y), mark);
        }
    }
}

fn draw_heading(
    canvas: &mut Canvas<'_>,
    line: Rect,
    data: &SimulationData<'_>,
    (queue, count): (usize, usize),
) {
    let queue = data.simulation.trace.cluster_queues.get(queue);
    let name = queue.map_or("", |it| &*it.name);
    let text = format!("{name} ({count})");
    canvas.text(line, &text, HEADING);
}

/// The name of a workload, with a mark if it takes part in preemptions of the selected one.
fn draw_name(
    canvas: &mut Canvas<'_>,
    area: Rect,
    data: &SimulationData<'_>,
    (job, selected): (usize, usize),
) {
    let (is_preemptor, is_victim) = preemption_roles(data.histories(), job, selected);
    let style = HEADING;
    if is_preemptor {
        canvas.glyph(
            (area.x, area.y),
            Mark {
                glyph: '▲', style
            },
        );
    }
    if is_victim {
        let x = area.x.saturating_add(u16::from(is_preemptor));
        canvas.glyph(
            (x, area.y),
            Mark {
                glyph: '▼', style
            },
        );
    }
    let (_, text) = split_left(area, 2);
    let text = Rect {
        width: text.width.saturating_sub(1),
        ..text
    };
    let name = data.simulation.trace.jobs.get(job);
    canvas.text(text, name.map_or("", |it| &*it.name), Style::new());
    if job == selected {
        canvas.restyle(text, SELECTED);
    }
}

fn draw_bar(
    canvas: &mut Canvas<'_>,
    bar: Rect,
    data: &SimulationData<'_>,
    (job, scale): (usize, TimeScale),
) {
    let intervals = data.histories().get(job).map(|it| it.intervals.as_slice());
    let states = column_states(intervals.unwrap_or_default(), scale);
    for (column, state) in (0_u16..).zip(states) {
        if let Some(state) = state {
            let mark = canvas.palette.state(state);
            canvas.glyph((bar.x.saturating_add(column), bar.y), mark);
        }
    }
}

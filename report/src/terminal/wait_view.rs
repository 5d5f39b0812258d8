//! Waits by ClusterQueue and by priority.

use super::areas::{cells, row, split_top};
use super::canvas::Canvas;
use super::cell_row::{Column, column_areas, draw_cells};
use super::key::Key;
use super::list_state::ListState;
use super::motion::Motion;
use super::palette::{DIM, HEADING, Mark, SELECTED};
use super::pane::{Context, Handled, Pane};
use super::simulation_data::WaitTable;
use crate::amount_text::number_text;
use crate::svg_path::position;
use crate::wait_rows::{ROWS_MAX, WaitRow, class_labels, number, wait_text};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// The cells of the numbers, and of the durations.
const NUMBER_WIDTH: u16 = 9;
const DURATION_WIDTH: u16 = 11;

/// At this width there is space for the numbers of workloads.
const WIDTH_WITH_NUMBERS: u16 = 78;

/// The most cells of names.
const NAME_WIDTH_MAX: u16 = 32;

/// The most rows of the legend.
const LEGEND_ROWS_MAX: u16 = 3;

/// A line of the list.
#[derive(Clone, Debug)]
enum Line<'a> {
    Title(&'static str),
    Row(&'a WaitRow),
    Note(String),
}

/// The view.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitView {
    list: ListState,
}

impl Pane for WaitView {
    fn keys(&self) -> &'static str {
        "↑↓ select"
    }

    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled {
        let tables = context.shown.waits(context.wait_bounds_s);
        let count = lines(tables).len();
        let motion = Motion::from_key(key);
        if motion.is_some_and(|it| self.list.step(it, count)) {
            return Handled::Yes;
        }
        Handled::No
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>) {
        let tables = context.shown.waits(context.wait_bounds_s);
        let lines = lines(tables);
        let entries = legend_entries(canvas, context.wait_bounds_s, tables);
        let (legend, _) = split_top(area, LEGEND_ROWS_MAX);
        let legend_rows = canvas.legend(legend, &entries);
        let (_, area) = split_top(area, legend_rows);
        let columns = columns(area.width);
        let (head, body) = split_top(area, 1);
        let heads = ["", "Share", "Workloads", "Median", "95 %", "Longest"];
        draw_cells(canvas, head, &columns, heads, HEADING);
        let window = self.list.window(usize::from(body.height), lines.len());
        let selected = self.list.selected(lines.len());
        for (offset, at) in (0_u16..).zip(window) {
            let place = row(body, offset);
            match lines.get(at) {
                Some(Line::Title(title)) => {
                    canvas.text(place, title, HEADING);
                }
                Some(Line::Row(it)) => draw_row(canvas, place, &columns, it),
                Some(Line::Note(note)) => {
                    canvas.text(place, note, DIM);
                }
                None => break,
            }
            if at == selected {
                canvas.restyle(place, SELECTED);
            }
        }
    }
}

fn lines(tables: &[WaitTable]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for table in tables {
        lines.push(Line::Title(table.title));
        lines.extend(table.rows.iter().map(Line::Row));
        if table.omitted > 0 {
            let omitted = table.omitted;
            lines.push(Line::Note(format!(
                "The {ROWS_MAX} groups with the most workloads; {omitted} groups are left out."
            )));
        }
    }
    lines
}

/// The classes of waits; workloads that were never admitted only if there are some.
fn legend_entries(
    canvas: &Canvas<'_>,
    bounds_s: &[i64],
    tables: &[WaitTable],
) -> Vec<(Mark, String)> {
    let labels = class_labels(bounds_s);
    let count = labels.len();
    let mut rows = tables.iter().flat_map(|it| &it.rows);
    let has_never = rows.any(|it| it.counts.last() > Some(&0));
    let shown = if has_never {
        count
    } else {
        count.saturating_sub(1)
    };
    let entries = labels.into_iter().enumerate().take(shown);
    let entries = entries.map(|(at, label)| (class_mark(canvas, at, count), label));
    entries.collect()
}

/// The last class is of workloads that were never admitted.
fn class_mark(canvas: &Canvas<'_>, at: usize, count: usize) -> Mark {
    if at.saturating_add(1) == count {
        return canvas.palette.never();
    }
    canvas.palette.wait(at)
}

/// Name, bar, number of workloads, median, 95 % and longest.
fn columns(width: u16) -> [Column; 6] {
    let column = |width: u16, is_right: bool| Column { width, is_right };
    let name = width.div_euclid(5).min(NAME_WIDTH_MAX);
    let number = if width < WIDTH_WITH_NUMBERS {
        0
    } else {
        NUMBER_WIDTH
    };
    let duration = column(DURATION_WIDTH, true);
    let fixed = number
        .saturating_add(DURATION_WIDTH.saturating_mul(3))
        .saturating_add(5);
    let bar = width.saturating_sub(name).saturating_sub(fixed);
    [
        column(name, false),
        column(bar, false),
        column(number, true),
        duration,
        duration,
        duration,
    ]
}

fn draw_row(canvas: &mut Canvas<'_>, place: Rect, columns: &[Column], it: &WaitRow) {
    let total = number_text(number(it.total));
    let [median, most, longest] = it.percentiles_s.map(wait_text);
    let texts = ["", "", &total, &median, &most, &longest];
    draw_cells(canvas, place, columns, texts, Style::new());
    let mut areas = column_areas(place, columns);
    if let Some(name) = areas.next() {
        canvas.text(name, &format!("  {}", it.name), Style::new());
    }
    if let Some(bar) = areas.next() {
        draw_bar(canvas, bar, it);
    }
}

fn draw_bar(canvas: &mut Canvas<'_>, area: Rect, it: &WaitRow) {
    let total = number(it.total);
    let mut until = 0_i64;
    let mut left = 0_u16;
    for (at, count) in it.counts.iter().enumerate() {
        until = until.saturating_add(number(*count));
        let right = position(until, total, area.width.into());
        let right = cells(usize::try_from(right).unwrap_or_default());
        let mark = class_mark(canvas, at, it.counts.len());
        for offset in left..right {
            canvas.glyph((area.x.saturating_add(offset), area.y), mark);
        }
        left = right;
    }
}

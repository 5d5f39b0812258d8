//! The measures of all simulations side by side.

use super::areas::{cells, row, split_bottom, split_left, split_top};
use super::canvas::Canvas;
use super::cell_row::{Column, column_areas};
use super::key::Key;
use super::list_state::ListState;
use super::motion::Motion;
use super::palette::{DIM, HEADING, SELECTED};
use super::pane::{Context, Handled, Pane};
use super::simulation_data::SimulationData;
use crate::comparison_rows::{ComparisonRow, comparison_rows, eviction_reasons};
use crate::simulation::Simulation;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// The least and the most cells of a simulation, and the most of the names of measures.
const SIMULATION_WIDTHS: (u16, u16) = (18, 28);
const NAME_WIDTH_MAX: usize = 32;

/// The most rows for the reasons and assumptions.
const NOTE_ROWS_MAX: usize = 8;

/// The view.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComparisonView {
    rows: Option<Vec<ComparisonRow>>,
    list: ListState,
    /// The first visible simulation.
    first: usize,
}

impl Pane for ComparisonView {
    fn keys(&self) -> &'static str {
        "↑↓ row  ←→ simulations"
    }

    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled {
        let Some(motion) = Motion::from_key(key) else {
            return Handled::No;
        };
        match motion {
            Motion::Left => self.first = self.first.saturating_sub(1),
            Motion::Right => {
                let last = context.simulations.len().saturating_sub(1);
                self.first = self.first.saturating_add(1).min(last);
            }
            _ => {
                let count = self.rows.as_ref().map_or(0, Vec::len);
                self.list.step(motion, count);
            }
        }
        Handled::Yes
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>) {
        let rows = self.rows.get_or_insert_with(|| rows(context.simulations));
        let names = rows.iter().map(|it| it.name.chars().count());
        let width = names.max().unwrap_or_default().min(NAME_WIDTH_MAX);
        let (_, beside) = split_left(area, cells(width).saturating_add(1));
        let (narrow, wide) = SIMULATION_WIDTHS;
        let each = beside.width.checked_div(cells(context.simulations.len()));
        let each = each
            .unwrap_or_default()
            .saturating_sub(1)
            .clamp(narrow, wide);
        let fitting = beside.width.checked_div(each.saturating_add(1));
        let fitting = usize::from(fitting.unwrap_or_default().max(1));
        let last = context.simulations.len().saturating_sub(fitting);
        self.first = self.first.min(last);
        let notes = notes(&context.shown.simulation, rows);
        let notes_height = cells(notes.len().min(NOTE_ROWS_MAX));
        let notes_height = notes_height.min(area.height.saturating_sub(3).div_euclid(2));
        let (table, notes_area) = split_bottom(area, notes_height);
        let (heads, body) = split_top(table, 2);
        let columns = [Column {
            width: each,
            is_right: false,
        }]
        .repeat(fitting);
        draw_heads(canvas, heads, (width, &columns), self.first, context);
        let window = self.list.window(usize::from(body.height), rows.len());
        let selected = self.list.selected(rows.len());
        for (offset, at) in (0_u16..).zip(window) {
            let Some(measure) = rows.get(at) else { break };
            let line = row(body, offset);
            let (name, cells_area) = split_left(line, cells(width).saturating_add(1));
            canvas.text(name, &measure.name, Style::new());
            let shown = measure.cells.iter().skip(self.first);
            for (cell, place) in shown.zip(column_areas(cells_area, &columns)) {
                let mut text = cell.text.clone();
                if let Some(change) = &cell.change {
                    text = format!("{text} ({change})");
                }
                canvas.text(place, &text, Style::new());
            }
            if at == selected {
                canvas.restyle(line, SELECTED);
            }
        }
        for (offset, note) in (0..notes_height).zip(&notes) {
            canvas.text(row(notes_area, offset), note, DIM);
        }
    }
}

fn rows(simulations: &[SimulationData<'_>]) -> Vec<ComparisonRow> {
    let simulations: Vec<Simulation<'_>> = simulations.iter().map(|it| it.simulation).collect();
    comparison_rows(&simulations)
}

/// The trace and the configuration of each simulation; the one that other views show has a mark.
fn draw_heads(
    canvas: &mut Canvas<'_>,
    area: Rect,
    (width, columns): (usize, &[Column]),
    first: usize,
    context: Context<'_, '_>,
) {
    let style = HEADING;
    let (names, beside) = split_left(area, cells(width).saturating_add(1));
    canvas.text(row(names, 0), "Measure", style);
    let shown = context.simulations.iter().enumerate().skip(first);
    let places = column_areas(row(beside, 0), columns).zip(column_areas(row(beside, 1), columns));
    for ((at, data), (upper, lower)) in shown.zip(places) {
        let mark = if at == context.at { "▸" } else { " " };
        let id = format!("{mark}{}", data.simulation.id);
        canvas.text(upper, &id, style);
        if let Some(config) = data.simulation.config {
            canvas.text(lower, &format!(" {config}"), style);
        }
    }
}

/// What the differences are, and the reasons of preemptions and the assumptions of the shown simulation.
fn notes(simulation: &Simulation<'_>, rows: &[ComparisonRow]) -> Vec<String> {
    let reasons = simulation.timeline.stats.preemptions_by_reason.iter();
    let reasons: Vec<String> = reasons
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let mut notes = Vec::new();
    let mut cells = rows.iter().flat_map(|it| &it.cells);
    if cells.any(|it| it.change.is_some()) {
        notes.push(
            "In parentheses: the difference from the first configuration of the same trace"
                .to_owned(),
        );
    }
    if !reasons.is_empty() {
        let reasons = reasons.join(", ");
        notes.push(format!("▸ Preemptions by reason: {reasons}."));
    }
    if let Some(reasons) = eviction_reasons(&simulation.timeline.stats) {
        notes.push(format!("▸ {reasons}"));
    }
    let assumptions = simulation.trace.assumptions.iter();
    notes.extend(assumptions.map(|it| format!("▸ {} × {}", it.count, it.text)));
    if notes.len() > NOTE_ROWS_MAX {
        let kept = NOTE_ROWS_MAX.saturating_sub(1);
        let omitted = notes.split_off(kept).len();
        notes.push(format!("▸ {omitted} more assumptions are in the report."));
    }
    notes
}

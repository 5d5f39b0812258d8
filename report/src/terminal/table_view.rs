//! The table of workloads.

use super::areas::{row, split_bottom, split_top};
use super::canvas::Canvas;
use super::cell_row::{Column, column_areas, draw_cells};
use super::filter_text::FilterText;
use super::key::Key;
use super::list_state::ListState;
use super::motion::Motion;
use super::palette::{DIM, HEADING, SELECTED};
use super::pane::{Context, Handled, Pane};
use super::workload_order::{Sorting, ordered_workloads};
use crate::simulation::WORKLOADS_MAX;
use crate::workload_rows::{COLUMNS, workload_cells};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// The cells of the columns, except the first and the last one, which have what remains.
const WIDTHS: [u16; 8] = [16, 9, 12, 12, 12, 11, 10, 11];

/// The least and the most cells of the name, and the least of the last column.
const NAME_WIDTHS: (u16, u16) = (12, 40);
const LAST_WIDTH_MIN: u16 = 12;

/// What the order of the rows depends on: the simulation, the sorting and the filter.
type OrderKey = (usize, Option<Sorting>, String);

/// The view.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableView {
    list: ListState,
    /// The selected column.
    column: usize,
    /// The first visible column after the name.
    first: usize,
    sorting: Option<Sorting>,
    filter: FilterText,
    order: Option<(OrderKey, Vec<usize>)>,
}

impl Pane for TableView {
    fn keys(&self) -> &'static str {
        if self.filter.is_typing {
            return "type a part of the name  Enter keep  Esc remove";
        }
        "↑↓ ←→ select  s/S sort  / filter  Enter Gantt"
    }

    fn is_typing(&self) -> bool {
        self.filter.is_typing
    }

    fn handle(&mut self, key: Key, context: Context<'_, '_>) -> Handled {
        if self.filter.is_typing {
            self.filter.handle(key);
            self.list.select(0);
            return Handled::Yes;
        }
        let count = self.ordered(context).len();
        match key {
            Key::Char('/') => self.filter.is_typing = true,
            Key::Char('s') => self.sort(false),
            Key::Char('S') => self.sort(true),
            Key::Enter => {
                let at = self.list.selected(count);
                let job = self.ordered(context).get(at).copied();
                return job.map_or(Handled::Yes, Handled::ShowWorkload);
            }
            Key::Left | Key::Char('h') => self.column = self.column.saturating_sub(1),
            Key::Right | Key::Char('l') => {
                let last = COLUMNS.len().saturating_sub(1);
                self.column = self.column.saturating_add(1).min(last);
            }
            _ => {
                let motion = Motion::from_key(key);
                if !motion.is_some_and(|it| self.list.step(it, count)) {
                    return Handled::No;
                }
            }
        }
        Handled::Yes
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, context: Context<'_, '_>) {
        let (table, status) = split_bottom(area, 1);
        let columns = self.fit_columns(area.width);
        let shown: Vec<Column> = columns.iter().map(|(_, column)| *column).collect();
        let (head, body) = split_top(table, 1);
        self.draw_head(canvas, head, &columns, &shown);
        let count = self.ordered(context).len();
        let window = self.list.window(usize::from(body.height), count);
        let selected = self.list.selected(count);
        self.draw_status(canvas, status, (window.start, window.end, count), context);
        let simulation = &context.shown.simulation;
        let histories = context.shown.histories();
        let order = self.ordered(context);
        for (offset, at) in (0_u16..).zip(window) {
            let job = order.get(at).copied();
            let Some(cells) = job.and_then(|it| workload_cells(simulation, histories, it)) else {
                break;
            };
            let texts = columns.iter().map(|(column, _)| cells.get(*column));
            let texts = texts.map(|it| it.map_or("", String::as_str));
            let line = row(body, offset);
            draw_cells(canvas, line, &shown, texts, Style::new());
            if at == selected {
                canvas.restyle(line, SELECTED);
            }
        }
    }
}

impl TableView {
    /// The workloads in their order. Computed when the sorting, the filter or the simulation has changed.
    fn ordered(&mut self, context: Context<'_, '_>) -> &[usize] {
        let key = (context.at, self.sorting, self.filter.text.clone());
        if self.order.as_ref().is_none_or(|(it, _)| *it != key) {
            self.order = None;
        }
        let new = || {
            let order = ordered_workloads(context.shown, key.1, &key.2);
            (key, order)
        };
        &self.order.get_or_insert_with(new).1
    }

    fn sort(&mut self, is_descending: bool) {
        self.sorting = Some(Sorting {
            column: self.column,
            is_descending,
        });
        self.list.select(0);
    }

    /// The visible columns with their widths: the name, and others with the selected one among them.
    fn fit_columns(&mut self, width: u16) -> Vec<(usize, Column)> {
        let (narrow, wide) = NAME_WIDTHS;
        let name = width.div_euclid(4).clamp(narrow, wide);
        let width_of = |at: usize| {
            let middle = at.checked_sub(1).and_then(|it| WIDTHS.get(it));
            middle.copied().unwrap_or(LAST_WIDTH_MIN)
        };
        let used = |from: usize, to: usize| {
            let widths = (from..=to).map(|at| width_of(at).saturating_add(1));
            widths.fold(name, u16::saturating_add)
        };
        let selected = self.column.max(1);
        self.first = self.first.clamp(1, selected);
        while self.first < selected && used(self.first, selected) > width {
            self.first = self.first.saturating_add(1);
        }
        let last = COLUMNS.len().saturating_sub(1);
        // No space is left over at the end.
        while self.first > 1 && used(self.first.saturating_sub(1), last) <= width {
            self.first = self.first.saturating_sub(1);
        }
        let mut columns = vec![(0, name)];
        let mut free = width.saturating_sub(name);
        for at in self.first..=last {
            let column = width_of(at).min(free.saturating_sub(1));
            // Numbers and times are never cut.
            if column < width_of(at) && at > self.first {
                break;
            }
            free = free.saturating_sub(column.saturating_add(1));
            columns.push((at, column));
        }
        if let Some((_, width)) = columns.last_mut().filter(|(at, _)| *at == last) {
            *width = width.saturating_add(free);
        }
        let columns = columns.into_iter().map(|(at, width)| {
            let is_right = COLUMNS.get(at).is_some_and(|(_, is_number)| *is_number);
            (at, Column { width, is_right })
        });
        columns.collect()
    }

    fn draw_head(
        &self,
        canvas: &mut Canvas<'_>,
        head: Rect,
        columns: &[(usize, Column)],
        shown: &[Column],
    ) {
        let heads = columns.iter().map(|(at, _)| {
            let name = COLUMNS.get(*at).map_or("", |(name, _)| *name);
            match self.sorting.filter(|it| it.column == *at) {
                Some(it) if it.is_descending => format!("▼{name}"),
                Some(_) => format!("▲{name}"),
                None => name.to_owned(),
            }
        });
        let heads: Vec<String> = heads.collect();
        let texts = heads.iter().map(String::as_str);
        draw_cells(canvas, head, shown, texts, HEADING);
        let places = columns.iter().zip(column_areas(head, shown));
        for (_, place) in places.filter(|((at, _), _)| *at == self.column) {
            canvas.restyle(place, SELECTED);
        }
    }

    fn draw_status(
        &self,
        canvas: &mut Canvas<'_>,
        area: Rect,
        (from, to, count): (usize, usize, usize),
        context: Context<'_, '_>,
    ) {
        let mut text = if count == 0 {
            "No workload matches.".to_owned()
        } else {
            format!("Workloads {} to {to} of {count}", from.saturating_add(1))
        };
        if self.filter.is_typing || !self.filter.text.is_empty() {
            let cursor = if self.filter.is_typing { "▏" } else { "" };
            text = format!("Name contains: {}{cursor}  {text}", self.filter.text);
        }
        let total = context.shown.simulation.trace.jobs.len();
        if context.shown.listed().len() < total {
            text = format!(
                "{text}. The table has the {WORKLOADS_MAX} workloads with the longest waits, of {total}."
            );
        }
        canvas.text(area, &text, DIM);
    }
}

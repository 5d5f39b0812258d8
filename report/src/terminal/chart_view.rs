//! A stacked chart over time, with the values at a cursor.

use super::areas::{split_bottom, split_left, split_top};
use super::canvas::Canvas;
use super::chart_columns::ChartColumns;
use super::motion::Motion;
use super::palette::{DIM, HEADING, Mark, limit_mark};
use crate::amount_text::amount_text;
use crate::stacked_chart::StackedChart;
use crate::svg_path::position;
use crate::time_text::duration_text;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// The blocks of one to seven eighths of a cell.
const EIGHTHS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];

/// The cells of the texts of the value axis.
const LABEL_WIDTH: u16 = 10;

/// The most rows of the legend.
const LEGEND_ROWS_MAX: u16 = 4;

/// What a chart shows: the simulation, and the number of the chart in it.
pub(crate) type ChartKey = (usize, usize);

/// A chart that is computed when it is first drawn, and when its width changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChartView {
    drawn: Option<(ChartKey, ChartColumns)>,
    /// The column whose values are shown.
    cursor: u16,
}

impl ChartView {
    /// Moves the cursor; returns whether the direction has a meaning.
    pub(crate) fn step(&mut self, motion: Motion) -> bool {
        let drawn = self.drawn.as_ref();
        let width = drawn.map_or(0, |(_, columns)| columns.scale.width);
        let last = width.saturating_sub(1);
        self.cursor = match motion {
            Motion::Left => self.cursor.saturating_sub(1),
            Motion::Right => self.cursor.saturating_add(1).min(last),
            Motion::Home => 0,
            Motion::End => last,
            _ => return false,
        };
        true
    }

    /// Draws a chart; `chart` returns it if it was not drawn before.
    pub(crate) fn draw<'c>(
        &mut self,
        canvas: &mut Canvas<'_>,
        area: Rect,
        key: ChartKey,
        chart: impl FnOnce() -> Option<StackedChart<'c>>,
    ) {
        let width = area.width.saturating_sub(LABEL_WIDTH).max(1);
        let is_drawn = |drawn: &(ChartKey, ChartColumns)| {
            let (drawn_key, columns) = drawn;
            *drawn_key == key && columns.scale.width == width
        };
        if !self.drawn.as_ref().is_some_and(is_drawn) {
            self.drawn = chart().map(|it| (key, ChartColumns::new(&it, width)));
        }
        let Some((_, columns)) = &self.drawn else {
            canvas.text(area, "No quota and no use.", Style::new());
            return;
        };
        self.cursor = self.cursor.min(width.saturating_sub(1));
        let (title, rest) = split_top(area, 1);
        canvas.text(title, &columns.title, HEADING);
        let (legend, _) = split_top(rest, LEGEND_ROWS_MAX.min(rest.height.div_euclid(3)));
        let rows = canvas.legend(legend, &legend_entries(canvas, columns, self.cursor));
        let (_, rest) = split_top(rest, rows);
        let (plot, axis) = split_bottom(rest, 1);
        let (labels, plot) = split_left(plot, LABEL_WIDTH);
        draw_value_axis(canvas, labels, columns);
        draw_columns(canvas, plot, columns);
        let (_, axis) = split_left(axis, LABEL_WIDTH);
        columns.scale.draw_axis(canvas, axis);
        let cursor = Mark {
            glyph: '▲',
            style: HEADING,
        };
        canvas.glyph((axis.x.saturating_add(self.cursor), axis.y), cursor);
    }
}

/// The names and the values at the cursor.
fn legend_entries(canvas: &Canvas<'_>, columns: &ChartColumns, cursor: u16) -> Vec<(Mark, String)> {
    let palette = canvas.palette;
    let at_s = columns.scale.at_s(cursor);
    let mut time = format!("at {}", duration_text(at_s));
    if columns.mean_over_s > 1 {
        time = format!("{time}, means over {}", duration_text(columns.mean_over_s));
    }
    let cursor_mark = Mark {
        glyph: '▲',
        style: HEADING,
    };
    let text = |name: &str, values: &[i64]| {
        let value = values.get(usize::from(cursor)).copied();
        let amount = amount_text(&columns.resource, value.unwrap_or_default());
        format!("{name} {amount}")
    };
    let series = columns.series.iter().enumerate();
    let series = series.map(|(at, it)| {
        let mark = palette.stack(&it.class, at);
        (mark, text(&it.name, &it.values))
    });
    let lines = columns.lines.iter();
    let lines = lines.map(|it| (limit_mark(&it.class), text(&it.name, &it.values)));
    std::iter::once((cursor_mark, time))
        .chain(series)
        .chain(lines)
        .collect()
}

fn draw_value_axis(canvas: &mut Canvas<'_>, labels: Rect, columns: &ChartColumns) {
    let style = DIM;
    let (texts, _) = split_left(labels, labels.width.saturating_sub(1));
    for mark in columns.marks.iter().rev() {
        let Some(y) = mark_row(labels, *mark, columns.value_max()) else {
            continue;
        };
        let row = Rect {
            y,
            height: 1,
            ..texts
        };
        canvas.text_right(row, &amount_text(&columns.resource, *mark), style);
        canvas.glyph(
            (texts.right(), y),
            Mark {
                glyph: '┤', style
            },
        );
    }
}

/// The row of a value: the one that ends with it.
fn mark_row(area: Rect, value: i64, value_max: i64) -> Option<u16> {
    let height = i64::from(area.height).saturating_mul(8);
    let level = position(value, value_max, height).saturating_sub(1).max(0);
    let above = u16::try_from(level.div_euclid(8)).ok()?;
    let above = above.checked_add(1)?;
    (above <= area.height).then(|| area.bottom().saturating_sub(above))
}

fn draw_columns(canvas: &mut Canvas<'_>, plot: Rect, columns: &ChartColumns) {
    let height = i64::from(plot.height).saturating_mul(8);
    for column in 0..plot.width.min(columns.scale.width) {
        let x = plot.x.saturating_add(column);
        let value_of = |values: &[i64]| {
            let value = values.get(usize::from(column));
            value.copied().unwrap_or_default()
        };
        let mut sum = 0_i64;
        let levels = columns.series.iter().map(|series| {
            sum = sum.saturating_add(value_of(&series.values));
            // A small amount is visible.
            position(sum, columns.value_max(), height).max(i64::from(sum > 0))
        });
        let levels: Vec<i64> = levels.collect();
        for row in 0..plot.height {
            let y = plot.bottom().saturating_sub(row).saturating_sub(1);
            if let Some(mark) =
                stack_mark(canvas, columns, &levels, i64::from(row).saturating_mul(8))
            {
                canvas.glyph((x, y), mark);
            }
        }
        for line in &columns.lines {
            let value = value_of(&line.values);
            let row = mark_row(plot, value, columns.value_max());
            if let Some(y) = row.filter(|_| value > 0) {
                let mark = limit_mark(&line.class);
                canvas.glyph((x, y), mark);
            }
        }
    }
}

/// The glyph of the cell that begins at a level: the part of the stack with most of it, or at the end of the stack the
/// part of the cell.
fn stack_mark(
    canvas: &Canvas<'_>,
    columns: &ChartColumns,
    levels: &[i64],
    from: i64,
) -> Option<Mark> {
    let end = levels.last().copied().unwrap_or_default();
    if end <= from {
        return None;
    }
    let to = from.saturating_add(8);
    let mut below = 0_i64;
    let mut largest = (0_i64, 0_usize);
    for (at, level) in levels.iter().enumerate() {
        let part = level.min(&to).saturating_sub(below.max(from));
        if part > largest.0 {
            largest = (part, at);
        }
        below = *level;
    }
    let class = columns.series.get(largest.1).map_or("", |it| &*it.class);
    let mark = canvas.palette.stack(class, largest.1);
    let eighths = usize::try_from(end.saturating_sub(from)).unwrap_or_default();
    let partial = eighths.checked_sub(1).and_then(|it| EIGHTHS.get(it));
    Some(Mark {
        glyph: partial.copied().unwrap_or(mark.glyph),
        ..mark
    })
}

//! Rows of tables.

use super::canvas::Canvas;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// A column: its width, and whether its cells end at its right edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) width: u16,
    pub(crate) is_right: bool,
}

/// Draws cells with a space between them.
pub(crate) fn draw_cells<'a>(
    canvas: &mut Canvas<'_>,
    row: Rect,
    columns: &[Column],
    texts: impl IntoIterator<Item = &'a str>,
    style: Style,
) {
    for (area, (column, text)) in column_areas(row, columns).zip(columns.iter().zip(texts)) {
        if column.is_right {
            canvas.text_right(area, text, style);
        } else {
            canvas.text(area, text, style);
        }
    }
}

/// Returns where the cells of a row are; those beyond its end are empty.
pub(crate) fn column_areas(row: Rect, columns: &[Column]) -> impl Iterator<Item = Rect> + '_ {
    let mut x = row.x;
    columns.iter().map(move |column| {
        let area = Rect {
            x: x.min(row.right()),
            width: column.width.min(row.right().saturating_sub(x)),
            ..row
        };
        x = x.saturating_add(column.width).saturating_add(1);
        area
    })
}

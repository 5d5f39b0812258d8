//! Parts of areas of a terminal.

use ratatui_core::layout::Rect;

/// Returns a count of cells.
pub(crate) fn cells(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Returns the first rows of an area, and the others.
pub(crate) fn split_top(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let top = Rect {
        height: rows,
        ..area
    };
    let rest = Rect {
        y: area.y.saturating_add(rows),
        height: area.height.saturating_sub(rows),
        ..area
    };
    (top, rest)
}

/// Returns the rows of an area without the last ones, and the last ones.
pub(crate) fn split_bottom(area: Rect, rows: u16) -> (Rect, Rect) {
    split_top(area, area.height.saturating_sub(rows))
}

/// Returns the first columns of an area, and the others.
pub(crate) fn split_left(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    let left = Rect {
        width: columns,
        ..area
    };
    let rest = Rect {
        x: area.x.saturating_add(columns),
        width: area.width.saturating_sub(columns),
        ..area
    };
    (left, rest)
}

/// Returns the row of an area with an offset from its top; it is empty if the area has no such row.
pub(crate) fn row(area: Rect, offset: u16) -> Rect {
    let (_, rest) = split_top(area, offset);
    split_top(rest, 1).0
}

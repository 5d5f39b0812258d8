//! Time as columns of a terminal.

use super::canvas::Canvas;
use super::palette::{DIM, Mark};
use crate::svg_path::position;
use crate::time_text::{duration_text, time_marks};
use ratatui_core::layout::Rect;

/// The cells for a mark of the axis with its text.
const CELLS_PER_MARK: i64 = 14;

/// A range of time that some columns show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeScale {
    pub(crate) from_s: i64,
    /// At least 1.
    pub(crate) length_s: i64,
    pub(crate) width: u16,
}

impl TimeScale {
    /// Returns the time at the left edge of a column.
    pub(crate) fn at_s(&self, column: u16) -> i64 {
        let offset_s = position(column.into(), self.width.into(), self.length_s);
        self.from_s.saturating_add(offset_s)
    }

    /// Returns the column of a time, if it is visible. The end of the range is in the last one.
    pub(crate) fn column(&self, at_s: i64) -> Option<u16> {
        let offset_s = at_s.checked_sub(self.from_s)?;
        if !(0..=self.length_s).contains(&offset_s) {
            return None;
        }
        let column = position(offset_s, self.length_s, self.width.into());
        let column = u16::try_from(column).ok()?;
        Some(column.min(self.width.checked_sub(1)?))
    }

    /// Draws the marks of the axis into a row.
    pub(crate) fn draw_axis(&self, canvas: &mut Canvas<'_>, row: Rect) {
        let style = DIM;
        let count = i64::from(self.width).checked_div(CELLS_PER_MARK);
        let marks_s = time_marks(self.length_s, count.unwrap_or_default());
        let step_s = marks_s.get(1).copied().unwrap_or(self.length_s).max(1);
        let before = self.from_s.saturating_sub(1).max(-1).div_euclid(step_s);
        let first_s = before.saturating_add(1).saturating_mul(step_s);
        let mut free_x = row.x;
        for at in 0..=i64::from(self.width) {
            let at_s = first_s.saturating_add(at.saturating_mul(step_s));
            let Some(column) = self.column(at_s) else {
                return;
            };
            let x = row.x.saturating_add(column);
            let text_row = Rect {
                x: x.saturating_add(1),
                width: row.right().saturating_sub(x.saturating_add(1)),
                ..row
            };
            let text = duration_text(at_s);
            // A text without space, or on the one before, is left out.
            if x < free_x || usize::from(text_row.width) < text.chars().count() {
                continue;
            }
            canvas.glyph(
                (x, row.y),
                Mark {
                    glyph: '╵', style
                },
            );
            let written = canvas.text(text_row, &text, style);
            free_x = text_row.x.saturating_add(written).saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TimeScale;

    #[test]
    fn columns_and_times_agree() {
        let scale = TimeScale {
            from_s: 100,
            length_s: 50,
            width: 10,
        };
        assert_eq!((scale.at_s(0), scale.at_s(9)), (100, 145));
        assert_eq!((scale.column(99), scale.column(151)), (None, None));
        assert_eq!((scale.column(104), scale.column(150)), (Some(0), Some(9)));
        // Several columns for each second.
        let scale = TimeScale {
            from_s: 0,
            length_s: 2,
            width: 10,
        };
        assert_eq!((scale.at_s(4), scale.at_s(5)), (0, 1));
    }
}

//! Draws into the cells of a terminal.

use super::palette::{Mark, Palette};
use super::visible_text::visible_text;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;
use ratatui_core::text::Span;

/// The cells of a terminal. What is outside of them is not drawn.
#[derive(Debug)]
pub(crate) struct Canvas<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) palette: Palette,
}

impl Canvas<'_> {
    /// Writes a text from the start of a row of cells; a longer one ends in `…`. Returns the number of cells it has.
    pub(crate) fn text(&mut self, area: Rect, text: &str, style: Style) -> u16 {
        let area = area.intersection(self.buffer.area);
        if area.is_empty() {
            return 0;
        }
        let text = visible_text(text, area.width);
        let width = usize::from(area.width);
        if Span::raw(&text).width() <= width {
            let (end, _) = self.buffer.set_stringn(area.x, area.y, &text, width, style);
            return end.saturating_sub(area.x);
        }
        let kept = width.saturating_sub(1);
        let (end, _) = self.buffer.set_stringn(area.x, area.y, &text, kept, style);
        self.glyph(
            (end, area.y),
            Mark {
                glyph: '…', style
            },
        );
        area.width
    }

    /// Writes a text at the end of a row of cells.
    pub(crate) fn text_right(&mut self, area: Rect, text: &str, style: Style) {
        let width = Span::raw(visible_text(text, area.width)).width();
        let skipped = usize::from(area.width).saturating_sub(width);
        let skipped = u16::try_from(skipped).unwrap_or_default();
        let area = Rect {
            x: area.x.saturating_add(skipped),
            width: area.width.saturating_sub(skipped),
            ..area
        };
        self.text(area, text, style);
    }

    /// Draws a glyph.
    pub(crate) fn glyph(&mut self, (x, y): (u16, u16), mark: Mark) {
        if let Some(cell) = self.buffer.cell_mut(Position { x, y }) {
            cell.set_char(mark.glyph).set_style(mark.style);
        }
    }

    /// Changes the style of all cells of an area.
    pub(crate) fn restyle(&mut self, area: Rect, style: Style) {
        self.buffer
            .set_style(area.intersection(self.buffer.area), style);
    }

    /// Writes texts with their glyphs side by side, in as many rows of an area as they need. Returns the number of rows.
    pub(crate) fn legend(&mut self, area: Rect, entries: &[(Mark, String)]) -> u16 {
        let (mut x, mut y) = (area.x, area.y);
        for (mark, text) in entries {
            let width = Span::raw(visible_text(text, area.width)).width();
            let width = u16::try_from(width).unwrap_or(u16::MAX).saturating_add(2);
            if x > area.x && x.saturating_add(width) > area.right() {
                (x, y) = (area.x, y.saturating_add(1));
            }
            if y >= area.bottom() {
                return area.height;
            }
            self.glyph((x, y), *mark);
            let rest = Rect {
                x: x.saturating_add(2),
                y,
                width: area.right().saturating_sub(x.saturating_add(2)),
                height: 1,
            };
            let written = self.text(rest, text, Style::new());
            x = rest.x.saturating_add(written).saturating_add(2);
        }
        let rows = y.saturating_sub(area.y).saturating_add(1);
        rows.min(area.height)
    }
}

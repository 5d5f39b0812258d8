//! The keys of all views.

use super::areas::{row, split_left};
use super::canvas::Canvas;
use super::palette::HEADING;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

const KEY_WIDTH: u16 = 18;

const KEYS: [(&str, &str); 12] = [
    ("1 to 7, Tab", "views; Shift+Tab: the previous one"),
    ("n, p", "next and previous simulation"),
    ("arrows, h j k l", "move; PgUp, PgDn, Home, End: further"),
    ("r", "next resource"),
    ("Enter", "open the selected row in another view"),
    ("s, S", "sort by the selected column, S descending"),
    ("/", "show workloads with a text in their names"),
    ("Enter, g", "Gantt: go to the preemptor or victim (▸)"),
    ("e, E", "Gantt: next, previous preemption"),
    ("b", "Gantt: back to the workload before"),
    ("+, -, 0", "Gantt: scale of time; ←→: earlier, later"),
    ("q, Esc", "quit"),
];

/// Draws the keys into an area.
pub(crate) fn draw_help(canvas: &mut Canvas<'_>, area: Rect) {
    for (offset, (keys, text)) in (0_u16..).zip(KEYS) {
        let line = row(area, offset);
        let (left, right) = split_left(line, KEY_WIDTH);
        canvas.text(left, keys, HEADING);
        canvas.text(right, text, Style::new());
    }
}

//! A terminal in memory.

use lockkeeper_report::{Key, Next, TerminalReport};
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Modifier;
use ratatui_core::terminal::Terminal;

/// Draws a report; returns the cells.
pub(crate) fn draw(report: &mut TerminalReport<'_>, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| report.draw(frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The rows of the cells as text.
pub(crate) fn rows(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width.max(1));
    let rows = rows.map(|row| {
        // A wide character has the next cell, too.
        let mut text = String::new();
        let mut skipped = 0;
        for cell in row {
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            text.push_str(cell.symbol());
            skipped = ratatui_core::text::Span::raw(cell.symbol())
                .width()
                .saturating_sub(1);
        }
        text.trim_end().to_owned()
    });
    rows.collect()
}

/// Draws a report as lines of text. The selected cells of each row follow it.
pub(crate) fn text(report: &mut TerminalReport<'_>, width: u16, height: u16) -> String {
    let buffer = draw(report, width, height);
    let mut lines = rows(&buffer);
    for (y, line) in lines.iter_mut().enumerate() {
        let from = y * usize::from(width);
        let row = &buffer.content[from..from + usize::from(width)];
        let is_selected = row
            .iter()
            .map(|it| it.modifier.contains(Modifier::REVERSED));
        let selected: Vec<usize> = is_selected
            .enumerate()
            .filter_map(|(x, is_selected)| is_selected.then_some(x))
            .collect();
        if let (Some(first), Some(last)) = (selected.first(), selected.last()) {
            *line = format!("{line}  ⟦{first}–{last}⟧");
        }
    }
    lines.join("\n")
}

/// Sends the characters of a text as keys; `\n` is Enter.
pub(crate) fn type_keys(report: &mut TerminalReport<'_>, keys: &str) {
    for char in keys.chars() {
        let key = match char {
            '\n' => Key::Enter,
            '\u{1b}' => Key::Escape,
            '\t' => Key::Tab,
            '\u{8}' => Key::Backspace,
            '↓' => Key::Down,
            '↑' => Key::Up,
            '→' => Key::Right,
            '←' => Key::Left,
            '⇟' => Key::PageDown,
            '⇲' => Key::End,
            '⇱' => Key::Home,
            other => Key::Char(other),
        };
        assert_eq!(report.handle(key), Next::Continue, "{char:?}");
    }
}

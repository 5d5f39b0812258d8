//! Glyphs and styles. Glyphs differ where colours do, so that nothing depends on a colour alone.

use crate::workload_states::IntervalState;
use ratatui_core::style::{Color, Modifier, Style};

/// The glyphs of the parts of a stack, the lowest first.
const SERIES_GLYPHS: [char; 8] = ['█', '▒', '▓', '░', '#', '=', '+', ':'];

const SERIES_COLORS: [Color; 8] = [
    Color::Blue,
    Color::Yellow,
    Color::Green,
    Color::Magenta,
    Color::Cyan,
    Color::Red,
    Color::LightBlue,
    Color::LightGreen,
];

/// The glyphs of the classes of waits, the shortest first.
const WAIT_GLYPHS: [char; 6] = ['·', '░', '▒', '▓', '█', '#'];

const WAIT_COLORS: [Color; 6] = [
    Color::Green,
    Color::Cyan,
    Color::Blue,
    Color::Magenta,
    Color::Yellow,
    Color::LightRed,
];

/// The style of headings.
pub(crate) const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);

/// The style of notes and axes.
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// The style of a selected row.
pub(crate) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// A glyph and its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) glyph: char,
    pub(crate) style: Style,
}

/// The styles, with or without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette {
    pub(crate) has_colors: bool,
}

impl Palette {
    /// The part of a stack with an index and a class of the report: states look as in the Gantt chart, except that an area
    /// of pending workloads is an area.
    pub(crate) fn stack(self, class: &str, at: usize) -> Mark {
        let state = IntervalState::ALL.into_iter();
        let mut state = state.filter(|it| it.class() == class);
        match state.next() {
            Some(IntervalState::Pending) => self.plain('░', Color::Reset),
            Some(state) => self.state(state),
            None => self.series(at),
        }
    }

    /// The class of waits with an index.
    pub(crate) fn wait(self, at: usize) -> Mark {
        self.mark(&WAIT_GLYPHS, &WAIT_COLORS, at)
    }

    /// Workloads that were never admitted.
    pub(crate) fn never(self) -> Mark {
        self.plain('x', Color::Red)
    }

    /// The state of a workload.
    pub(crate) fn state(self, state: IntervalState) -> Mark {
        match state {
            IntervalState::Pending => self.plain('·', Color::Reset),
            IntervalState::Running => self.plain('█', Color::Blue),
            IntervalState::Preempted => self.plain('▒', Color::Yellow),
            IntervalState::Terminating => self.plain('x', Color::Red),
            IntervalState::NotReady => self.plain('▄', Color::Cyan),
        }
    }

    /// The part of a bar up to the nominal quota, and beyond it.
    pub(crate) fn quota(self, is_over: bool) -> Mark {
        if is_over {
            return self.plain('▓', Color::Yellow);
        }
        self.plain('█', Color::Blue)
    }

    fn plain(self, glyph: char, color: Color) -> Mark {
        let style = if self.has_colors {
            Style::new().fg(color)
        } else {
            Style::new()
        };
        Mark { glyph, style }
    }

    /// The part of a stack with an index.
    fn series(self, at: usize) -> Mark {
        self.mark(&SERIES_GLYPHS, &SERIES_COLORS, at)
    }

    fn mark(self, glyphs: &[char], colors: &[Color], at: usize) -> Mark {
        let at = at.checked_rem(glyphs.len()).unwrap_or_default();
        let glyph = glyphs.get(at).copied().unwrap_or('█');
        self.plain(glyph, colors.get(at).copied().unwrap_or(Color::Reset))
    }
}

/// Returns the line of a limit by its class in the report.
pub(crate) fn limit_mark(class: &str) -> Mark {
    let glyph = match class {
        "nominal" => '━',
        "limit" => '┅',
        _ => '┈',
    };
    Mark {
        glyph,
        style: HEADING,
    }
}

#[cfg(test)]
mod tests {
    use super::Palette;
    use crate::workload_states::IntervalState;
    use ratatui_core::style::Style;
    use std::collections::BTreeSet;

    #[test]
    fn glyphs_differ_without_colors() {
        let palette = Palette { has_colors: false };
        let states = IntervalState::ALL.map(|it| palette.state(it));
        let series = (0..8).map(|at| palette.series(at));
        let waits = (0..6).map(|at| palette.wait(at));
        let waits = waits.chain([palette.never()]);
        for marks in [states.to_vec(), series.collect(), waits.collect()] {
            let glyphs: BTreeSet<char> = marks.iter().map(|it| it.glyph).collect();
            assert_eq!(glyphs.len(), marks.len(), "{marks:?}");
            assert!(marks.iter().all(|it| it.style == Style::new()));
        }
    }
}

//! The selection in a list, and which of its rows are visible.

use super::motion::Motion;
use std::ops::Range;

/// A selected row and the first visible one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListState {
    selected: usize,
    top: usize,
    /// The number of visible rows when the list was last drawn.
    page: usize,
}

impl ListState {
    /// Returns the selected row; at most the last one of `count`.
    pub(crate) fn selected(&self, count: usize) -> usize {
        self.selected.min(count.saturating_sub(1))
    }

    /// Selects a row.
    pub(crate) fn select(&mut self, row: usize) {
        self.selected = row;
    }

    /// Moves the selection in a list of `count` rows; returns whether the direction has a meaning in a list.
    pub(crate) fn step(&mut self, motion: Motion, count: usize) -> bool {
        let at = self.selected(count);
        let page = self.page.max(1);
        let to = match motion {
            Motion::Up => at.saturating_sub(1),
            Motion::Down => at.saturating_add(1),
            Motion::PageUp => at.saturating_sub(page),
            Motion::PageDown => at.saturating_add(page),
            Motion::Home => 0,
            Motion::End => count,
            Motion::Left | Motion::Right => return false,
        };
        self.selected = to.min(count.saturating_sub(1));
        true
    }

    /// Returns the visible rows of a list of `count` rows, with the selected one among them.
    pub(crate) fn window(&mut self, height: usize, count: usize) -> Range<usize> {
        self.page = height;
        self.selected = self.selected(count);
        let least = self.selected.saturating_add(1).saturating_sub(height);
        let bottom = count.saturating_sub(height);
        self.top = self.top.clamp(least, self.selected.max(least)).min(bottom);
        self.top..self.top.saturating_add(height).min(count)
    }
}

#[cfg(test)]
mod tests {
    use super::ListState;
    use crate::terminal::motion::Motion;

    #[test]
    fn selection_stays_in_the_window() {
        let mut list = ListState::default();
        assert_eq!(list.window(3, 10), 0..3);
        assert!(list.step(Motion::PageDown, 10));
        assert_eq!((list.selected(10), list.window(3, 10)), (3, 1..4));
        assert!(list.step(Motion::End, 10));
        assert_eq!((list.selected(10), list.window(3, 10)), (9, 7..10));
        assert!(list.step(Motion::Up, 10));
        assert_eq!(list.window(3, 10), 7..10);
        // A shorter list, and a larger window.
        assert_eq!((list.window(3, 2), list.selected(2)), (0..2, 1));
        assert_eq!(list.window(30, 10), 0..10);
        assert_eq!((list.window(3, 0), list.window(0, 5)), (0..0, 1..1));
        assert!(!list.step(Motion::Left, 5));
    }
}

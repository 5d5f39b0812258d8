//! Keys that move a selection.

use super::key::Key;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

impl Motion {
    /// Returns the direction of a key, if it has one.
    pub(crate) fn from_key(key: Key) -> Option<Self> {
        Some(match key {
            Key::Up | Key::Char('k') => Self::Up,
            Key::Down | Key::Char('j') => Self::Down,
            Key::Left | Key::Char('h') => Self::Left,
            Key::Right | Key::Char('l') => Self::Right,
            Key::PageUp => Self::PageUp,
            Key::PageDown => Self::PageDown,
            Key::Home => Self::Home,
            Key::End => Self::End,
            _ => return None,
        })
    }
}

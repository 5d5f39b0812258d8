//! A text that is typed to filter a table.

use super::key::Key;

/// The most characters.
const CHARACTERS_MAX: usize = 200;

/// The text, and whether it is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilterText {
    pub(crate) text: String,
    pub(crate) is_typing: bool,
}

impl FilterText {
    /// Handles a key while the text is typed; others are left out.
    pub(crate) fn handle(&mut self, key: Key) {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.text.clear();
            }
            Key::Backspace => {
                self.text.pop();
            }
            Key::Char(char) if !char.is_control() && !self.is_full() => self.text.push(char),
            _ => {}
        }
    }

    fn is_full(&self) -> bool {
        self.text.chars().count() >= CHARACTERS_MAX
    }
}

//! Untrusted text in the cells of a terminal.

/// The most characters of a cell: a letter with marks.
const CHARACTERS_PER_CELL: usize = 4;

/// Returns the start of a text that is long enough for a width. Characters that could change what a terminal shows are
/// replaced with U+FFFD: control characters, those that turn the direction of others, and those whose width is uncertain.
pub(crate) fn visible_text(text: &str, width: u16) -> String {
    let most = usize::from(width).saturating_add(1);
    let chars = text.chars().take(most.saturating_mul(CHARACTERS_PER_CELL));
    chars.map(visible_char).collect()
}

fn visible_char(char: char) -> char {
    match char {
        '\t' | '\n' => ' ',
        _ if char.is_control() || is_ignorable(char) || is_joined(char) => {
            char::REPLACEMENT_CHARACTER
        }
        _ => char,
    }
}

/// Whether Unicode says that a character is ignored where it is not supported, or ends a line.
fn is_ignorable(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether the width of a character depends on the terminal and on those beside it: letters of flags, and tones of skin.
fn is_joined(char: char) -> bool {
    matches!(char, '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}')
}

#[cfg(test)]
mod tests {
    use super::visible_text;

    #[test]
    fn hostile_characters_are_replaced() {
        let text = visible_text("a\u{1b}[2J\tb\u{9b}\u{202e}\u{200d}ä", 80);
        assert_eq!(text, "a\u{fffd}[2J b\u{fffd}\u{fffd}\u{fffd}ä");
    }

    #[test]
    fn a_long_text_is_cut() {
        let text = visible_text(&"e\u{301}".repeat(1_000), 3);
        assert_eq!(text.chars().count(), 16);
    }
}

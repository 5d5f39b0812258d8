//! Characters that markup may not have.

/// Replaces characters that XML does not permit, such as control characters in names, with U+FFFD.
pub(crate) fn permitted_text(text: String) -> String {
    if text.chars().all(is_permitted) {
        return text;
    }
    let chars = text.chars();
    let chars = chars.map(|it| if is_permitted(it) { it } else { '\u{fffd}' });
    chars.collect()
}

/// Returns whether XML permits a character.
pub(crate) fn is_permitted(char: char) -> bool {
    match char {
        '\t' | '\n' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => !char.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::permitted_text;

    #[test]
    fn control_characters_are_replaced() {
        let text = permitted_text("a\u{0}\u{1b}[b\r\n\u{ffff}ä".to_owned());
        assert_eq!(text, "a\u{fffd}\u{fffd}[b\u{fffd}\n\u{fffd}ä");
    }
}

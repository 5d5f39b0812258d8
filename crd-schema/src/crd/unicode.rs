//! Properties of characters.

use regex::Regex;
use std::sync::OnceLock;

/// Whether all characters are printable, as `unicode.IsPrint` of Go says: letters, marks, numbers, punctuation, symbols
/// and the space.
pub(crate) fn is_printable(text: &str) -> bool {
    static OTHER: OnceLock<Option<Regex>> = OnceLock::new();
    let other = OTHER.get_or_init(|| Regex::new(r"[^\pL\pM\pN\pP\pS ]").ok());
    other.as_ref().is_none_or(|it| !it.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::is_printable;

    #[test]
    fn is_printable_invisible_characters_are_not() {
        for (text, expected) in [
            ("a 1-ä€漢e\u{301}", true),
            ("", true),
            ("a\u{200b}", false),
            ("a\u{a0}b", false),
            ("a\n", false),
            ("\u{e000}", false),
            ("\u{ad}", false),
        ] {
            assert_eq!(is_printable(text), expected, "{text:?}");
        }
    }
}

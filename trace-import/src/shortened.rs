//! Texts of files in messages.

/// The start of a text, for messages: files may have fields of any length.
pub(crate) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(CHARS_MAX).collect();
    if chars.next().is_some() {
        format!("{start}…")
    } else {
        start
    }
}

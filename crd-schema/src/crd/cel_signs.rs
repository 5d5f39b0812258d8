//! Replaces repeated unary signs by one or none.
//!
//! The parser of the crate `cel` 0.13 reads `!!a` as `!a`, and `--a` as `-a`.

use std::borrow::Cow;

/// The text with at most one `!` or `-` before each operand. Removed signs become spaces, so that places stay.
pub(super) fn without_repeated_signs(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut removed: Vec<usize> = Vec::new();
    let mut is_after_operand = false;
    let mut run: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at.saturating_add(1)).copied();
        let end = match byte {
            b'/' if next == Some(b'/') => end_of_line(bytes, at),
            byte if byte.is_ascii_whitespace() => at.saturating_add(1),
            b'!' | b'-' if !(byte == b'!' && next == Some(b'=')) => {
                let is_same = run.first().is_none_or(|it| bytes.get(*it) == Some(&byte));
                if !is_same {
                    end_run(&mut run, &mut removed);
                }
                // A minus after an operand is a subtraction.
                if is_after_operand {
                    is_after_operand = false;
                } else {
                    run.push(at);
                }
                at.saturating_add(1)
            }
            byte => {
                end_run(&mut run, &mut removed);
                let literal = end_of_text(bytes, at);
                is_after_operand = literal.is_some()
                    || byte.is_ascii_alphanumeric()
                    || !byte.is_ascii()
                    || matches!(byte, b'_' | b'`' | b')' | b']' | b'}' | b'.');
                literal.unwrap_or_else(|| at.saturating_add(1))
            }
        };
        at = end;
    }
    if removed.is_empty() {
        return Cow::Borrowed(text);
    }
    let signs = text.char_indices().map(|(position, sign)| {
        if removed.binary_search(&position).is_ok() {
            ' '
        } else {
            sign
        }
    });
    Cow::Owned(signs.collect())
}

/// Removes pairs of signs.
fn end_run(run: &mut Vec<usize>, removed: &mut Vec<usize>) {
    let even = run.len().saturating_sub(run.len() % 2);
    removed.extend(run.iter().take(even));
    run.clear();
}

pub(super) fn end_of_line(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest.iter().position(|it| *it == b'\n');
    start.saturating_add(length.unwrap_or(rest.len()))
}

/// The end of a literal text or of literal bytes. `None` if there is none at the place.
pub(super) fn end_of_text(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let prefix = rest
        .iter()
        .take(2)
        .take_while(|it| matches!(it, b'r' | b'R' | b'b' | b'B'))
        .count();
    let is_inside_name = start
        .checked_sub(1)
        .and_then(|it| bytes.get(it))
        .is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    let quote = *rest.get(prefix).filter(|it| matches!(it, b'\'' | b'"'))?;
    if prefix > 0 && is_inside_name {
        return None;
    }
    let is_raw = rest.iter().take(prefix).any(|it| matches!(it, b'r' | b'R'));
    let body = rest.get(prefix..)?;
    let width = if body.starts_with(&[quote; 3]) { 3 } else { 1 };
    let end = body.get(..width)?;
    let mut at = width;
    while at < body.len() {
        let tail = body.get(at..)?;
        if tail.starts_with(b"\\") && !is_raw {
            at = at.saturating_add(2);
        } else if tail.starts_with(end) {
            return Some(
                start
                    .saturating_add(prefix)
                    .saturating_add(at)
                    .saturating_add(width),
            );
        } else {
            at = at.saturating_add(1);
        }
    }
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::without_repeated_signs;

    #[test]
    fn repeated_signs_become_one_or_none() {
        for (text, expected) in [
            ("!!a", "  a"),
            ("!!!a", "  !a"),
            ("! ! a", "    a"),
            ("!(!a)", "!(!a)"),
            ("a != !!b", "a !=   b"),
            ("a--b", "a--b"),
            ("a---b", "a-  b"),
            ("(1) - --2", "(1) -   2"),
            ("--5 == 5", "  5 == 5"),
            ("'!!' + r'\\' + \"--\"", "'!!' + r'\\' + \"--\""),
            ("'''a'!!''' == b'--'", "'''a'!!''' == b'--'"),
            ("a // !!\n&& !!b", "a // !!\n&&   b"),
            ("!-a", "!-a"),
            ("'\\'!!'", "'\\'!!'"),
            ("ä!!", "ä!!"),
        ] {
            assert_eq!(without_repeated_signs(text), expected, "{text}");
        }
    }
}

//! Parses field paths of user rules.

use lockkeeper_api::field_path::FieldPath;

/// The most parts of a path.
const PARTS_MAX: usize = 32;

/// Parses a path such as `.spec.podSets[0].name` or `metadata.labels['a/b']`.
pub(super) fn parse(text: &str) -> Result<FieldPath, String> {
    let wrong = |at: &str| {
        format!(
            "it is no path from {at:?} on; write one such as .spec.podSets[0] or .metadata.labels['a/b']"
        )
    };
    let mut path = FieldPath::default();
    let mut rest = text.strip_prefix('.').unwrap_or(text);
    let mut is_field = true;
    for _ in 0..PARTS_MAX {
        if is_field {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at_checked(end).unwrap_or_default();
            let is_name = |it: char| it.is_alphanumeric() || it == '_' || it == '-';
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(wrong(rest));
            }
            path = path.named(name);
            rest = after;
        } else {
            let (inside, after) = parse_subscript(rest).ok_or_else(|| wrong(rest))?;
            path = match inside {
                Subscript::Key(key) => path.key(key),
                Subscript::Index(index) => path.index(index),
            };
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => (is_field, rest) = (true, after),
            None if rest.is_empty() => return Ok(path),
            None => is_field = false,
        }
    }
    Err(format!("it has more than {PARTS_MAX} parts"))
}

enum Subscript<'a> {
    Key(&'a str),
    Index(usize),
}

/// Splits off a leading subscript.
fn parse_subscript(text: &str) -> Option<(Subscript<'_>, &str)> {
    let inside = text.strip_prefix('[')?;
    for quote in ['\'', '"'] {
        if let Some(key) = inside.strip_prefix(quote) {
            let (key, after) = key.split_once(quote)?;
            return Some((Subscript::Key(key), after.strip_prefix(']')?));
        }
    }
    let (index, after) = inside.split_once(']')?;
    Some((Subscript::Index(index.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_printed_path_round_trips() {
        for (text, printed) in [
            (".spec", "spec"),
            ("spec.podSets[2].name", "spec.podSets[2].name"),
            (
                ".metadata.labels['kueue.x-k8s.io/queue-name']",
                "metadata.labels[kueue.x-k8s.io/queue-name]",
            ),
            (".a[\"b\"].c-d", "a[b].c-d"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), printed);
        }
        for text in [
            "", ".", "a..b", "a[", "a[x]", "a['b]", "a[0]b", "a b", "[0]",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&".a".repeat(33)).is_err());
    }
}

//! YAML as most people write it, read fast.
//!
//! The deserializer knows everything of YAML, and that takes as long as all else that is done with a file. Most files
//! need little of it. What is not certain here is left to the deserializer, errors above all: so there is nothing that
//! the two can disagree about, but for what the test holds them to.

use super::block_parse;
use granit_parser::{Event, Options, Parser, ScalarStyle};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Larger texts are not read here: the deserializer has bounds on what they may hold.
const SIZE_MAX_BYTES: usize = 1024 * 1024;

/// The deepest nesting that is read here.
const DEPTH_MAX: usize = 48;

/// The longest number that surely fits, in digits.
const DIGITS_MAX: usize = 18;

/// Words that one version of YAML or another takes for something else than a text, in lower case.
const AMBIGUOUS_WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// The documents of a text, without those that are null; `None` if it needs the deserializer.
pub(super) fn parse_documents(text: &str) -> Option<Vec<Value>> {
    if text.len() > SIZE_MAX_BYTES || text.starts_with('\u{feff}') {
        return None;
    }
    if let Some(values) = block_parse::parse_documents(text) {
        return Some(values);
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    // An error ends it, and a stream without its end is none.
    let mut events = parser.map_while(Result::ok).map(|(event, _)| event);
    let mut out = Vec::new();
    loop {
        match events.next()? {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::StreamEnd => return Some(out),
            Event::DocumentStart(_, None) => {
                let first = events.next()?;
                let value = parse_value(first, &mut events, DEPTH_MAX)?;
                if !value.is_null() {
                    out.push(value);
                }
            }
            _ => return None,
        }
    }
}

/// The value that begins with `event`. An anchor has a number above 0.
fn parse_value<'t>(
    event: Event<'t>,
    events: &mut impl Iterator<Item = Event<'t>>,
    depth: usize,
) -> Option<Value> {
    let below = depth.checked_sub(1)?;
    match event {
        Event::Scalar(text, ScalarStyle::Plain, 0, None) => plain_scalar(text),
        Event::Scalar(text, _, 0, None) => Some(Value::String(text.into_owned())),
        Event::SequenceStart(_, 0, None) => {
            let mut items = Vec::new();
            loop {
                match events.next()? {
                    Event::SequenceEnd => return Some(Value::Array(items)),
                    event => items.push(parse_value(event, events, below)?),
                }
            }
        }
        Event::MappingStart(_, 0, None) => {
            let mut fields = Map::new();
            loop {
                let name = match events.next()? {
                    Event::MappingEnd => return Some(Value::Object(fields)),
                    Event::Scalar(text, ScalarStyle::Plain, 0, None) => plain_scalar(text)?,
                    Event::Scalar(text, _, 0, None) => Value::String(text.into_owned()),
                    _ => return None,
                };
                let Value::String(name) = name else {
                    return None;
                };
                let first = events.next()?;
                // Of a key that stands twice the deserializer says where.
                if fields
                    .insert(name, parse_value(first, events, below)?)
                    .is_some()
                {
                    return None;
                }
            }
        }
        _ => None,
    }
}

/// Whether a scalar without quotes is surely a text.
pub(super) fn is_plain_string(text: &str) -> bool {
    plain_scalar(Cow::Borrowed(text)).is_some_and(|it| it.is_string())
}

/// What a scalar without quotes stands for, if that is certain.
pub(super) fn plain_scalar(text: Cow<'_, str>) -> Option<Value> {
    match &*text {
        "" | "~" | "null" => return Some(Value::Null),
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        _ => {}
    }
    let first = text.bytes().next()?;
    let is_text = match first {
        b'a'..=b'z' | b'A'..=b'Z' => !AMBIGUOUS_WORDS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(&text)),
        b'/' | 0x80.. => true,
        b'0'..=b'9' => {
            let digits = text.trim_start_matches(|it: char| it.is_ascii_digit());
            if digits.is_empty() {
                let is_usual = text.len() <= DIGITS_MAX && (first != b'0' || text.len() == 1);
                return is_usual.then(|| text.parse::<u64>().ok().map(Value::from))?;
            }
            // 16Gi or 500m, but neither 0x10 nor 1e3.
            let unit = digits.bytes().next()?;
            unit.is_ascii_alphabetic() && !b"eExXoObB".contains(&unit)
        }
        _ => false,
    };
    is_text.then(|| Value::String(text.into_owned()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::parse_documents;
    use serde_json::Value;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Whether a text is read here; what is read is what the deserializer reads.
    fn check(text: &str) -> bool {
        matches_deserializer(text, parse_documents(text))
    }

    /// Whether something was read of a text; then the deserializer reads the same.
    pub(in crate::check) fn matches_deserializer(text: &str, read: Option<Vec<Value>>) -> bool {
        let Some(read) = read else {
            return false;
        };
        let expected: Vec<Value> = serde_saphyr::from_multiple(text).expect(text);
        assert_eq!(read, expected, "{text}");
        true
    }

    /// The texts of all examples.
    pub(in crate::check) fn example_texts() -> Vec<String> {
        let mut paths = Vec::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        files(&folder, &mut paths);
        let texts = paths.iter().map(|it| fs::read_to_string(it).unwrap());
        texts.collect()
    }

    fn files(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, out);
            } else if path
                .extension()
                .is_some_and(|it| it == "yaml" || it == "json")
            {
                out.push(path);
            }
        }
    }

    #[test]
    fn fast_parse_examples_match_deserializer() {
        let texts = example_texts();
        let count = texts.iter().filter(|it| check(it)).count();
        assert!(count * 10 >= texts.len() * 9, "{count} of {}", texts.len());
    }

    /// All that scalars may look like.
    #[rustfmt::skip]
    const SCALARS: &[&str] = &[
        "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "yes", "No", "on", "OFF", "y", "N", "a",
        "nullable", "truely", "/a", "é", "_", "_1", "-", "- 1", "-1", "+1", "0", "00", "01", "08", "0o7", "0x1F",
        "0b1", "1", "10", "123456789012345678", "1234567890123456789", "18446744073709551616", "1_000", "1.0",
        ".5", "5.", "1e3", "1E3", "1.5Gi", "16Gi", "500m", "1k", "1M", "1E", "1Ei", "1e", "3d", "1f", "2L", "7i",
        "1inf", "1nan", ".inf", "-.INF", ".nan", "inf", "nan", "NaN", "Infinity", "infinity", "2026-01-31",
        "2026-01-31T12:00:00Z", "12:30", "1:2:3", "10.0.0.1", "a: b", "a:b", "a #b", "'a'", "\"a\\n\"", "'1'",
        "\"true\"", "''", "|\n  a\n  b", ">-\n  a\n  b\n\n  c", "[]", "{}", "[1, a, [b]]", "{a: 1, b: {c: d}}",
        "!!str 1", "!a b", "&a b", "*a", "<<", "=", "a\n  b", "? a", "@a", "`a`", "%a", "\t1", "1 2", "1,5", "1a",
        "0a", "0m", "9z", "٣",
    ];

    #[test]
    fn fast_parse_scalars_match_deserializer_or_return_none() {
        for scalar in SCALARS {
            check(&format!("a: {scalar}\n"));
            check(&format!("{scalar}: a\n"));
            check(&format!("- {scalar}\n-   {scalar}\n"));
            check(&format!("{scalar}\n---\n{scalar}\n"));
            check(&format!(
                "a: {scalar}\n---\n# one\n---\nb:\n  - {scalar} # two\n...\n"
            ));
        }
    }

    #[test]
    fn fast_parse_accepts_common_yaml_and_no_invalid_yaml() {
        for text in [
            "a: 1\nb: [c, d]\ne:\n- f: 16Gi\n  g: \"5\"\n",
            "---\na: b\n---\n---\nc:\n",
            "{\"a\": [1, true, null, \"b\"]}",
            "",
        ] {
            assert!(check(text), "{text}");
        }
        let deep = "[".repeat(100_000);
        let large = format!("a: {}", "b".repeat(2_000_000));
        for text in [
            "a: 1\na: 2\n",
            "a: [1\n",
            "a: &b 1\nc: *b\n",
            "a:\n\t- b\n",
            "\u{feff}a: b",
            "%YAML 1.1\n---\na: b\n",
            "1: a\n",
            "[a]: b\n",
            "a: !!int b\n",
            "<<: {a: b}\n",
            "a: \u{7}\n",
            &deep,
            &large,
        ] {
            assert!(parse_documents(text).is_none(), "{text:.40}");
        }
    }
}

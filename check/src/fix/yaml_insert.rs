//! Inserts fields into a mapping in the style of its other fields.

use super::edits::Edit;
use crate::yaml::{LastEntry, Mapping, is_plain_string};
use serde_json::{Map, Value};

/// The indentation step of a text that has none, in spaces.
const INDENT_DEFAULT: usize = 2;

/// The style of a text.
struct YamlWriter {
    /// Names and strings always have quotes, as in JSON.
    is_quoted: bool,
    /// No space follows colons and commas.
    is_tight: bool,
    /// Flow mappings have a line for each entry.
    is_spread: bool,
    newline: &'static str,
    step: String,
}

/// The edits that append these fields to a mapping. `None` if the style of the mapping is unclear.
pub fn insertion_edits(
    text: &str,
    mapping: &Mapping,
    fields: &Map<String, Value>,
    is_json: bool,
) -> Option<Vec<Edit>> {
    match (mapping.brackets, &mapping.last) {
        (None, last) => Some(vec![insert_into_block(
            text,
            mapping,
            last.as_ref()?,
            fields,
        )?]),
        (Some(brackets), None) => Some(vec![insert_into_empty(text, brackets, fields, is_json)?]),
        (Some((_, close)), Some(last)) => insert_into_flow(text, last, close, fields, is_json),
    }
}

/// Appends lines below the last field.
fn insert_into_block(
    text: &str,
    mapping: &Mapping,
    last: &LastEntry,
    fields: &Map<String, Value>,
) -> Option<Edit> {
    let mut writer = YamlWriter::new(text, false, false, false);
    if let Some(step) = mapping.step {
        writer.step = " ".repeat(step);
    }
    let mut lines = Vec::new();
    for (name, value) in fields {
        writer.lines(name, value, &" ".repeat(last.column), &mut lines);
    }
    let lines = lines.join(writer.newline);
    // The end of a block scalar is already at the start of the next line.
    let is_at_start = text.get(..last.end)?.ends_with('\n');
    let rest = text.get(last.end..)?;
    Some(match rest.find('\n') {
        _ if is_at_start => (last.end..last.end, lines + writer.newline),
        // Below a comment that may follow the last value on its line.
        Some(end) => {
            let at = last.end.checked_add(end)?.checked_add(1)?;
            (at..at, lines + writer.newline)
        }
        None => (text.len()..text.len(), format!("{}{lines}", writer.newline)),
    })
}

/// Inserts between empty brackets.
fn insert_into_empty(
    text: &str,
    (open, close): (usize, usize),
    fields: &Map<String, Value>,
    is_json: bool,
) -> Option<Edit> {
    let indent = indent(text, open)?;
    let is_spread = is_json && text.trim_end().contains('\n');
    let is_tight = is_json && text.get(..open)?.ends_with(':');
    let writer = YamlWriter::new(text, is_json, is_spread, is_tight);
    let inside = open.checked_add(1)?..close;
    // There may be a comment between the brackets.
    if !text.get(inside.clone())?.trim().is_empty() {
        return None;
    }
    let whole = writer.mapping(fields, indent);
    let whole = whole.strip_prefix('{')?.strip_suffix('}')?.to_owned();
    Some((inside, whole))
}

/// Inserts after the last field, before the closing bracket.
fn insert_into_flow(
    text: &str,
    last: &LastEntry,
    close: usize,
    fields: &Map<String, Value>,
    is_json: bool,
) -> Option<Vec<Edit>> {
    let is_quoted = is_json || text.get(last.key.clone())?.starts_with('"');
    let after_key = text.get(last.key.end..)?.trim_start_matches([' ', '\t']);
    let is_tight = is_quoted
        && after_key
            .strip_prefix(':')?
            .starts_with(|it: char| !it.is_whitespace());
    let indent = indent(text, last.key.start)?;
    let line = text.get(..last.key.start)?.rsplit('\n').next()?;
    // The last field has a line of its own, so the new ones get lines too.
    let is_alone = line.len() == indent.len() && text.get(..last.key.start)?.contains('\n');
    let writer = YamlWriter::new(text, is_quoted, is_quoted && is_alone, is_tight);
    let entries = fields
        .iter()
        .map(|(name, value)| writer.entry(name, value, indent));
    let tail = text.get(last.end..close)?;
    // A trailing comma is valid in YAML, and stays behind the new fields.
    let comma = tail.trim_start().starts_with(',');
    let after_comma = if comma {
        last.end.checked_add(tail.find(',')?)?.checked_add(1)?
    } else {
        last.end
    };
    let end = if comma { "," } else { "" };
    if !is_alone {
        let entries: Vec<String> = entries.collect();
        let space = if is_tight { "" } else { " " };
        let joined = entries.join(&format!(",{space}"));
        let before = if comma { "" } else { "," };
        let word = format!("{before}{space}{joined}{end}");
        return Some(vec![(after_comma..after_comma, word)]);
    }
    let between = format!(",{}{indent}", writer.newline);
    let joined = entries.collect::<Vec<_>>().join(&between);
    let word = format!("{}{indent}{joined}{end}", writer.newline);
    // Keep a comment after the last field on its line.
    let rest = text.get(after_comma..close)?;
    let line = rest.split('\n').next().unwrap_or_default();
    let at = after_comma.checked_add(line.trim_end_matches('\r').len())?;
    let mut edits = Vec::new();
    if !comma {
        edits.push((last.end..last.end, ",".to_owned()));
    }
    edits.push(if rest.contains('\n') {
        (at..at, word)
    } else {
        (after_comma..after_comma, word)
    });
    Some(edits)
}

impl YamlWriter {
    fn new(text: &str, is_quoted: bool, is_spread: bool, is_tight: bool) -> Self {
        let mut indents = text.lines().filter_map(|it| indent(it, it.len()));
        let step = indents.find(|it| !it.is_empty());
        Self {
            is_quoted,
            is_tight,
            is_spread,
            newline: newline(text),
            step: step.map_or_else(|| " ".repeat(INDENT_DEFAULT), str::to_owned),
        }
    }

    /// Appends a field in block style.
    fn lines(&self, name: &str, value: &Value, indent: &str, out: &mut Vec<String>) {
        let name = self.text(name);
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push(format!("{indent}{name}:"));
                let deeper = format!("{indent}{}", self.step);
                for (name, value) in fields {
                    self.lines(name, value, &deeper, out);
                }
            }
            value => out.push(format!("{indent}{name}: {}", self.value(value, indent))),
        }
    }

    /// A field in flow style.
    fn entry(&self, name: &str, value: &Value, indent: &str) -> String {
        let space = if self.is_tight { "" } else { " " };
        format!("{}:{space}{}", self.text(name), self.value(value, indent))
    }

    fn value(&self, value: &Value, indent: &str) -> String {
        match value {
            Value::Object(fields) => self.mapping(fields, indent),
            Value::Array(items) => {
                let items = items.iter().map(|it| self.value(it, indent));
                self.bracketed(&items.collect::<Vec<_>>(), ('[', ']'), indent)
            }
            Value::String(text) => self.text(text),
            other => other.to_string(),
        }
    }

    fn mapping(&self, fields: &Map<String, Value>, indent: &str) -> String {
        let deeper = format!("{indent}{}", self.step);
        let entries = fields
            .iter()
            .map(|(name, value)| self.entry(name, value, &deeper));
        self.bracketed(&entries.collect::<Vec<_>>(), ('{', '}'), indent)
    }

    fn bracketed(&self, items: &[String], (open, close): (char, char), indent: &str) -> String {
        if items.is_empty() {
            return format!("{open}{close}");
        }
        if !self.is_spread {
            let comma = if self.is_tight { "," } else { ", " };
            return format!("{open}{}{close}", items.join(comma));
        }
        let (newline, step) = (self.newline, &self.step);
        let items = items.join(&format!(",{newline}{indent}{step}"));
        format!("{open}{newline}{indent}{step}{items}{newline}{indent}{close}")
    }

    /// A string, without quotes if every YAML parser reads it as one.
    fn text(&self, text: &str) -> String {
        let is_word = text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'/' | b'_'));
        // A leading digit, hyphen or dot may start a number or an indicator.
        let is_safe = is_word && text.starts_with(|it: char| it.is_ascii_alphabetic());
        if is_safe && !self.is_quoted && is_plain_string(text) {
            text.to_owned()
        } else {
            Value::from(text).to_string()
        }
    }
}

/// The white space at the start of the line of a byte.
fn indent(text: &str, at: usize) -> Option<&str> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    let rest = line.trim_start_matches([' ', '\t']);
    line.get(..line.len().checked_sub(rest.len())?)
}

fn newline(text: &str) -> &'static str {
    let first = text.split_once('\n');
    if first.is_some_and(|(line, _)| line.ends_with('\r')) {
        "\r\n"
    } else {
        "\n"
    }
}

//! YAML in blocks, line by line: what most manifests are, read several times as fast as by a parser of all YAML.
//!
//! A line is understood or the whole text is left to the parser. There are no anchors, tags, quotes that need
//! unescaping, scalars of several lines, or comments behind a value here.

use super::fast_parse::plain_scalar;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The deepest nesting that is read here.
const DEPTH_MAX: usize = 48;

/// The longest key, in bytes. YAML has a bound as well.
const KEY_MAX_BYTES: usize = 256;

/// A line that says something.
#[derive(Clone, Copy)]
struct BlockLine<'t> {
    /// Spaces before it.
    indent: usize,
    /// Without spaces around it.
    text: &'t str,
}

impl<'t> BlockLine<'t> {
    /// `None` if it says nothing.
    fn parse(line: &'t str) -> Option<Self> {
        let line = line.trim_end_matches(' ');
        let text = line.trim_start_matches(' ');
        let indent = line.len().saturating_sub(text.len());
        (!text.is_empty() && !text.starts_with('#')).then_some(Self { indent, text })
    }

    /// What stands behind the dash of an item, as a line of its own.
    fn strip_item_marker(self) -> Option<Self> {
        let text = self.text.strip_prefix("- ")?.trim_start_matches(' ');
        let before = self.text.len().saturating_sub(text.len());
        let indent = self.indent.saturating_add(before);
        Some(Self { indent, text })
    }

    /// A key, and what stands behind its colon.
    fn split_entry(self) -> Option<(&'t str, &'t str)> {
        let (key, rest) = self.text.split_once(':')?;
        let is_key = |it: u8| it.is_ascii_alphanumeric() || b"_./-".contains(&it);
        let begins = key.bytes().next()?.is_ascii_alphabetic();
        let ends = rest.is_empty() || rest.starts_with(' ');
        let is_usual = begins && ends && key.len() <= KEY_MAX_BYTES && key.bytes().all(is_key);
        is_usual.then(|| (key, rest.trim_start_matches(' ')))
    }
}

/// The documents of a text, without those that are null; `None` if it needs a parser.
pub(super) fn parse_documents(text: &str) -> Option<Vec<Value>> {
    let is_usual = |it: u8| it == b'\n' || (b' '..=b'~').contains(&it);
    if !text.bytes().all(is_usual) {
        return None;
    }
    let mut out = Vec::new();
    let mut lines = text.lines().peekable();
    while lines.peek().is_some() {
        let document = lines.by_ref().take_while(|it| *it != "---");
        Reader::new(document.filter_map(BlockLine::parse)).document(&mut out)?;
    }
    Some(out)
}

/// Where the reading is.
struct Reader<'t, L> {
    current: Option<BlockLine<'t>>,
    rest: L,
}

impl<'t, L: Iterator<Item = BlockLine<'t>>> Reader<'t, L> {
    fn new(mut lines: L) -> Self {
        Self {
            current: lines.next(),
            rest: lines,
        }
    }

    /// Puts the whole of it into `out`; nothing if nothing is said.
    fn document(mut self, out: &mut Vec<Value>) -> Option<()> {
        if let Some(first) = self.current {
            let begins = first.indent == 0;
            out.push(self.node(first, DEPTH_MAX).filter(|_| begins)?);
        }
        self.current.is_none().then_some(())
    }

    fn advance(&mut self) {
        self.current = self.rest.next();
    }

    /// What begins with this line.
    fn node(&mut self, first: BlockLine<'t>, depth: usize) -> Option<Value> {
        let below = depth.checked_sub(1)?;
        if first.strip_item_marker().is_some() {
            self.sequence(first.indent, below)
        } else {
            self.mapping(first.indent, below)
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut fields = Map::new();
        while let Some(line) = self.current
            && line.indent >= indent
        {
            let (key, rest) = line.split_entry().filter(|_| line.indent == indent)?;
            let Value::String(key) = plain_scalar(Cow::Borrowed(key))? else {
                return None;
            };
            self.advance();
            let value = if rest.is_empty() {
                self.nested_node(indent, depth)?
            } else {
                parse_inline(rest)?
            };
            // Of a key that stands twice the deserializer says where.
            if fields.insert(key, value).is_some() {
                return None;
            }
        }
        Some(Value::Object(fields))
    }

    /// What stands below a key of this indent.
    fn nested_node(&mut self, indent: usize, depth: usize) -> Option<Value> {
        match self.current {
            Some(line) if line.indent > indent => self.node(line, depth),
            Some(line) if line.indent == indent && line.strip_item_marker().is_some() => {
                self.node(line, depth)
            }
            _ => Some(Value::Null),
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while let Some(line) = self.current.filter(|it| it.indent == indent)
            && let Some(item) = line.strip_item_marker()
        {
            items.push(if item.split_entry().is_some() {
                self.current = Some(item);
                let below = depth.checked_sub(1)?;
                self.mapping(item.indent, below)?
            } else {
                self.advance();
                parse_inline(item.text)?
            });
        }
        let is_over = self.current.is_none_or(|it| it.indent <= indent);
        is_over.then_some(Value::Array(items))
    }
}

/// A value that stands in one line.
fn parse_inline(text: &str) -> Option<Value> {
    match text {
        "[]" => return Some(Value::Array(Vec::new())),
        "{}" => return Some(Value::Object(Map::new())),
        _ => {}
    }
    if let Some(items) = text.strip_prefix('[') {
        let items = items.strip_suffix(']')?.split(',');
        let items = items.map(|it| parse_scalar(it.trim_matches(' '), b""));
        return items.collect::<Option<Vec<_>>>().map(Value::Array);
    }
    parse_scalar(text, b" ,:()=+@")
}

/// A text in quotes, or one of letters, digits, and these.
fn parse_scalar(text: &str, also: &[u8]) -> Option<Value> {
    for quote in ['"', '\''] {
        if let Some(text) = text.strip_prefix(quote) {
            let text = text.strip_suffix(quote)?;
            let is_usual = !text.contains([quote, '\\']);
            return is_usual.then(|| Value::String(text.to_owned()));
        }
    }
    let is_usual =
        |it: u8| it.is_ascii_alphanumeric() || b"_./-".contains(&it) || also.contains(&it);
    // A colon before a space, or at the end, would make it a key.
    let is_one = !text.contains(": ") && !text.ends_with(':');
    let begins = text.bytes().next()?.is_ascii_alphanumeric();
    let is_plain = begins && is_one && text.bytes().all(is_usual);
    is_plain.then(|| plain_scalar(Cow::Borrowed(text)))?
}

#[cfg(test)]
mod tests;

//! A tree of the spans of a YAML text, built in the same pass as its values.

use super::scalar::plain_scalar;
use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, StructureStyle};
use lockkeeper_api::field_path::unescaped;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;

/// The largest text that is parsed here, in bytes. `serde-saphyr` parses larger texts, and has limits
/// of its own.
const SIZE_MAX_BYTES: usize = 1024 * 1024;

/// The deepest nesting that is parsed here.
const DEPTH_MAX: usize = 48;

/// The position of a finding: its field, or the deepest parent of the field that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The length of the underline, in characters.
    pub width: usize,
}

/// The nodes of a text, document by document. Null documents are not counted.
#[derive(Debug)]
pub(crate) struct YamlTree {
    documents: Vec<YamlNode>,
}

#[derive(Debug)]
struct YamlNode {
    span: Span,
    /// The node has an anchor or a tag, or is an alias: its value may differ from its text.
    is_linked: bool,
    /// Where the closing bracket begins, in bytes; `None` in block style.
    close: Option<usize>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A scalar or an alias.
    Leaf,
    Mapping(Vec<Entry>),
    Sequence(Vec<YamlNode>),
}

/// A mapping to which entries can be added.
pub(crate) struct Mapping {
    /// Its opening and its closing bracket, in bytes; `None` in block style.
    pub(crate) brackets: Option<(usize, usize)>,
    /// How much deeper the keys of a nested block mapping are indented, if there is one.
    pub(crate) step: Option<usize>,
    pub(crate) last: Option<LastEntry>,
}

/// The last entry of a mapping.
pub(crate) struct LastEntry {
    /// Its key, in bytes, without an indicator before it.
    pub(crate) key: Range<usize>,
    /// The column of the key, from 0.
    pub(crate) column: usize,
    /// Where its value ends, in bytes.
    pub(crate) end: usize,
}

impl YamlNode {
    /// Where the node ends, in bytes; `None` if it is empty.
    fn end(&self) -> Option<usize> {
        match (&self.content, self.close) {
            (_, Some(close)) => close.checked_add(1),
            (Content::Leaf, None) => {
                let range = self.span.byte_range()?;
                (!range.is_empty()).then_some(range.end)
            }
            (Content::Mapping(entries), None) => entries.last().and_then(Entry::end),
            (Content::Sequence(items), None) => items.last().and_then(Self::end),
        }
    }

    /// The column of its keys, if it is a mapping in block style.
    fn column(&self) -> Option<usize> {
        match (&self.content, self.close) {
            (Content::Mapping(entries), None) => Some(entries.first()?.span.start.col()),
            _ => None,
        }
    }
}

/// An entry of a mapping.
#[derive(Debug)]
struct Entry {
    /// `None` if the key is not a scalar.
    key: Option<String>,
    span: Span,
    value: YamlNode,
}

impl Entry {
    fn end(&self) -> Option<usize> {
        let key = self.span.byte_range()?;
        Some(self.value.end().unwrap_or(key.end))
    }
}

/// The node that a JSON pointer leads to.
struct PointerTarget<'a> {
    /// The span to show: the key, or the item.
    span: Span,
    node: &'a YamlNode,
    /// Whether the whole pointer exists.
    is_complete: bool,
    /// Whether any node on the path has an anchor or a tag, or is an alias.
    is_linked: bool,
}

impl YamlTree {
    /// Parses a text into its documents without null ones, and the tree. `None` if the text needs a full deserializer:
    /// errors, anchors, tags, directives, scalars of unclear type, or a text beyond the limits.
    pub(crate) fn parse(text: &str) -> Option<(Self, Vec<Value>)> {
        if text.len() > SIZE_MAX_BYTES || text.starts_with('\u{feff}') {
            return None;
        }
        let mut reader = Reader::new(text);
        let (tree, values) = reader.documents(DEPTH_MAX);
        (reader.is_exact && reader.is_complete).then_some((tree, values))
    }

    /// The tree of a text that a deserializer has accepted, which limited its depth. Stops at the first error.
    pub(crate) fn new(text: &str) -> Self {
        Reader::new(text).documents(usize::MAX).0
    }

    /// The position of a JSON pointer in a document, or of its deepest part that exists.
    pub(crate) fn locate(&self, document: usize, pointer: &str) -> Option<SourceLocation> {
        let found = self.find(document, pointer)?;
        Some(location_of(found.span))
    }

    /// The key that a JSON pointer ends in, in bytes.
    pub(crate) fn key_span(&self, document: usize, pointer: &str) -> Option<Range<usize>> {
        let found = self.find(document, pointer).filter(|it| it.is_complete)?;
        found.span.byte_range()
    }

    /// The scalar that a JSON pointer leads to, in bytes.
    pub(crate) fn scalar_span(&self, document: usize, pointer: &str) -> Option<Range<usize>> {
        let found = self.find(document, pointer).filter(|it| it.is_complete)?;
        match found.node.content {
            Content::Leaf => found.node.span.byte_range(),
            Content::Mapping(_) | Content::Sequence(_) => None,
        }
    }

    /// The mapping that a JSON pointer leads to. `None` if the pointer does not exist, or the mapping may have entries
    /// from elsewhere (anchors, tags, merge keys).
    pub(crate) fn mapping(&self, document: usize, pointer: &str) -> Option<Mapping> {
        let found = self.find(document, pointer)?;
        let node = found.node;
        let Content::Mapping(entries) = &node.content else {
            return None;
        };
        if found.is_linked || !found.is_complete || entries.iter().any(|it| it.key.is_none()) {
            return None;
        }
        let last = match entries.last() {
            None => None,
            Some(entry) => Some(LastEntry {
                key: entry.span.byte_range()?,
                column: entry.span.start.col(),
                end: entry.end()?,
            }),
        };
        let brackets = match node.close {
            None => None,
            Some(close) => Some((node.span.byte_range()?.start, close)),
        };
        let column = node.column();
        let mut below = entries.iter().filter_map(|it| it.value.column());
        let step = below.next().zip(column);
        Some(Mapping {
            brackets,
            step: step.and_then(|(below, column)| below.checked_sub(column)),
            last,
        })
    }

    fn find(&self, document: usize, pointer: &str) -> Option<PointerTarget<'_>> {
        let node = self.documents.get(document)?;
        let mut found = PointerTarget {
            span: node.span,
            node,
            is_complete: true,
            is_linked: node.is_linked,
        };
        // A JSON pointer begins with a slash, so the first part is empty.
        for step in pointer.split('/').skip(1) {
            let step = unescaped(step);
            let next = match &found.node.content {
                Content::Leaf => None,
                Content::Mapping(entries) => {
                    let mut entries = entries.iter();
                    let entry = entries.find(|it| it.key.as_ref() == Some(&step));
                    entry.map(|it| (it.span, &it.value))
                }
                Content::Sequence(items) => {
                    let item = step.parse().ok().and_then(|at: usize| items.get(at));
                    item.map(|it| (it.span, it))
                }
            };
            let Some((at, node)) = next else {
                found.is_complete = false;
                break;
            };
            (found.span, found.node) = (at, node);
            found.is_linked |= node.is_linked;
        }
        Some(found)
    }
}

/// Reads the events of a text into a tree and values.
struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// Whether the values are those that every YAML parser reads.
    is_exact: bool,
    /// Whether the end of the stream was reached without an error.
    is_complete: bool,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        let mut options = Options::default();
        options.set_emit_comments(false);
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            is_exact: true,
            is_complete: false,
        }
    }

    /// The next event of a node or document; `None` at the end, at an error, and once the nesting is too deep.
    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        loop {
            match self.parser.next()?.ok()? {
                (Event::Comment(..), _) => {}
                (Event::Anchor(..), _) => self.is_exact = false,
                other => return Some(other),
            }
        }
    }

    fn documents(&mut self, depth_max: usize) -> (YamlTree, Vec<Value>) {
        let (mut documents, mut values) = (Vec::new(), Vec::new());
        while let Some((event, _)) = self.next() {
            match event {
                Event::DocumentStart(_, version) => {
                    // The types of scalars differ between the versions that `%YAML` selects.
                    self.is_exact &= version.is_none();
                    let Some((event, span)) = self.next() else {
                        break;
                    };
                    let is_null = is_null(&event);
                    let (node, value) = self.node(event, span, depth_max);
                    if !is_null {
                        documents.push(node);
                        values.push(value);
                    }
                }
                Event::StreamEnd => self.is_complete = true,
                _ => {}
            }
        }
        (YamlTree { documents }, values)
    }

    /// The node that begins with `event`, and its value. The value means nothing unless `is_exact` stays true.
    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> (YamlNode, Value) {
        let mut node = YamlNode {
            span,
            is_linked: false,
            close: None,
            content: Content::Leaf,
        };
        let Some(below) = depth.checked_sub(1) else {
            self.is_exact = false;
            return (node, Value::Null);
        };
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                node.is_linked = anchor > 0 || tag.is_some();
                self.scalar(text, style)
            }
            Event::MappingStart(style, anchor, tag) => {
                node.is_linked = anchor > 0 || tag.is_some();
                let (entries, fields, end) = self.entries(below);
                node.content = Content::Mapping(entries);
                node.close = closing_bracket(style, end);
                Value::Object(fields)
            }
            Event::SequenceStart(style, anchor, tag) => {
                node.is_linked = anchor > 0 || tag.is_some();
                let (nodes, items, end) = self.items(below);
                node.content = Content::Sequence(nodes);
                node.close = closing_bracket(style, end);
                Value::Array(items)
            }
            _ => {
                // An alias: its value is that of the anchor.
                node.is_linked = true;
                Value::Null
            }
        };
        self.is_exact &= !node.is_linked;
        (node, value)
    }

    fn scalar(&mut self, text: Cow<'t, str>, style: ScalarStyle) -> Value {
        if style != ScalarStyle::Plain {
            return Value::String(text.into_owned());
        }
        plain_scalar(text).unwrap_or_else(|| {
            self.is_exact = false;
            Value::Null
        })
    }

    /// The entries of a mapping, its fields, and the span of its end.
    fn entries(&mut self, depth: usize) -> (Vec<Entry>, Map<String, Value>, Option<Span>) {
        let (mut entries, mut fields) = (Vec::new(), Map::new());
        // Below the depth limit nothing more is read.
        while depth > 0
            && let Some((event, span)) = self.next()
        {
            if matches!(event, Event::MappingEnd) {
                return (entries, fields, Some(span));
            }
            let key = match &event {
                Event::Scalar(text, ..) => Some(text.to_string()),
                _ => None,
            };
            let (_, name) = self.node(event, span, depth);
            let Some((event, at)) = self.next() else {
                break;
            };
            let (value, parsed) = self.node(event, at, depth);
            // Keys that are no strings, and duplicates, are left to the deserializer, which reports them.
            self.is_exact &= match name {
                Value::String(name) => fields.insert(name, parsed).is_none(),
                _ => false,
            };
            entries.push(Entry { key, span, value });
        }
        self.is_exact = false;
        (entries, fields, None)
    }

    /// The items of a sequence, their values, and the span of its end.
    fn items(&mut self, depth: usize) -> (Vec<YamlNode>, Vec<Value>, Option<Span>) {
        let (mut nodes, mut items) = (Vec::new(), Vec::new());
        while depth > 0
            && let Some((event, span)) = self.next()
        {
            if matches!(event, Event::SequenceEnd) {
                return (nodes, items, Some(span));
            }
            let (node, item) = self.node(event, span, depth);
            nodes.push(node);
            items.push(item);
        }
        self.is_exact = false;
        (nodes, items, None)
    }
}

fn closing_bracket(style: StructureStyle, end: Option<Span>) -> Option<usize> {
    let end = end.filter(|_| style == StructureStyle::Flow)?;
    end.start.byte_offset()
}

/// Whether a document is null. Such documents are skipped.
fn is_null(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => {
            matches!(&**text, "" | "~" | "null" | "Null" | "NULL")
        }
        _ => false,
    }
}

fn location_of(span: Span) -> SourceLocation {
    let (start, end) = (span.start, span.end);
    // The underline of a node on several lines is a single character.
    let width = if start.line() == end.line() {
        end.col().saturating_sub(start.col()).max(1)
    } else {
        1
    };
    SourceLocation {
        line: start.line(),
        column: start.col().saturating_add(1),
        width,
    }
}

#[cfg(test)]
mod tests;

//! Where in a YAML file fields stand. It is looked for only when something was found there.

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};
use lockkeeper_api::field_path::unescaped;
use std::ops::Range;

/// Where a finding is: the field itself, or what it would stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceLocation {
    /// From 1.
    pub(super) line: usize,
    /// From 1, in characters.
    pub(super) column: usize,
    /// How many characters are underlined.
    pub(super) width: usize,
}

/// The nodes of a text, document by document.
pub(super) struct YamlTree {
    documents: Vec<YamlNode>,
}

/// A node, and where it stands.
pub(super) struct YamlNode {
    span: Span,
    /// It has an anchor or a tag, or is an alias: it may be more than what stands here.
    is_linked: bool,
    /// Where the closing bracket begins, in bytes; `None` if it is not in flow style.
    close: Option<usize>,
    content: Content,
}

enum Content {
    /// A scalar, or something that leads elsewhere.
    Leaf,
    Mapping(Vec<Entry>),
    Sequence(Vec<YamlNode>),
}

/// A mapping that entries can be added to.
pub(super) struct Mapping {
    /// Where its opening bracket stands, and its closing one, in bytes; `None` if it is in block style.
    pub(super) brackets: Option<(usize, usize)>,
    /// How much deeper than its keys those of a mapping in it stand, if there is one in block style.
    pub(super) step: Option<usize>,
    pub(super) last: Option<LastEntry>,
}

/// The last entry of a mapping.
pub(super) struct LastEntry {
    /// Its key, in bytes, without an indicator before it.
    pub(super) key: Range<usize>,
    /// The column of the key, from 0.
    pub(super) column: usize,
    /// Where its value ends, in bytes.
    pub(super) end: usize,
}

impl YamlNode {
    /// Where it ends, in bytes; `None` if nothing stands there.
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

impl Entry {
    fn end(&self) -> Option<usize> {
        let key = self.span.byte_range()?;
        Some(self.value.end().unwrap_or(key.end))
    }
}

/// An entry of a mapping.
struct Entry {
    /// `None` if the key is not a scalar.
    key: Option<String>,
    span: Span,
    value: YamlNode,
}

/// What a pointer leads to.
struct PointerTarget<'a> {
    /// What is shown for it: the key, or the item.
    span: Span,
    node: &'a YamlNode,
    /// Whether all of the pointer was there.
    is_complete: bool,
    /// Whether any node on the way has an anchor or a tag, or is an alias.
    is_linked: bool,
}

impl YamlTree {
    /// Reads a text that has been parsed before: what is wrong with it has been told.
    pub(super) fn new(text: &str) -> Self {
        let events = Parser::new_from_str(text).map_while(Result::ok);
        let is_node = |event: &Event<'_>| !matches!(event, Event::Comment(..) | Event::Anchor(..));
        let mut events = events.filter(|(event, _)| is_node(event));
        let mut documents = Vec::new();
        while let Some((event, _)) = events.next() {
            if matches!(event, Event::DocumentStart(..))
                && let Some((event, span)) = events.next()
                && !is_null(&event)
            {
                documents.push(parse_node(&event, span, &mut events));
            }
        }
        Self { documents }
    }

    /// The place of a JSON pointer in a document; the deepest part of it that there is.
    pub(super) fn locate(&self, document: usize, pointer: &str) -> Option<SourceLocation> {
        let found = self.find(document, pointer)?;
        Some(location_of(found.span))
    }

    /// Where the key stands that a JSON pointer ends in, in bytes.
    pub(super) fn key_span(&self, document: usize, pointer: &str) -> Option<Range<usize>> {
        let found = self.find(document, pointer).filter(|it| it.is_complete)?;
        found.span.byte_range()
    }

    /// Where the scalar stands that a JSON pointer leads to, in bytes.
    pub(super) fn scalar_span(&self, document: usize, pointer: &str) -> Option<Range<usize>> {
        let found = self.find(document, pointer).filter(|it| it.is_complete)?;
        match found.node.content {
            Content::Leaf => found.node.span.byte_range(),
            Content::Mapping(_) | Content::Sequence(_) => None,
        }
    }

    /// The mapping that a JSON pointer leads to, in bytes. `None` if what is written there is not all that there is, or
    /// not all there.
    pub(super) fn mapping(&self, document: usize, pointer: &str) -> Option<Mapping> {
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

/// Whether a document is none: those are not counted.
fn is_null(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => {
            matches!(&**text, "" | "~" | "null" | "Null" | "NULL")
        }
        _ => false,
    }
}

/// Reads the node that begins with `event`. How deep it may go was bounded when the text was parsed.
fn parse_node<'t>(
    event: &Event<'t>,
    span: Span,
    events: &mut impl Iterator<Item = (Event<'t>, Span)>,
) -> YamlNode {
    let (is_linked, is_flow) = match event {
        Event::Scalar(_, _, anchor, tag) => (*anchor > 0 || tag.is_some(), false),
        Event::MappingStart(style, anchor, tag) | Event::SequenceStart(style, anchor, tag) => {
            (*anchor > 0 || tag.is_some(), *style == StructureStyle::Flow)
        }
        _ => (true, false),
    };
    let mut last = None;
    let content = match event {
        Event::MappingStart(..) => {
            let mut entries = Vec::new();
            while let Some((event, at)) = events.next() {
                if matches!(event, Event::MappingEnd) {
                    last = Some(at);
                    break;
                }
                let key = match &event {
                    Event::Scalar(text, ..) => Some(text.to_string()),
                    Event::Alias(..) => None,
                    _ => {
                        parse_node(&event, at, events);
                        None
                    }
                };
                let Some((event, span)) = events.next() else {
                    break;
                };
                entries.push(Entry {
                    key,
                    span: at,
                    value: parse_node(&event, span, events),
                });
            }
            Content::Mapping(entries)
        }
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            while let Some((event, span)) = events.next() {
                if matches!(event, Event::SequenceEnd) {
                    last = Some(span);
                    break;
                }
                items.push(parse_node(&event, span, events));
            }
            Content::Sequence(items)
        }
        _ => Content::Leaf,
    };
    let close = last
        .filter(|_| is_flow)
        .and_then(|it| it.start.byte_offset());
    YamlNode {
        span,
        is_linked,
        close,
        content,
    }
}

fn location_of(span: Span) -> SourceLocation {
    let (start, end) = (span.start, span.end);
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

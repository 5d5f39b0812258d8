//! Where in a YAML file fields stand. It is looked for only when something was found there.

use granit_parser::{Event, Parser, ScalarStyle, Span};
use std::ops::Range;

/// Where a finding is: the field itself, or what it would stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1.
    pub(super) line: usize,
    /// From 1, in characters.
    pub(super) column: usize,
    /// How many characters are underlined.
    pub(super) width: usize,
}

/// The nodes of a text, document by document.
pub(super) struct Tree {
    documents: Vec<Node>,
}

/// A node, and where it stands.
pub(super) struct Node {
    span: Span,
    content: Content,
}

enum Content {
    /// A scalar, or something that leads elsewhere.
    Leaf,
    Mapping(Vec<Entry>),
    Sequence(Vec<Node>),
}

/// An entry of a mapping.
struct Entry {
    /// `None` if the key is not a scalar.
    key: Option<String>,
    span: Span,
    value: Node,
}

/// What a pointer leads to.
struct Found<'a> {
    /// What is shown for it: the key, or the item.
    at: Span,
    node: &'a Node,
    /// Whether all of the pointer was there.
    is_whole: bool,
}

impl Tree {
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
                documents.push(node(&event, span, &mut events));
            }
        }
        Self { documents }
    }

    /// The place of a JSON pointer in a document; the deepest part of it that there is.
    pub(super) fn place(&self, document: usize, pointer: &str) -> Option<Place> {
        let found = self.find(document, pointer)?;
        Some(place_of(found.at))
    }

    /// Where the key stands that a JSON pointer ends in, in bytes.
    pub(super) fn key(&self, document: usize, pointer: &str) -> Option<Range<usize>> {
        let found = self.find(document, pointer).filter(|it| it.is_whole)?;
        found.at.byte_range()
    }

    /// Where the scalar stands that a JSON pointer leads to, in bytes.
    pub(super) fn scalar(&self, document: usize, pointer: &str) -> Option<Range<usize>> {
        let found = self.find(document, pointer).filter(|it| it.is_whole)?;
        match found.node.content {
            Content::Leaf => found.node.span.byte_range(),
            Content::Mapping(_) | Content::Sequence(_) => None,
        }
    }

    fn find(&self, document: usize, pointer: &str) -> Option<Found<'_>> {
        let node = self.documents.get(document)?;
        let mut found = Found {
            at: node.span,
            node,
            is_whole: true,
        };
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
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
                found.is_whole = false;
                break;
            };
            (found.at, found.node) = (at, node);
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
fn node<'t>(
    event: &Event<'t>,
    span: Span,
    events: &mut impl Iterator<Item = (Event<'t>, Span)>,
) -> Node {
    let content = match event {
        Event::MappingStart(..) => {
            let mut entries = Vec::new();
            while let Some((event, at)) = events.next() {
                if matches!(event, Event::MappingEnd) {
                    break;
                }
                let key = match &event {
                    Event::Scalar(text, ..) => Some(text.to_string()),
                    Event::Alias(..) => None,
                    _ => {
                        node(&event, at, events);
                        None
                    }
                };
                let Some((event, span)) = events.next() else {
                    break;
                };
                entries.push(Entry {
                    key,
                    span: at,
                    value: node(&event, span, events),
                });
            }
            Content::Mapping(entries)
        }
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            while let Some((event, span)) = events.next() {
                if matches!(event, Event::SequenceEnd) {
                    break;
                }
                items.push(node(&event, span, events));
            }
            Content::Sequence(items)
        }
        _ => Content::Leaf,
    };
    Node { span, content }
}

fn place_of(span: Span) -> Place {
    let (start, end) = (span.start, span.end);
    let width = if start.line() == end.line() {
        end.col().saturating_sub(start.col()).max(1)
    } else {
        1
    };
    Place {
        line: start.line(),
        column: start.col().saturating_add(1),
        width,
    }
}

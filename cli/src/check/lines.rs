//! Where in a YAML file a field stands. It is looked for only when something was found there.

use super::source::Document;
use granit_parser::{Event, Parser, Span};

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

/// The place of a JSON pointer in a document; the deepest part of it that there is.
pub(super) fn place(text: &str, document: &Document, pointer: &str) -> Option<Place> {
    let whole = format!("{}{pointer}", document.pointer);
    let steps: Vec<String> = whole
        .split('/')
        .skip(1)
        .map(|it| it.replace("~1", "/").replace("~0", "~"))
        .collect();
    let mut search = Search {
        steps: &steps,
        best: None,
    };
    let mut events = Parser::new_from_str(text).map_while(Result::ok);
    let mut number = 0_usize;
    while let Some((event, span)) = events.next() {
        if matches!(event, Event::DocumentStart(..)) {
            if number == document.number {
                let (event, span) = events.next()?;
                search.node(&event, span, Some(0), span, &mut events);
                break;
            }
            number = number.saturating_add(1);
        } else {
            let _ = span;
        }
    }
    search.best.map(|(_, place)| place)
}

struct Search<'a> {
    steps: &'a [String],
    /// How much of the pointer was found, and where.
    best: Option<(usize, Place)>,
}

impl Search<'_> {
    /// Reads a node. `depth` is how much of the pointer led here, `None` if something else did; `at` is what
    /// is shown for it: the key, or the item.
    fn node<'t>(
        &mut self,
        event: &Event<'t>,
        span: Span,
        depth: Option<usize>,
        at: Span,
        events: &mut impl Iterator<Item = (Event<'t>, Span)>,
    ) {
        if let Some(depth) = depth
            && self.best.is_none_or(|(best, _)| depth > best)
        {
            self.best = Some((depth, place_of(at)));
        }
        let next = depth.and_then(|depth| Some((depth, self.steps.get(depth)?.clone())));
        match event {
            Event::MappingStart(..) => {
                while let Some((key, key_span)) = events.next() {
                    if matches!(key, Event::MappingEnd) {
                        break;
                    }
                    let below = match (&key, &next) {
                        (Event::Scalar(name, ..), Some((depth, step))) if **name == **step => {
                            Some(depth.saturating_add(1))
                        }
                        _ => None,
                    };
                    if !matches!(key, Event::Scalar(..) | Event::Alias(..)) {
                        self.node(&key, key_span, None, key_span, events);
                    }
                    let Some((value, span)) = events.next() else {
                        return;
                    };
                    self.node(&value, span, below, key_span, events);
                }
            }
            Event::SequenceStart(..) => {
                let mut at = 0_usize;
                while let Some((item, span)) = events.next() {
                    if matches!(item, Event::SequenceEnd) {
                        break;
                    }
                    let below = next.as_ref().and_then(|(depth, step)| {
                        (step.parse() == Ok(at)).then(|| depth.saturating_add(1))
                    });
                    self.node(&item, span, below, span, events);
                    at = at.saturating_add(1);
                }
            }
            _ => {
                let _ = span;
            }
        }
    }
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

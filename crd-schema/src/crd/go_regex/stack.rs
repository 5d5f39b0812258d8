//! The stack of parsed expressions, for the limits of Go.
//!
//! Go builds a tree; the limits need its heights, its sizes and its repetitions only.

use super::flags::Flags;

/// The largest height of the tree.
const HEIGHT_MAX: u32 = 1000;

/// The largest number of instructions of a program.
const SIZE_MAX: u64 = 128 * 1024 * 1024 / 40;

/// The largest count of a repetition, and of repetitions inside each other.
pub(super) const COPIES_MAX: u32 = 1000;

/// What an expression is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Signs, with or without regard to case.
    Literal(bool),
    /// One sign of a set.
    Class,
    /// An assertion, an empty expression, a capture or `*`, `+`, `?`.
    Other,
    /// A repetition with counts.
    Repetition,
    /// Expressions in sequence.
    Sequence,
    /// Alternatives.
    Alternatives,
}

/// An expression.
#[derive(Clone, Copy)]
pub(super) struct Node {
    /// What it is.
    pub(super) kind: Kind,
    /// Where it starts in the output.
    start: usize,
    height: u32,
    size: u64,
    /// The product of the repetitions inside each other.
    copies: u32,
}

impl Node {
    /// An expression without parts.
    pub(super) fn leaf(kind: Kind, start: usize) -> Self {
        Self {
            kind,
            start,
            height: 1,
            size: 1,
            copies: 1,
        }
    }

    /// Whether it matches exactly one sign.
    fn is_class(&self) -> bool {
        self.kind == Kind::Class || (matches!(self.kind, Kind::Literal(_)) && self.size == 1)
    }
}

/// An entry of the stack.
enum Entry {
    Node(Node),
    Bar,
    /// An open group, and the flags before it.
    Group {
        is_capture: bool,
        flags: Flags,
        start: usize,
    },
}

/// The stack, with the counters that decide when Go computes sizes.
#[derive(Default)]
pub(super) struct Stack {
    entries: Vec<Entry>,
    /// The nodes in use, and those that Go would use again.
    allocated: u64,
    free: u64,
    /// The product of all repetitions, less one.
    repeats: u64,
    has_sizes: bool,
}

impl Stack {
    /// Adds an expression.
    pub(super) fn push(&mut self, node: Node) -> Option<()> {
        self.allocate();
        self.place(node)
    }

    fn place(&mut self, node: Node) -> Option<()> {
        self.join_literals();
        self.entries.push(Entry::Node(node));
        self.check(&node, None)
    }

    /// Adds the start of a group.
    pub(super) fn open(&mut self, is_capture: bool, flags: Flags, start: usize) {
        self.allocate();
        self.join_literals();
        self.entries.push(Entry::Group {
            is_capture,
            flags,
            start,
        });
    }

    /// Repeats the last expression; gives its start, and whether it is a repetition already.
    pub(super) fn repeat(&mut self, counts: Option<(u32, Option<u32>)>) -> Option<usize> {
        self.allocate();
        let Some(Entry::Node(node)) = self.entries.last_mut() else {
            return None;
        };
        node.height = node.height.saturating_add(1);
        match counts {
            None => {
                node.kind = Kind::Other;
                node.size = node.size.saturating_add(2);
            }
            Some((min, max)) => {
                node.kind = Kind::Repetition;
                let count = max.unwrap_or(min);
                if max == Some(0) {
                    node.copies = 1;
                } else {
                    node.copies = node.copies.saturating_mul(count.max(1));
                }
                if count >= 2 && node.copies > COPIES_MAX {
                    return None;
                }
                let inside = node.size.saturating_mul(u64::from(count));
                node.size = match max {
                    None if min == 0 => node.size.saturating_add(2),
                    None => inside.saturating_add(1),
                    Some(max) => inside.saturating_add(u64::from(max.saturating_sub(min))),
                }
                .max(1);
            }
        }
        let node = *node;
        self.check(&node, counts.map(|(min, max)| max.unwrap_or(min)))?;
        Some(node.start)
    }

    /// Ends an alternative.
    pub(super) fn bar(&mut self, start: usize) -> Option<()> {
        self.collapse(Kind::Sequence, start)?;
        if !self.swap_bar() {
            self.allocate();
            self.entries.push(Entry::Bar);
        }
        Some(())
    }

    /// Ends a group; gives the flags before it.
    pub(super) fn close(&mut self, end: usize) -> Option<Flags> {
        let node = self.finish(end)?;
        let Some(Entry::Group {
            is_capture,
            flags,
            start,
        }) = self.entries.pop()
        else {
            return None;
        };
        let mut node = Node { start, ..node };
        if is_capture {
            node.kind = Kind::Other;
            node.height = node.height.saturating_add(1);
            node.size = node.size.saturating_add(2);
        }
        self.place(node)?;
        Some(flags)
    }

    /// Ends the pattern; `None` if a group is open.
    pub(super) fn end(&mut self, end: usize) -> Option<()> {
        self.finish(end)?;
        self.entries.is_empty().then_some(())
    }

    /// Takes the expression since the start of the group.
    fn finish(&mut self, end: usize) -> Option<Node> {
        self.collapse(Kind::Sequence, end)?;
        if self.swap_bar() {
            self.entries.pop();
        }
        self.collapse(Kind::Alternatives, end)?;
        match self.entries.pop() {
            Some(Entry::Node(node)) => Some(node),
            _ => None,
        }
    }

    /// Replaces the expressions after the last bar or group by one.
    fn collapse(&mut self, kind: Kind, start: usize) -> Option<()> {
        self.join_literals();
        let from = self
            .entries
            .iter()
            .rposition(|it| !matches!(it, Entry::Node(_)))
            .map_or(0, |it| it.saturating_add(1));
        let parts: Vec<Node> = self
            .entries
            .drain(from..)
            .filter_map(|it| match it {
                Entry::Node(node) => Some(node),
                Entry::Bar | Entry::Group { .. } => None,
            })
            .collect();
        let Some(first) = parts.first() else {
            return self.push(Node::leaf(Kind::Other, start));
        };
        if parts.len() == 1 {
            return self.place(*first);
        }
        let mut whole = Node::leaf(kind, first.start);
        whole.size = 0;
        for part in &parts {
            let is_same = part.kind == kind;
            if is_same {
                self.free = self.free.saturating_add(1);
            }
            let height = part.height.saturating_add(u32::from(!is_same));
            whole.height = whole.height.max(height);
            whole.size = whole.size.saturating_add(part.size);
            whole.copies = whole.copies.max(part.copies);
        }
        if kind == Kind::Alternatives {
            let bars = u64::try_from(parts.len().saturating_sub(1)).ok()?;
            whole.size = whole.size.saturating_add(bars);
        }
        self.push(whole)
    }

    /// Joins the last two expressions if both are literals (`maybeConcat` of Go).
    fn join_literals(&mut self) {
        if let [.., Entry::Node(before), Entry::Node(last)] = self.entries.as_mut_slice()
            && matches!(before.kind, Kind::Literal(_))
            && before.kind == last.kind
        {
            before.size = before.size.saturating_add(last.size);
            self.entries.pop();
            self.free = self.free.saturating_add(1);
        }
    }

    /// Moves a bar behind the alternative after it (`swapVerticalBar` of Go).
    fn swap_bar(&mut self) -> bool {
        match self.entries.as_mut_slice() {
            [.., Entry::Node(before), Entry::Bar, Entry::Node(last)]
                if before.is_class() && last.is_class() =>
            {
                before.kind = Kind::Class;
                self.entries.pop();
                self.free = self.free.saturating_add(1);
                true
            }
            [.., bar @ Entry::Bar, last] => {
                std::mem::swap(bar, last);
                true
            }
            _ => false,
        }
    }

    fn allocate(&mut self) {
        match self.free.checked_sub(1) {
            Some(free) => self.free = free,
            None => self.allocated = self.allocated.saturating_add(1),
        }
    }

    /// Checks the limits (`checkLimits` of Go).
    fn check(&mut self, node: &Node, count: Option<u32>) -> Option<()> {
        let repeats = self.repeats.saturating_add(1);
        let repeats = repeats.saturating_mul(u64::from(count.unwrap_or(1).max(1)));
        self.repeats = repeats.min(SIZE_MAX).saturating_sub(1);
        // Go computes no sizes before this product is large.
        self.has_sizes |= self.allocated.saturating_mul(repeats) >= SIZE_MAX;
        let is_large = self.has_sizes && node.size > SIZE_MAX;
        (!is_large && node.height <= HEIGHT_MAX).then_some(())
    }
}

//! The parser of Go (`parse` of the package `regexp/syntax`), which writes the syntax of the crate `regex`.

use super::class;
use super::cursor::Cursor;
use super::escape;
use super::flags::Flags;
use super::stack::{COPIES_MAX, Kind, Node, Stack};

/// The pattern in the syntax of the crate `regex`, without captures; `None` if Go refuses it.
pub(super) fn translate(pattern: &str) -> Option<String> {
    let mut parser = Parser {
        at: Cursor(pattern),
        out: String::with_capacity(pattern.len()),
        stack: Stack::default(),
        flags: Flags::default(),
        is_after_repetition: false,
        is_repetition_last: false,
    };
    while let Some(sign) = parser.at.peek() {
        let is_repetition = parser.step(sign)?;
        parser.is_after_repetition = is_repetition;
    }
    parser.stack.end(parser.out.len())?;
    Some(parser.out)
}

struct Parser<'a> {
    at: Cursor<'a>,
    out: String,
    stack: Stack,
    flags: Flags,
    /// Whether the last step was a repetition, so that Go refuses another one.
    is_after_repetition: bool,
    /// Whether the last expression ends with a repetition, which `(?i)` may separate from the next.
    is_repetition_last: bool,
}

impl Parser<'_> {
    /// Reads the next part; whether it is a repetition.
    fn step(&mut self, sign: char) -> Option<bool> {
        match sign {
            '(' => self.group()?,
            '|' => {
                self.at.next()?;
                let end = self.out.len();
                self.stack.bar(end)?;
                self.out.push('|');
            }
            ')' => {
                self.at.next()?;
                self.flags = self.stack.close(self.out.len())?;
                self.out.push(')');
                self.is_repetition_last = false;
            }
            '^' => {
                self.at.next()?;
                let has_lines = self.flags.has(Flags::LINES);
                self.leaf(Kind::Other, if has_lines { "(?m:^)" } else { "(?:\\A)" })?;
            }
            '$' => {
                self.at.next()?;
                let has_lines = self.flags.has(Flags::LINES);
                self.leaf(Kind::Other, if has_lines { "(?m:$)" } else { "(?:\\z)" })?;
            }
            '.' => {
                self.at.next()?;
                let has_all = self.flags.has(Flags::DOT_LINE_FEED);
                self.leaf(Kind::Class, if has_all { "(?s:.)" } else { r"[^\n]" })?;
            }
            '[' => {
                let mut text = String::new();
                class::bracketed(&mut self.at, &mut text)?;
                self.class(&text)?;
            }
            '*' | '+' | '?' => {
                self.at.next()?;
                self.repeat(None, sign.encode_utf8(&mut [0; 4]))?;
                return Some(true);
            }
            '{' => return self.counts(),
            '\\' => self.escape()?,
            other => {
                self.at.next()?;
                self.literal(u32::from(other))?;
            }
        }
        Some(false)
    }

    /// Reads `{…}`: a repetition, or a literal brace.
    fn counts(&mut self) -> Option<bool> {
        let Some((min, max)) = self.at.take_counts() else {
            self.at.next()?;
            self.literal(u32::from('{'))?;
            return Some(false);
        };
        if min > COPIES_MAX || max.is_some_and(|it| it > COPIES_MAX || it < min) {
            return None;
        }
        let operator = match max {
            Some(max) => format!("{{{min},{max}}}"),
            None => format!("{{{min},}}"),
        };
        self.repeat(Some((min, max)), &operator)?;
        Some(true)
    }

    /// Repeats the last expression (`repeat` of Go).
    fn repeat(&mut self, counts: Option<(u32, Option<u32>)>, operator: &str) -> Option<()> {
        let is_lazy = self.at.take("?") != self.flags.has(Flags::UNGREEDY);
        if self.is_after_repetition {
            return None;
        }
        let start = self.stack.repeat(counts)?;
        if self.is_repetition_last {
            // Without a group, the operators would be read as one.
            self.out.insert_str(start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(operator);
        if is_lazy {
            self.out.push('?');
        }
        self.is_repetition_last = true;
        Some(())
    }

    /// Reads `(`, `(?P<name>`, `(?flags)` or `(?flags:` (`parsePerlFlags` of Go).
    fn group(&mut self) -> Option<()> {
        self.at.next()?;
        if !self.at.take("?") {
            self.open(true);
            return Some(());
        }
        if self.at.take("P<") || self.at.take("<") {
            let name = self.at.take_until(">")?;
            let is_name = |it: char| it == '_' || it.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_name) {
                return None;
            }
            self.open(true);
            return Some(());
        }
        let mut flags = self.flags;
        let mut is_on = true;
        let mut has_flag = false;
        loop {
            match self.at.next()? {
                '-' if is_on => {
                    is_on = false;
                    has_flag = false;
                }
                sign @ (':' | ')') => {
                    if !is_on && !has_flag {
                        return None;
                    }
                    if sign == ':' {
                        self.open(false);
                    }
                    self.flags = flags;
                    return Some(());
                }
                letter => {
                    flags = flags.with(Flags::of_letter(letter)?, is_on);
                    has_flag = true;
                }
            }
        }
    }

    fn open(&mut self, is_capture: bool) {
        self.stack.open(is_capture, self.flags, self.out.len());
        self.out.push_str("(?:");
    }

    /// Reads an escape sequence outside a class.
    fn escape(&mut self) -> Option<()> {
        if let Some(items) = class::escaped(&mut self.at).ok()? {
            return if items.is_empty() {
                self.class(class::NOTHING)
            } else {
                self.class(&format!("[{items}]"))
            };
        }
        self.at.next()?;
        let mut ahead = self.at;
        let assertion = match ahead.next()? {
            'A' => "(?:\\A)",
            'z' => "(?:\\z)",
            'b' => "(?-u:\\b)",
            'B' => "(?-u:\\B)",
            'Q' => {
                let text = match ahead.take_until("\\E") {
                    Some(text) => text,
                    None => std::mem::take(&mut ahead.0),
                };
                self.at = ahead;
                return text.chars().try_for_each(|it| self.literal(u32::from(it)));
            }
            _ => {
                let code = escape::code(&mut self.at)?;
                return self.literal(code);
            }
        };
        self.at = ahead;
        self.leaf(Kind::Other, assertion)
    }

    /// Adds a literal character.
    fn literal(&mut self, code: u32) -> Option<()> {
        let has_fold = self.flags.has(Flags::FOLD);
        let kind = Kind::Literal(has_fold);
        let Some(sign) = char::from_u32(code) else {
            return self.leaf(kind, class::NOTHING);
        };
        let mut text = String::new();
        escape::push_sign(sign, &mut text);
        if has_fold {
            text = format!("(?i:{text})");
        }
        self.leaf(kind, &text)
    }

    /// Adds a class.
    fn class(&mut self, text: &str) -> Option<()> {
        if self.flags.has(Flags::FOLD) {
            self.leaf(Kind::Class, &format!("(?i:{text})"))
        } else {
            self.leaf(Kind::Class, text)
        }
    }

    fn leaf(&mut self, kind: Kind, text: &str) -> Option<()> {
        self.stack.push(Node::leaf(kind, self.out.len()))?;
        self.out.push_str(text);
        self.is_repetition_last = false;
        Some(())
    }
}

//! A position in a pattern.

/// The part of a pattern that is still to be read.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a str);

impl<'a> Cursor<'a> {
    /// The next sign, which stays unread.
    pub(super) fn peek(self) -> Option<char> {
        self.0.chars().next()
    }

    /// Reads the next sign.
    pub(super) fn next(&mut self) -> Option<char> {
        let mut signs = self.0.chars();
        let sign = signs.next()?;
        self.0 = signs.as_str();
        Some(sign)
    }

    /// Reads a prefix, if it is there.
    pub(super) fn take(&mut self, prefix: &str) -> bool {
        match self.0.strip_prefix(prefix) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Reads the text before a mark, and the mark; `None` if there is no mark.
    pub(super) fn take_until(&mut self, mark: &str) -> Option<&'a str> {
        let (text, rest) = self.0.split_once(mark)?;
        self.0 = rest;
        Some(text)
    }

    /// Reads the counts of `{n}`, `{n,}` or `{n,m}` (`parseRepeat` of Go).
    ///
    /// `None` if it is no repetition, so that `{` is a literal.
    pub(super) fn take_counts(&mut self) -> Option<(u32, Option<u32>)> {
        let mut at = *self;
        if !at.take("{") {
            return None;
        }
        let min = at.take_count()?;
        let max = if at.take(",") {
            match at.peek() {
                Some('}') => None,
                _ => Some(at.take_count()?),
            }
        } else {
            Some(min)
        };
        if !at.take("}") {
            return None;
        }
        *self = at;
        Some((min, max))
    }

    /// Reads a decimal number without leading zeros; a number too large for the type becomes its maximum.
    fn take_count(&mut self) -> Option<u32> {
        let end = self
            .0
            .find(|it: char| !it.is_ascii_digit())
            .unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at_checked(end)?;
        if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
            return None;
        }
        self.0 = rest;
        Some(digits.parse().unwrap_or(u32::MAX))
    }
}

//! The flags of a group, such as `(?i)`.

/// The flags of Go that are off at the start of a pattern.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    /// `i`: letters match without regard to case.
    pub(super) const FOLD: Self = Self(1);
    /// `m`: `^` and `$` match at lines.
    pub(super) const LINES: Self = Self(2);
    /// `s`: `.` matches a line feed.
    pub(super) const DOT_LINE_FEED: Self = Self(4);
    /// `U`: repetitions prefer fewer copies.
    pub(super) const UNGREEDY: Self = Self(8);

    /// Whether a flag is on.
    pub(super) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    /// The flags with one set or cleared.
    pub(super) fn with(self, flag: Self, is_on: bool) -> Self {
        if is_on {
            Self(self.0 | flag.0)
        } else {
            Self(self.0 & !flag.0)
        }
    }

    /// The flag of a letter.
    pub(super) fn of_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'i' => Self::FOLD,
            'm' => Self::LINES,
            's' => Self::DOT_LINE_FEED,
            'U' => Self::UNGREEDY,
            _ => return None,
        })
    }
}

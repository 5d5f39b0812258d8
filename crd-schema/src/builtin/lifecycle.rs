//! The releases of Kubernetes that serve a kind.

use std::fmt;

/// A minor release of Kubernetes, such as 1.37.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

impl Release {
    /// The release that the table of kinds comes from.
    pub const NEWEST: Self = Self {
        major: 1,
        minor: 37,
    };

    /// A release such as `1.16`; `None` for `-`.
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What the Go types of the API say about the releases of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lifecycle {
    pub(super) deprecated: Option<Release>,
    pub(super) removed: Option<Release>,
    /// `apiVersion` and kind.
    pub(super) replacement: Option<(&'static str, &'static str)>,
}

impl Lifecycle {
    /// Reads the end of a line of the table: the releases that introduce, deprecate and remove the kind, and the kind
    /// that replaces it.
    pub(super) fn parse(words: impl Iterator<Item = &'static str>) -> Self {
        let mut words = words.skip(1);
        let deprecated = words.next().and_then(Release::parse);
        let removed = words.next().and_then(Release::parse);
        let replacement = match (words.next(), words.next()) {
            (Some(api_version), Some(kind)) if kind != "-" => Some((api_version, kind)),
            _ => None,
        };
        Self {
            deprecated,
            removed,
            replacement,
        }
    }
}

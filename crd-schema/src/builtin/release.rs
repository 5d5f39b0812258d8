//! The releases of Kubernetes.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// A minor release of Kubernetes, such as 1.37. The default is the newest supported one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

/// An error of parsing a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseError {
    /// The text is no version.
    Malformed,
    /// The kinds of this release are unknown.
    Unsupported,
}

impl Release {
    /// The newest supported release.
    pub const NEWEST: Self = Self::minor(37);

    /// The releases of which the kinds and fields are known, the oldest first.
    pub const SUPPORTED: [Self; 5] = [
        Self::minor(33),
        Self::minor(34),
        Self::minor(35),
        Self::minor(36),
        Self::NEWEST,
    ];

    const fn minor(minor: u16) -> Self {
        Self { major: 1, minor }
    }

    /// A release such as `1.16`, supported or not; `None` if the text is none, such as `-`.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl Default for Release {
    fn default() -> Self {
        Self::NEWEST
    }
}

/// Parses a supported release from the version of a cluster: `1.33`, `v1.33` or `v1.33.4-gke.100`. The patch and what
/// follows it are ignored.
impl FromStr for Release {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let numbers: Result<Vec<u16>, _> = numbers.split('.').map(str::parse).collect();
        let release = match numbers.as_deref() {
            Ok([major, minor] | [major, minor, _]) => Self {
                major: *major,
                minor: *minor,
            },
            _ => return Err(ReleaseError::Malformed),
        };
        let is_supported = Self::SUPPORTED.contains(&release);
        is_supported
            .then_some(release)
            .ok_or(ReleaseError::Unsupported)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("not a version; write it as 1.36 or v1.36.2")?,
            Self::Unsupported => f.write_str("unsupported version")?,
        }
        let names = Release::SUPPORTED.map(|it| it.to_string());
        write!(f, "; use one of {}", names.join(", "))
    }
}

impl Error for ReleaseError {}

#[cfg(test)]
mod tests {
    use super::{Release, ReleaseError};

    #[test]
    fn versions_of_supported_releases_are_parsed() {
        for (text, expected) in [
            ("1.33", Ok("1.33")),
            ("v1.33", Ok("1.33")),
            ("1.33.4", Ok("1.33")),
            ("v1.34.1-gke.1172000", Ok("1.34")),
            ("v1.35.0+k3s1", Ok("1.35")),
            ("1.37", Ok("1.37")),
            ("1.32", Err(ReleaseError::Unsupported)),
            ("1.38.0", Err(ReleaseError::Unsupported)),
            ("2.33", Err(ReleaseError::Unsupported)),
            ("1", Err(ReleaseError::Malformed)),
            ("1.33.4.5", Err(ReleaseError::Malformed)),
            ("1.-33", Err(ReleaseError::Malformed)),
            ("vv1.33", Err(ReleaseError::Malformed)),
            ("newest", Err(ReleaseError::Malformed)),
            ("", Err(ReleaseError::Malformed)),
            ("1.99999999", Err(ReleaseError::Malformed)),
        ] {
            let parsed = text.parse::<Release>().map(|it| it.to_string());
            assert_eq!(parsed.as_deref(), expected.as_ref().copied(), "{text}");
        }
    }

    #[test]
    fn errors_name_the_supported_releases() {
        assert_eq!(
            ReleaseError::Unsupported.to_string(),
            "unsupported version; use one of 1.33, 1.34, 1.35, 1.36, 1.37"
        );
    }

    #[test]
    fn supported_releases_are_sorted_and_end_with_the_newest() {
        assert!(Release::SUPPORTED.is_sorted());
        assert_eq!(Release::SUPPORTED.last(), Some(&Release::NEWEST));
        assert_eq!(Release::default(), Release::NEWEST);
    }
}

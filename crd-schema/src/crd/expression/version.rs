//! Semantic versions as `github.com/blang/semver/v4` parses and compares them.

use std::cmp::Ordering;

/// A version. Build metadata is checked, and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Version {
    /// Major, minor and patch.
    pub(super) numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

/// A part of a prerelease. Numbers are less than texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    /// Parses a version.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("Version string empty");
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found");
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        let numbers = [number(major)?, number(minor)?, number(patch)?];
        let identifiers = prerelease.into_iter().flat_map(|it| it.split('.'));
        let prerelease = identifiers.map(identifier).collect::<Result<_, _>>()?;
        let mut build = build.into_iter().flat_map(|it| it.split('.'));
        if !build.all(is_word) {
            return Err("Invalid character(s) found in build meta data");
        }
        Ok(Self {
            numbers,
            prerelease,
        })
    }

    /// Parses a version that may have a prefix `v`, leading zeros, and no minor or patch number (`normalizeAndParse`).
    pub(super) fn parse_tolerant(text: &str) -> Result<Self, &'static str> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        let last = parts.last().map_or("", String::as_str);
        if parts.len() < 3 && last.contains(['+', '-']) {
            return Err("Short version cannot contain PreRelease/Build meta data");
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_numbers = self.numbers.cmp(&other.numbers);
        // A version without prerelease is greater than one with it.
        let is_released = |it: &Self| it.prerelease.is_empty();
        by_numbers
            .then(is_released(self).cmp(&is_released(other)))
            .then(self.prerelease.cmp(&other.prerelease))
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|it: char| it.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}

fn number(text: &str) -> Result<u64, &'static str> {
    if !text.bytes().all(|it| it.is_ascii_digit()) {
        return Err("Invalid character(s) found in version number");
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err("Version number must not contain leading zeroes");
    }
    text.parse().map_err(|_| "invalid version number")
}

fn is_word(text: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    !text.is_empty() && text.bytes().all(is_allowed)
}

fn identifier(text: &str) -> Result<Identifier, &'static str> {
    if !is_word(text) {
        return Err("Invalid character(s) found in prerelease");
    }
    if text.bytes().all(|it| it.is_ascii_digit()) {
        number(text).map(Identifier::Number)
    } else {
        Ok(Identifier::Text(text.to_owned()))
    }
}

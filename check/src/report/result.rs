//! The findings of a file, as reports print them.

use crate::document::Identity;
use crate::exception_usage::ExceptionUsage;
use crate::severity::Severity;
use crate::source::ReadError;
use crate::yaml::SourceLocation;
use lockkeeper_policies::finding::Finding;
use serde_json::Value;
use std::collections::BTreeMap;

/// The findings of one file, or the error of reading it.
pub struct CheckedFile {
    /// The name to print.
    pub name: String,
    /// The objects, or the error.
    pub outcome: Result<FileObjects, ReadError>,
}

/// The objects of a file.
#[derive(Default)]
pub struct FileObjects {
    /// The text of the file; empty if there are no findings.
    pub text: SourceText,
    /// The objects of supported kinds.
    pub objects: Vec<ReportedObject>,
    /// The objects of other kinds.
    pub skipped: SkippedKinds,
    /// How often exceptions applied.
    pub exception_usage: ExceptionUsage,
}

/// An object and its findings.
pub struct ReportedObject {
    /// Kind and name.
    pub identity: Identity,
    /// The findings, suppressed ones included.
    pub findings: Vec<ReportedFinding>,
}

/// A finding and its position.
pub struct ReportedFinding {
    /// The position in the file; `None` for objects of a cluster.
    pub location: Option<SourceLocation>,
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// Rule, field and message.
    pub finding: Finding,
    /// Further lines of explanation.
    pub notes: Vec<String>,
    /// The reason of the suppression, if the object has one for this rule.
    pub suppressed: Option<String>,
}

impl ReportedObject {
    /// The findings that are not suppressed.
    pub(crate) fn unsuppressed(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|it| it.suppressed.is_none())
    }
}

/// The objects that are not checked, by API version and kind such as `apps/v1 Deployment`.
#[derive(Clone, Debug, Default)]
pub struct SkippedKinds {
    counts: BTreeMap<String, usize>,
}

impl SkippedKinds {
    /// One object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let identity = Identity::from_object(object);
        let name = format!("{} {}", identity.api_version, identity.kind);
        Self {
            counts: BTreeMap::from([(name.trim().to_owned(), 1)]),
        }
    }

    /// The number of objects.
    #[must_use]
    pub fn total(&self) -> usize {
        self.counts
            .values()
            .fold(0, |sum, it| sum.saturating_add(*it))
    }

    /// Adds the objects of another collection.
    pub fn merge(&mut self, other: Self) {
        for (name, count) in other.counts {
            let sum = self.counts.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The kinds with their numbers, in alphabetical order.
    pub(crate) fn counts(&self) -> &BTreeMap<String, usize> {
        &self.counts
    }
}

/// A text with fast access to its lines.
#[derive(Default)]
pub struct SourceText {
    text: String,
    /// Where each line begins, in bytes.
    line_starts: Vec<usize>,
}

impl SourceText {
    /// Finds the starts of all lines.
    #[must_use]
    pub fn new(text: String) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, it)| *it == b'\n');
        let after = newlines.map(|(at, _)| at.saturating_add(1));
        let line_starts = std::iter::once(0).chain(after).collect();
        Self { text, line_starts }
    }

    /// A line by its number, from 1.
    pub(crate) fn line(&self, number: usize) -> Option<&str> {
        let start = *self.line_starts.get(number.checked_sub(1)?)?;
        let end = self.line_starts.get(number).copied();
        let line = self.text.get(start..end.unwrap_or(self.text.len()))?;
        Some(line.trim_end_matches(['\n', '\r']))
    }
}

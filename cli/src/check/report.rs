//! What is printed.

mod github;
mod json;
mod junit;
mod sarif;
mod text;

use super::exception_usage::{ExceptionStatus, ExceptionUsage};
use super::source::{Identity, ReadError};
use super::spans::SourceLocation;
use super::{Output, Severity};
use lockkeeper_policies::finding::Finding;

pub(super) use json::with_field;
pub(super) use text::Palette;

/// What is told of one file.
pub(super) struct CheckedFile {
    /// The file as it is printed.
    pub(super) name: String,
    pub(super) outcome: Result<FileObjects, ReadError>,
}

/// The objects in a file.
#[derive(Default)]
pub(super) struct FileObjects {
    /// The text of the file.
    pub(super) text: SourceText,
    pub(super) objects: Vec<ReportedObject>,
    /// How many are of kinds that are not known.
    pub(super) skipped: usize,
    /// What exceptions cover.
    pub(super) exception_usage: ExceptionUsage,
}

/// An object, and what is told of it.
pub(super) struct ReportedObject {
    pub(super) identity: Identity,
    pub(super) findings: Vec<ReportedFinding>,
}

/// One finding, and where it is.
pub(super) struct ReportedFinding {
    pub(super) location: Option<SourceLocation>,
    pub(super) severity: Severity,
    pub(super) finding: Finding,
    /// What else is told of it, a line each.
    pub(super) notes: Vec<String>,
    /// Why its author does not want to be told.
    pub(super) suppressed: Option<String>,
}

impl ReportedObject {
    /// The findings that are not suppressed.
    fn unsuppressed(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|it| it.suppressed.is_none())
    }
}

/// A text of which single lines are asked for.
#[derive(Default)]
pub(super) struct SourceText {
    text: String,
    /// Where each line begins, in bytes.
    line_starts: Vec<usize>,
}

impl SourceText {
    pub(super) fn new(text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, it)| *it == b'\n');
        let after = ends.map(|(at, _)| at.saturating_add(1));
        let line_starts = std::iter::once(0).chain(after).collect();
        Self { text, line_starts }
    }

    /// A line by its number, from 1.
    fn line(&self, number: usize) -> Option<&str> {
        let start = *self.line_starts.get(number.checked_sub(1)?)?;
        let end = self.line_starts.get(number).copied();
        let line = self.text.get(start..end.unwrap_or(self.text.len()))?;
        Some(line.trim_end_matches(['\n', '\r']))
    }
}

/// How many there were of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) files: usize,
    pub(super) objects: usize,
    pub(super) skipped: usize,
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) suppressed: usize,
    /// What could not be read, and why.
    pub(super) unreadable: Vec<(String, ReadError)>,
    pub(super) exception_usage: ExceptionUsage,
    /// What is said of exceptions in the end.
    pub(super) exception_statuses: Vec<ExceptionStatus>,
}

impl Tally {
    /// Adds what is told of a file.
    pub(super) fn from_checked_file(judged: &CheckedFile) -> Self {
        let mut out = Self::default();
        match &judged.outcome {
            Err(problem) => out.unreadable.push((judged.name.clone(), problem.clone())),
            Ok(objects) => {
                out.files = 1;
                out.objects = objects.objects.len();
                out.skipped = objects.skipped;
                out.exception_usage = objects.exception_usage.clone();
                for told in objects.objects.iter().flat_map(|it| &it.findings) {
                    let count = match (&told.suppressed, told.severity) {
                        (Some(_), _) => &mut out.suppressed,
                        (None, Severity::Error) => &mut out.errors,
                        (None, Severity::Warning) => &mut out.warnings,
                    };
                    *count = count.saturating_add(1);
                }
            }
        }
        out
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.files, other.files),
            (&mut self.objects, other.objects),
            (&mut self.skipped, other.skipped),
            (&mut self.errors, other.errors),
            (&mut self.warnings, other.warnings),
            (&mut self.suppressed, other.suppressed),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        self.unreadable.extend(other.unreadable);
        self.exception_usage.merge(other.exception_usage);
    }

    /// 2 if anything could not be read, 1 if anything was found that is bad enough.
    pub(super) fn exit_code(&self, fail_on: Severity) -> u8 {
        let found = match fail_on {
            Severity::Error => self.errors,
            Severity::Warning => self.errors.saturating_add(self.warnings),
        };
        if self.unreadable.is_empty() {
            u8::from(found > 0)
        } else {
            2
        }
    }
}

/// A number of things, in words.
pub(super) fn pluralize(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// A way to print: a head, a piece for each file, and a tail.
pub(super) trait Format: Sync {
    fn head(&self) -> String {
        String::new()
    }

    /// What is printed for a file; it may be nothing.
    fn file(&self, judged: &CheckedFile) -> String;

    /// What is printed of exceptions; it may be nothing.
    fn exceptions(&self, _all: &[ExceptionStatus]) -> String {
        String::new()
    }

    /// What stands between two pieces.
    fn separator(&self) -> &'static str {
        ""
    }

    fn tail(&self, _tally: &Tally) -> String {
        String::new()
    }
}

/// What the ways to print are told.
pub(super) struct FormatSettings {
    pub(super) palette: Palette,
    pub(super) fail_on: Severity,
    /// Whether the objects are those of a cluster, and stand in no files.
    pub(super) is_stored: bool,
    /// Where the pages of rules are, as an address.
    pub(super) pages: Option<String>,
}

pub(super) fn format(output: Output, settings: FormatSettings) -> Box<dyn Format> {
    match output {
        Output::Human => Box::new(text::TextFormat::new(settings.palette, settings.is_stored)),
        Output::Json => Box::new(json::Json),
        Output::Github => Box::new(github::Github),
        Output::Sarif => Box::new(sarif::Sarif::new(settings.pages)),
        Output::Junit => Box::new(junit::Junit::new(settings.fail_on)),
    }
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

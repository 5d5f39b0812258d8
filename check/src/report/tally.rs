use super::result::{CheckedFile, ReportedObject, SkippedKinds};
use crate::document::Identity;
use crate::exception_usage::{ExceptionStatus, ExceptionUsage};
use crate::severity::Severity;
use crate::source::ReadError;
use std::collections::BTreeMap;

/// The counts of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTally {
    /// Checked objects.
    pub objects: usize,
    /// Findings with severity error, without suppressed ones.
    pub errors: usize,
    /// Findings with severity warning, without suppressed ones.
    pub warnings: usize,
}

impl KindTally {
    fn merge(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.objects, other.objects),
            (&mut self.errors, other.errors),
            (&mut self.warnings, other.warnings),
        ] {
            *mine = mine.saturating_add(theirs);
        }
    }
}

/// The counts for the summary.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Files that were read.
    pub files: usize,
    /// Objects of supported kinds.
    pub objects: usize,
    /// Objects of other kinds.
    pub skipped: SkippedKinds,
    /// The counts by API version and kind such as `batch/v1 Job`.
    pub kinds: BTreeMap<String, KindTally>,
    /// Findings with severity error.
    pub errors: usize,
    /// Findings with severity warning.
    pub warnings: usize,
    /// Suppressed findings.
    pub suppressed: usize,
    /// Files that could not be read, with their errors.
    pub unreadable: Vec<(String, ReadError)>,
    /// How often exceptions applied.
    pub exception_usage: ExceptionUsage,
    /// All exceptions of the configuration; set at the end.
    pub exception_statuses: Vec<ExceptionStatus>,
}

impl Tally {
    /// The counts of one file.
    #[must_use]
    pub fn from_checked_file(file: &CheckedFile) -> Self {
        let mut out = Self::default();
        match &file.outcome {
            Err(error) => out.unreadable.push((file.name.clone(), error.clone())),
            Ok(objects) => {
                out.files = 1;
                out.objects = objects.objects.len();
                out.skipped = objects.skipped.clone();
                out.exception_usage = objects.exception_usage.clone();
                for object in &objects.objects {
                    out.add_object(object);
                }
            }
        }
        out
    }

    fn add_object(&mut self, object: &ReportedObject) {
        let mut kind = KindTally {
            objects: 1,
            ..KindTally::default()
        };
        for reported in &object.findings {
            let count = match (&reported.suppressed, reported.severity) {
                (Some(_), _) => &mut self.suppressed,
                (None, Severity::Error) => &mut kind.errors,
                (None, Severity::Warning) => &mut kind.warnings,
            };
            *count = count.saturating_add(1);
        }
        self.errors = self.errors.saturating_add(kind.errors);
        self.warnings = self.warnings.saturating_add(kind.warnings);
        let Identity {
            api_version,
            kind: name,
            ..
        } = &object.identity;
        let name = format!("{api_version} {name}").trim().to_owned();
        self.kinds.entry(name).or_default().merge(kind);
    }

    /// Adds the counts of another file.
    pub fn merge(&mut self, other: Self) {
        for (mine, theirs) in [
            (&mut self.files, other.files),
            (&mut self.objects, other.objects),
            (&mut self.errors, other.errors),
            (&mut self.warnings, other.warnings),
            (&mut self.suppressed, other.suppressed),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        for (name, kind) in other.kinds {
            self.kinds.entry(name).or_default().merge(kind);
        }
        self.skipped.merge(other.skipped);
        self.unreadable.extend(other.unreadable);
        self.exception_usage.merge(other.exception_usage);
    }

    /// 2 if a file could not be read; else 1 if there is a finding of this severity or above; else 0.
    #[must_use]
    pub fn exit_code(&self, fail_on: Severity) -> u8 {
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

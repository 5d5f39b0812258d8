use super::result::{CheckedFile, SkippedKinds};
use crate::exception_usage::{ExceptionStatus, ExceptionUsage};
use crate::severity::Severity;
use crate::source::ReadError;

/// The counts for the summary.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Files that were read.
    pub files: usize,
    /// Objects of supported kinds.
    pub objects: usize,
    /// Objects of other kinds.
    pub skipped: SkippedKinds,
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
                for reported in objects.objects.iter().flat_map(|it| &it.findings) {
                    let count = match (&reported.suppressed, reported.severity) {
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

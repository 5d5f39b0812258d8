use super::result::CheckedFile;
use super::tally::Tally;
use crate::exception_usage::ExceptionStatus;

/// A report format: a head, a part for each file, and a tail. Parts are rendered on several threads and written in order.
pub trait Format: Sync {
    /// The start of the report.
    fn head(&self) -> String {
        String::new()
    }

    /// The part of a file; may be empty.
    fn file(&self, file: &CheckedFile) -> String;

    /// The part about exceptions of the configuration; may be empty.
    fn exceptions(&self, _all: &[ExceptionStatus]) -> String {
        String::new()
    }

    /// The text between two parts.
    fn separator(&self) -> &'static str {
        ""
    }

    /// The end of the report.
    fn tail(&self, _tally: &Tally) -> String {
        String::new()
    }
}

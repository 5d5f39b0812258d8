//! Where the decision log is written.

use lockkeeper_decision_log::LogHeader;
use std::path::PathBuf;

/// Where the decision log is written, and its size.
#[derive(Clone, Debug)]
pub struct DecisionLogTarget {
    /// `None`: standard output.
    pub file: Option<PathBuf>,
    /// The size at which a new file is begun, in bytes.
    pub file_bytes_max: u64,
    /// How many files are kept, with the current one.
    pub files_max: usize,
    /// The first line of each file.
    pub header: LogHeader,
}

//! The formats of traces.

use clap::ValueEnum;
use std::path::Path;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A trace in YAML or JSON
    Trace,
    /// Standard Workload Format
    Swf,
    /// Comma-separated values, with a mapping of the columns
    Csv,
    /// Configuration of Kueue's performance generator
    Generator,
}

impl Format {
    /// The format by the ending of the file.
    pub(crate) fn for_path(path: &Path) -> Self {
        let ending = path.extension().and_then(|it| it.to_str());
        match ending {
            Some("swf") => Self::Swf,
            Some("csv") => Self::Csv,
            _ => Self::Trace,
        }
    }
}

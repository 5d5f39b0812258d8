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
    /// Parquet, with a mapping of the columns
    Parquet,
    /// Configuration of Kueue's performance generator
    Generator,
}

impl Format {
    /// Whether a file of the format has jobs without their ClusterQueues, which a mapping assigns.
    pub(crate) const fn has_only_jobs(self) -> bool {
        matches!(self, Self::Swf | Self::Csv | Self::Parquet)
    }

    /// The format by the ending of the file.
    pub(crate) fn for_path(path: &Path) -> Self {
        let ending = path.extension().and_then(|it| it.to_str());
        match ending {
            Some("swf") => Self::Swf,
            Some("csv") => Self::Csv,
            Some("parquet") => Self::Parquet,
            _ => Self::Trace,
        }
    }
}

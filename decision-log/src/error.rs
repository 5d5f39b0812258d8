//! What is wrong with a log.

/// A line that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It is no JSON object of a log.
    #[error("not a line of a decision log: {0}")]
    Syntax(serde_json::Error),
    /// The log begins with another line.
    #[error(
        "a decision log begins with a line `header`; give its files from the oldest to the newest"
    )]
    NoHeader,
    /// A later version has written it.
    #[error("the log has format {found}; this version of lockkeeper reads format {known}")]
    Format {
        /// The format of the log.
        found: u32,
        /// The format of this version.
        known: u32,
    },
    /// Its settings are not a configuration.
    #[error("the settings in the header cannot be read: {0}")]
    Settings(serde_json::Error),
    /// A workload has a spec that no line before defines.
    #[error("spec {0} is not defined by a line before")]
    UnknownSpec(u32),
    /// A line was changed, or removed.
    #[error("the hash does not match: a line up to here was changed, added or removed")]
    Hash,
    /// The file before is missing, or its end was changed.
    #[error(
        "this file does not continue the one before: a file is missing, its order is another, or lines were changed"
    )]
    NotContinued,
}

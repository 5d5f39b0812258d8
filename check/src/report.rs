//! Report formats.

mod format;
mod github;
mod json;
mod junit;
mod policy_report;
mod result;
mod sarif;
mod tally;
mod text;
mod words;

use crate::severity::Severity;

pub use format::Format;
pub use policy_report::PolicyReports;
pub use result::{
    CheckedFile, FileObjects, ReportedFinding, ReportedObject, SkippedKinds, SourceText,
};
pub use tally::{KindTally, Tally};
pub use text::{Palette, escape_control_chars};
pub use words::pluralize;

/// The formats of [`format()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Excerpts of the file, for people.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// `JUnit` XML.
    Junit,
    /// GitHub workflow commands.
    Github,
}

/// The settings of the formats.
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent flags of the command"
)]
pub struct FormatSettings {
    /// The styles of the text format.
    pub palette: Palette,
    /// The severity from which on a finding is a failure in `JUnit` XML.
    pub fail_on: Severity,
    /// Whether the objects come from a cluster, not from files.
    pub is_stored: bool,
    /// Whether the text format lists the kinds that are not checked.
    pub is_verbose: bool,
    /// Whether the text format has numbers by kind instead of findings.
    pub is_summary: bool,
    /// The URL of the folder with the rule pages, for SARIF.
    pub pages: Option<String>,
}

/// The implementation of a format.
#[must_use]
pub fn format(output: OutputFormat, settings: FormatSettings) -> Box<dyn Format> {
    match output {
        OutputFormat::Text => Box::new(text::TextFormat::new(
            settings.palette,
            settings.is_stored,
            settings.is_verbose,
            settings.is_summary,
        )),
        OutputFormat::Json => Box::new(json::Json),
        OutputFormat::Github => Box::new(github::Github),
        OutputFormat::Sarif => Box::new(sarif::Sarif::new(settings.pages)),
        OutputFormat::Junit => Box::new(junit::Junit::new(settings.fail_on)),
    }
}

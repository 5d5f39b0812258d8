//! The flags of `check`.

use super::admission_policies::PolicyUser;
use super::conversion_flags::ConversionArguments;
use super::existing_objects::ExistingObjects;
use super::manifest_sources::SourceArguments;
use crate::user_rules::RuleDirs;
use anstream::AutoStream;
use clap::{Args, ColorChoice, ValueEnum};
use lockkeeper_check::report::{FormatSettings, OutputFormat, Palette};
use lockkeeper_check::{KueueVersion, Release, Severity};
use lockkeeper_crdgen::cli::ReleaseParser;
use lockkeeper_crdgen::manifests::NamePattern;
use std::io::stdout;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Files and folders with YAML or JSON; `-` reads stdin
    #[arg(required_unless_present = "stored", conflicts_with = "stored")]
    pub(super) paths: Vec<PathBuf>,

    /// Report format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    /// When to use colour; `auto` means on a terminal without `NO_COLOR`
    #[arg(long, value_name = "WHEN", default_value_t)]
    color: ColorChoice,

    /// Lowest severity that makes the exit code 1
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,

    /// Skip files and folders with this name or path (`*`, `**`); repeatable
    #[arg(long, value_name = "GLOB")]
    pub(super) exclude: Vec<NamePattern>,

    #[command(flatten)]
    pub(super) sources: SourceArguments,

    #[command(flatten)]
    pub(super) policy_user: PolicyUser,

    #[command(flatten)]
    pub(super) other_kinds: OtherKinds,

    /// Run only these rules, by id, name or prefix (CQ); repeatable
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(super) select: Vec<String>,

    /// Skip these rules, by id, name or prefix; repeatable
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(super) ignore: Vec<String>,

    /// Configuration file of the server, for its actions and feature gates
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    #[command(flatten)]
    pub(super) rules: RuleDirs,

    #[command(flatten)]
    pub(super) existing: ExistingObjects,

    #[command(flatten)]
    pub(super) conversion: ConversionArguments,

    /// Check built-in kinds as this release of Kubernetes does
    #[arg(long, value_name = "VERSION", default_value_t, value_parser = ReleaseParser)]
    pub(super) kubernetes_version: Release,

    /// Simulate preemption as in this Kueue release, bugs included, e.g. 0.14 [default: current Kueue]
    #[arg(long, value_name = "VERSION")]
    pub(super) kueue_version: Option<KueueVersion>,

    /// Correct files first; comments and layout stay; `-` goes to stdout
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(super) fix: Option<FixScope>,

    /// Print the changes of --fix as a diff, and check nothing
    #[arg(long)]
    pub(super) diff: bool,

    /// Evaluate CEL with both evaluators, and compare Rust rules with their CEL; fail if any disagree
    #[arg(long)]
    pub(super) verify_cel: bool,

    /// URL of the folder with the rule pages, for links in SARIF
    #[arg(long, value_name = "URL")]
    pages: Option<String>,
}

/// The treatment of kinds that are not checked.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct OtherKinds {
    /// Report objects of kinds that are not checked as errors
    #[arg(long)]
    pub(super) strict: bool,

    /// List the kinds that are not checked, and why
    #[arg(long, short)]
    verbose: bool,

    /// Print the numbers of objects and findings by kind instead of the findings (text)
    #[arg(long)]
    summary: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Position, excerpt and remedy
    #[default]
    #[value(alias = "human")]
    Text,
    /// JSON
    Json,
    /// SARIF 2.1.0, for code scanning services
    Sarif,
    /// `JUnit` XML, for test report viewers
    Junit,
    /// GitHub workflow annotations
    Github,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FixScope {
    /// Correct typos and write defaults
    All,
    /// Correct typos only
    Corrected,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// The API server would accept the object, with a warning
    Warning,
    /// The API server would reject the object
    #[default]
    Error,
}

impl Arguments {
    pub(super) fn fail_on(&self) -> Severity {
        match self.fail_on {
            FailOn::Warning => Severity::Warning,
            FailOn::Error => Severity::Error,
        }
    }

    pub(super) fn output(&self) -> OutputFormat {
        match self.output {
            Output::Text => OutputFormat::Text,
            Output::Json => OutputFormat::Json,
            Output::Sarif => OutputFormat::Sarif,
            Output::Junit => OutputFormat::Junit,
            Output::Github => OutputFormat::Github,
        }
    }

    pub(super) fn format_settings(&self) -> FormatSettings {
        let choice = match self.color {
            ColorChoice::Auto => AutoStream::choice(&stdout()),
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        FormatSettings {
            palette: if choice == anstream::ColorChoice::Never {
                Palette::default()
            } else {
                Palette::colored()
            },
            fail_on: self.fail_on(),
            is_stored: self.existing.stored,
            is_verbose: self.other_kinds.verbose,
            is_summary: self.other_kinds.summary,
            pages: self.pages.clone(),
        }
    }
}

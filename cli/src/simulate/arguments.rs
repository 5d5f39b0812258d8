//! The flags of `lockkeeper simulate`.

use super::format::Format;
use super::result_text::Output;
use clap::Args;
use std::path::{Path, PathBuf};

/// The flags for the traces.
#[derive(Debug, Args)]
pub(crate) struct InputArguments {
    /// Trace files (YAML, JSON, or one JSON object per line; SWF and CSV by their ending); `-` reads stdin
    #[arg(value_name = "FILE", required_unless_present = "dumps")]
    pub(super) traces: Vec<PathBuf>,

    /// Format of the trace files [default: by their ending]
    #[arg(long, value_name = "FORMAT", requires = "traces")]
    pub(super) format: Option<Format>,

    /// Mapping of the fields of SWF and CSV files onto jobs (YAML)
    #[arg(long = "map", value_name = "FILE", requires = "traces")]
    pub(super) mapping: Option<PathBuf>,

    /// Simulate the queues and workloads of a cluster from files or folders, as `explain --dump` reads them
    #[arg(long = "dump", value_name = "PATH")]
    pub(super) dumps: Vec<PathBuf>,

    /// Run time of workloads of a dump without maximumExecutionTimeSeconds
    #[arg(long = "assume-run-seconds", value_name = "SECONDS", requires = "dumps",
          value_parser = clap::value_parser!(i64).range(1..=(1 << 40)))]
    pub(super) assumed_run_s: Option<i64>,
}

/// Flags of `lockkeeper simulate`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) inputs: InputArguments,

    /// Queues and settings in place of those of the traces; repeat to compare several
    #[arg(long = "config", value_name = "FILE")]
    pub(super) configs: Vec<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(super) output: Output,

    /// Write a report with plots as one HTML file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// Write each plot of the report as an SVG file into a folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) plots: Option<PathBuf>,

    /// Show the views of the report in the terminal, in place of the results
    #[arg(long)]
    pub(super) tui: bool,
}

/// Whether a path means standard input or output.
pub(super) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

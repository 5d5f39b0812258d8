//! The flags of `lockkeeper tune`.

use crate::simulate::InputArguments;
use clap::{Args, ValueEnum};
use lockkeeper_api::config::GoDuration;
use std::path::PathBuf;

/// Flags of `lockkeeper tune`.
#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    pub(super) inputs: InputArguments,

    /// Goals, and the fields and values to try (YAML)
    #[arg(long, value_name = "FILE")]
    pub(super) search: PathBuf,

    /// The configuration of today: queues and settings in place of those of the traces
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// The most configurations to simulate
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) max_configurations: u64,

    /// Begin no simulation after this time, for example 10m
    #[arg(long, value_name = "DURATION")]
    pub(super) timeout: Option<GoDuration>,

    /// Keep the results in a file, and do not simulate again what it has
    #[arg(long, value_name = "FILE")]
    pub(super) results: Option<PathBuf>,

    /// Write the best configurations into a folder, for `lockkeeper simulate --config`
    #[arg(long, value_name = "FOLDER")]
    pub(super) write: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub(super) output: TuneOutput,
}

/// The format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TuneOutput {
    /// Text for people
    Human,
    /// All values
    Json,
}

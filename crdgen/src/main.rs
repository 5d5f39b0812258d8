//! The binary `crdgen`.

use clap::Parser;
use lockkeeper_crdgen::cli::{self, Command, Outcome};
use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

/// Emits what is derived from lockkeeper's types and rules: CRDs, webhook configurations, admission policies, schemas,
/// and the files of its chart.
///
/// Without a command: the CRDs. Exit codes: 0 done, 1 it could not be done, what is checked differs, a change is breaking or a
/// version may not go, 2 the command line is wrong or nothing could be compared or said.
#[derive(Debug, Parser)]
#[command(
    name = "crdgen",
    version,
    propagate_version = true,
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    /// Hold what is kept in a repository, by default here, against what is emitted, and print the difference
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    check: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Command>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = stdout().lock();
    let done = match arguments.check {
        Some(repository) => cli::check(repository, &mut out).map(|()| Outcome::Done),
        None => cli::outcome(arguments.command.unwrap_or_default(), &mut out),
    };
    let error = match done {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::Findings) => return ExitCode::FAILURE,
        Err(error) => error,
    };
    let cause = error.source().map(|cause| format!(": {cause}"));
    // Whoever closed standard error does not want to read it.
    let _ = writeln!(stderr(), "error: {error}{}", cause.unwrap_or_default());
    ExitCode::from(error.exit_code())
}

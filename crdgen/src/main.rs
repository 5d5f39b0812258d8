//! The binary `crdgen`.

use clap::Parser;
use lockkeeper_crdgen::cli::{self, Command, Outcome};
use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

/// Generate CRDs, webhook configurations, admission policies, schemas and chart files
///
/// Without a command: the CRDs. Exit codes: 0 success; 1 failure, outdated files, a breaking change, or a version that cannot be
/// removed; 2 invalid command line or input that cannot be compared.
#[derive(Debug, Parser)]
#[command(
    name = "crdgen",
    version,
    propagate_version = true,
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    /// Compare the committed artifacts of a repository with the generated ones [default: .]
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
    // Ignore a closed standard error.
    let _ = writeln!(stderr(), "error: {error}{}", cause.unwrap_or_default());
    ExitCode::from(error.exit_code())
}

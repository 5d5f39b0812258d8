//! The binary `crdgen`.

use clap::Parser;
use lockkeeper_crdgen::cli::{self, Command};
use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

/// Emits the CRDs and the webhook configurations of lockkeeper, as YAML.
///
/// Without a command: the CRDs. Exit codes: 0 done, 1 it could not be done, 2 the command line is
/// wrong.
#[derive(Debug, Parser)]
#[command(name = "crdgen", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command.unwrap_or_default();
    let Err(error) = cli::run(command, &mut stdout().lock()) else {
        return ExitCode::SUCCESS;
    };
    let cause = error.source().map(|cause| format!(": {cause}"));
    // Whoever closed standard error does not want to read it.
    let _ = writeln!(stderr(), "error: {error}{}", cause.unwrap_or_default());
    ExitCode::FAILURE
}

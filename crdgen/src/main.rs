//! The binary `crdgen`.

use clap::Parser;
use lockkeeper_crdgen::cli::{self, Command, Outcome};
use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

/// Emits the CRDs and the webhook configurations of lockkeeper, as YAML.
///
/// Without a command: the CRDs. Exit codes: 0 done, 1 it could not be done or a change is
/// breaking, 2 the command line is wrong or nothing could be compared.
#[derive(Debug, Parser)]
#[command(name = "crdgen", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command.unwrap_or_default();
    let error = match cli::outcome(command, &mut stdout().lock()) {
        Ok(Outcome::Done) => return ExitCode::SUCCESS,
        Ok(Outcome::Findings) => return ExitCode::FAILURE,
        Err(error) => error,
    };
    let cause = error.source().map(|cause| format!(": {cause}"));
    // Whoever closed standard error does not want to read it.
    let _ = writeln!(stderr(), "error: {error}{}", cause.unwrap_or_default());
    ExitCode::from(error.exit_code())
}

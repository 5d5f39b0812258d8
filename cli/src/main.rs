//! The binary `lockkeeper`.

mod certificate;
mod check;
mod configuration;
mod control;
mod explain;
mod kubeconfig;
mod logging;
mod rules;
mod serve;
mod shell_integration;
mod signals;
mod user_rules;
mod world_files;

use anyhow::Error;
use clap::{Parser, Subcommand};
use lockkeeper_crdgen::cli::Outcome;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

/// Decoding a pod template is many small allocations: with this allocator a Workload costs a fifth
/// less (docs/performance.md). It is built without huge pages, which would take 10 MB and more to hold
/// little.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `--help` says of them, here and of `serve`.
const EXIT_CODES: &str = "\
Exit codes:
  0    done; a server was told to stop, by SIGINT (Ctrl-C) or SIGTERM
  1    it could not be done
  2    the command line or the configuration is wrong
  130  a second signal, SIGINT, ended the server with requests unanswered
  143  the same, with SIGTERM";

/// Keeps quota and priority objects of batch and AI workloads on Kubernetes sane.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_long_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer admission reviews over TLS
    #[command(after_long_help = EXIT_CODES)]
    Serve(Box<serve::Arguments>),
    /// Admit, preempt and requeue workloads on a cluster
    #[command(after_long_help = EXIT_CODES)]
    Control(Box<control::Arguments>),
    /// Both in one process: answer admission reviews, and admit workloads
    #[command(after_long_help = EXIT_CODES)]
    All(Box<control::AllArguments>),
    /// Make a CA and a serving certificate in a private folder
    Certificate(certificate::Arguments),
    /// Say of files what the API server and the webhook would
    #[command(after_long_help = check::EXIT_CODES)]
    Check(check::Arguments),
    /// Decide on a state that is written down, and say why
    Explain(explain::Arguments),
    /// List the rules, or print the page of one
    Rules(rules::Arguments),
    /// Print what completes the command line, for a shell
    Completions(shell_integration::CompletionsArguments),
    /// Write the manual pages into a folder
    Man(shell_integration::ManArguments),
    /// Print the CRDs and the webhook configurations, compare CRDs, and migrate between their versions
    Crds {
        #[command(subcommand)]
        command: Option<lockkeeper_crdgen::cli::Command>,
    },
}

/// Why the process ends with an error.
enum Failure {
    /// The user asked for something that makes no sense: exit code 2.
    Usage(Error),
    /// It could not be done: exit code 1.
    Other(Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Control(arguments) => control::run(&arguments),
        Command::All(arguments) => control::run_all(&arguments),
        Command::Certificate(arguments) => certificate::run(&arguments).map_err(Failure::from),
        Command::Check(arguments) => match check::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions(arguments) => shell_integration::completions(&arguments),
        Command::Man(arguments) => shell_integration::write_man_pages(&arguments),
        Command::Rules(arguments) => match rules::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Crds { command } => {
            match lockkeeper_crdgen::cli::outcome(command.unwrap_or_default(), &mut stdout().lock())
            {
                Ok(Outcome::Done) => Ok(()),
                Ok(Outcome::Findings) => return ExitCode::FAILURE,
                Err(error) if error.exit_code() == 2 => Err(Failure::Usage(error.into())),
                Err(error) => Err(Failure::from(error)),
            }
        }
    };
    let (error, code) = match done {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => (error, 2),
        Err(Failure::Other(error)) => (error, 1),
    };
    // Whoever closed standard error does not want to read it.
    let _ = writeln!(stderr(), "error: {error:#}");
    ExitCode::from(code)
}

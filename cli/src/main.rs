//! The binary `lockkeeper`.

mod adopt;
mod certificate;
mod check;
mod configuration;
mod controller;
mod controller_connection;
mod decision_log;
mod diff;
mod doctor;
mod dump;
mod explain;
mod file_replacement;
mod kubeconfig;
mod live_names;
mod logging;
mod manifest_text;
mod observe;
mod plot_files;
mod progress;
mod queue;
mod report_format;
mod rules;
mod serve;
mod shell_integration;
mod signals;
mod simulate;
mod standard_output;
mod stop;
mod tune;
mod user_rules;
mod world_files;
mod world_source;

use anyhow::Error;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;
use lockkeeper_crdgen::cli::Outcome;
use shell_integration::COMPLETION_VARIABLE;
use standard_output::{CLOSED_EXIT_CODE, StandardOutput, closed_exit_code};
use std::env;
use std::io::{Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Decoding a pod template makes many small allocations: with this allocator a review of a Workload takes a fifth less
/// time (docs/performance.md). Huge pages are off, because they would waste 10 MB and more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0    success; a server was stopped by SIGINT (Ctrl-C) or SIGTERM
  1    failure
  2    usage or configuration error
  130  a second SIGINT stopped the server before all requests were answered
  141  the reader of standard output closed it
  143  the same with SIGTERM";

/// Exit codes of commands that answer and end, for `--help`.
const QUERY_EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  no such object, or another failure
  2  usage or configuration error, or input that cannot be read
  141  the reader of standard output closed it";

/// Validate and schedule batch and AI workloads on Kubernetes
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_long_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the admission webhook, optionally with the controller
    #[command(after_long_help = EXIT_CODES)]
    Serve(Box<controller::ServeArguments>),
    /// Run the controller: admit, preempt and requeue workloads
    #[command(after_long_help = EXIT_CODES)]
    Controller(Box<controller::Arguments>),
    /// Create a CA and a serving certificate in a private folder
    Certificate(certificate::Arguments),
    /// Validate manifests offline with the same rules
    #[command(after_long_help = check::EXIT_CODES)]
    Check(Box<check::Arguments>),
    /// Import running Jobs and JobSets without stopping them
    #[command(after_long_help = adopt::EXIT_CODES)]
    Adopt(Box<adopt::Arguments>),
    /// Explain why a workload is pending or running, or the decisions for a scenario file
    #[command(after_long_help = QUERY_EXIT_CODES)]
    Explain(Box<explain::Arguments>),
    /// List pending workloads in the order of their queues, with the reasons
    #[command(after_long_help = QUERY_EXIT_CODES)]
    Queue(Box<queue::QueueArguments>),
    /// Show quota and usage of ClusterQueues and cohorts
    #[command(after_long_help = QUERY_EXIT_CODES)]
    Top(Box<queue::TopArguments>),
    /// Show the effect of a change of queues on the workloads of a cluster
    #[command(after_long_help = diff::EXIT_CODES)]
    Diff(Box<diff::Arguments>),
    /// Hold a ClusterQueue, LocalQueue or Workload
    #[command(after_long_help = QUERY_EXIT_CODES)]
    Stop(Box<stop::StopArguments>),
    /// Let a held ClusterQueue, LocalQueue or Workload go on
    #[command(after_long_help = QUERY_EXIT_CODES)]
    Resume(Box<stop::ResumeArguments>),
    /// Check webhooks, CRDs, certificates and quota against good practices
    #[command(after_long_help = doctor::EXIT_CODES)]
    Doctor(Box<doctor::Arguments>),
    /// Write the objects that explain reads, reduced, to attach them to an issue
    #[command(after_long_help = QUERY_EXIT_CODES)]
    Dump(Box<dump::Arguments>),
    /// Decide again what a decision log records, and report the first difference
    #[command(after_long_help = decision_log::EXIT_CODES)]
    Replay(decision_log::ReplayArguments),
    /// Read a decision log
    Log {
        #[command(subcommand)]
        command: decision_log::LogCommand,
    },
    /// Write a report with plots of what a controller did, from its decision log
    #[command(after_long_help = QUERY_EXIT_CODES)]
    Report(decision_log::ReportArguments),
    /// Simulate jobs in queues, and compare configurations
    Simulate(simulate::Arguments),
    /// Search for configurations of queues that meet goals, by simulation
    #[command(after_long_help = tune::EXIT_CODES)]
    Tune(Box<tune::TuneArguments>),
    /// List the rules, or print the page of a rule
    Rules(rules::Arguments),
    /// Print the script that completes commands, flags and names in a shell
    Completions(shell_integration::CompletionsArguments),
    /// Write the man pages into a folder
    Man(shell_integration::ManArguments),
    /// Print, compare and migrate CRDs; print webhook configurations
    Crds {
        #[command(subcommand)]
        command: Option<lockkeeper_crdgen::cli::Command>,
    },
}

/// A failure of the process, by exit code.
enum Failure {
    /// A usage or configuration error: exit code 2.
    Usage(Error),
    /// Any other error: exit code 1.
    Other(Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// The file name that makes the binary a plugin of kubectl.
const PLUGIN_NAME: &str = "kubectl-lockkeeper";

/// Parses the command line, or answers a shell that asks for completions, and ends the process. As a plugin, help and errors show the command as the user types it.
fn arguments() -> Arguments {
    CompleteEnv::with_factory(Arguments::command)
        .var(COMPLETION_VARIABLE)
        .complete();
    let program = env::args_os().next().map(PathBuf::from);
    let name = program.as_ref().and_then(|it| it.file_stem());
    let command = if name.is_some_and(|it| it == PLUGIN_NAME) {
        Arguments::command().bin_name("kubectl lockkeeper")
    } else {
        Arguments::command()
    };
    let matches = command.get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    let arguments = arguments();
    let done = match arguments.command {
        Command::Serve(arguments) => controller::run_serve(&arguments),
        Command::Controller(arguments) => controller::run(&arguments),
        Command::Certificate(arguments) => certificate::run(&arguments).map_err(Failure::from),
        Command::Check(arguments) => match check::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Adopt(arguments) => match adopt::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Queue(arguments) => queue::run_queue(&arguments),
        Command::Top(arguments) => queue::run_top(&arguments),
        Command::Diff(arguments) => match diff::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Doctor(arguments) => match doctor::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Stop(arguments) => stop::run_stop(&arguments),
        Command::Resume(arguments) => stop::run_resume(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Replay(arguments) => match decision_log::run_replay(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Log { command } => decision_log::run_log(&command),
        Command::Report(arguments) => decision_log::run_report(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Tune(arguments) => match tune::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Completions(arguments) => shell_integration::completions(&arguments),
        Command::Man(arguments) => shell_integration::write_man_pages(&arguments),
        Command::Rules(arguments) => match rules::run(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Crds { command } => {
            let mut out = StandardOutput::new();
            let outcome = lockkeeper_crdgen::cli::outcome(command.unwrap_or_default(), &mut out);
            if out.is_closed() {
                return ExitCode::from(CLOSED_EXIT_CODE);
            }
            match outcome {
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
    if let Some(code) = closed_exit_code(&error) {
        return code;
    }
    // A closed standard error does not change the exit code.
    let _ = writeln!(stderr(), "error: {error:#}");
    ExitCode::from(code)
}

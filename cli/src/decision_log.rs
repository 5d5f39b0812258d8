//! `lockkeeper replay` and `lockkeeper log`: read the decision log of a controller.

mod log_files;
mod log_replay;
mod log_report;

use crate::Failure;
use crate::report_format::{to_pretty_json, to_table};
use crate::standard_output::print_visible;
use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use lockkeeper_decision_log::{History, HistoryEvent, Replay, ReplayObserver};
use log_replay::{Found, LogFiles, Problem, problem_text, range_text, time};
pub(crate) use log_report::{ReportArguments, run_report};
use serde_json::{Value, json};
use std::io::{Write, stderr};
use std::process::ExitCode;

/// Exit codes of `lockkeeper replay`, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  all decisions are made again
  1  a decision differs, or the log was changed
  2  usage error, or input that cannot be read
  141  the reader of standard output closed it";

/// The namespace of kubectl without a context.
const DEFAULT_NAMESPACE: &str = "default";

/// Flags of `lockkeeper replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    #[command(flatten)]
    files: LogFiles,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Commands of `lockkeeper log`.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Show what happened to a workload, and why
    #[command(after_long_help = crate::QUERY_EXIT_CODES)]
    Show(ShowArguments),
}

/// Flags of `lockkeeper log show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The Workload: NAME or NAMESPACE/NAME
    #[arg(value_name = "WORKLOAD")]
    workload: String,

    #[command(flatten)]
    files: LogFiles,

    /// Namespace of the Workload
    #[arg(long, short, default_value = DEFAULT_NAMESPACE)]
    namespace: String,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Replays, prints the result, and returns the exit code.
pub(crate) fn run_replay(arguments: &ReplayArguments) -> Result<ExitCode, Failure> {
    let found = arguments
        .files
        .replay(Replay::new())
        .map_err(Failure::Usage)?;
    let text = match arguments.output {
        Output::Text => replay_text(&found),
        Output::Json => to_pretty_json(&replay_json(&found))?,
    };
    print_visible(&text)?;
    Ok(ExitCode::from(u8::from(found.problem.is_some())))
}

/// Runs a command of `lockkeeper log`.
pub(crate) fn run_log(command: &LogCommand) -> Result<(), Failure> {
    let LogCommand::Show(arguments) = command;
    let workload = match arguments.workload.split_once('/') {
        Some(_) => arguments.workload.clone(),
        None => format!("{}/{}", arguments.namespace, arguments.workload),
    };
    let replay = Replay::with_observer(History::of(&workload));
    let found = arguments.files.replay(replay).map_err(Failure::Usage)?;
    if let Some((position, problem)) = &found.problem {
        let text = problem_text(position, problem);
        // The history up to there is still right.
        let _ = write!(stderr(), "warning: {text}");
    }
    let summary = found.replay.summary();
    let history = found.replay.into_observer();
    let events = history.events();
    if events.is_empty() {
        let range = range_text(summary);
        return Err(Failure::Other(anyhow!(
            "the log{range} has no Workload {workload}; `kubectl get workloads.lockkeeper.dev -A` lists those that exist"
        )));
    }
    let text = match arguments.output {
        Output::Text => to_table(&events.iter().map(event_row).collect::<Vec<_>>())?,
        Output::Json => to_pretty_json(&json!({
            "workload": workload,
            "events": events.iter().map(event_json).collect::<Vec<_>>(),
        }))?,
    };
    Ok(print_visible(&text)?)
}

fn replay_text<O: ReplayObserver>(found: &Found<O>) -> String {
    let summary = found.replay.summary();
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let files = u64::try_from(found.files).unwrap_or(u64::MAX);
    let mut text = format!(
        "{files} file{}, {} cycle{}, {} decision{}{}\n",
        plural(files),
        summary.cycles,
        plural(summary.cycles),
        summary.decisions,
        plural(summary.decisions),
        range_text(summary),
    );
    match &found.problem {
        None => text.push_str("All decisions are made again.\n"),
        Some((position, problem)) => text.push_str(&problem_text(position, problem)),
    }
    text
}

fn replay_json<O: ReplayObserver>(found: &Found<O>) -> Value {
    let summary = found.replay.summary();
    let problem = found.problem.as_ref().map(|(position, problem)| {
        let mut json = match problem {
            Problem::Damage(why) => json!({"kind": "Damage", "message": why}),
            Problem::Difference(it) => json!({
                "kind": "Difference",
                "time": time(it.at_ms),
                "recorded": it.recorded,
                "replayed": it.replayed,
                "version": it.version,
            }),
        };
        if let Some(json) = json.as_object_mut() {
            json.insert("position".to_owned(), json!(position));
        }
        json
    });
    json!({
        "files": found.files,
        "lines": summary.lines,
        "cycles": summary.cycles,
        "decisions": summary.decisions,
        "from": summary.from_ms.map(time),
        "to": summary.to_ms.map(time),
        "problem": problem,
    })
}

fn event_row(event: &HistoryEvent) -> [String; 3] {
    [
        time(event.at_ms),
        event.event.to_owned(),
        event.message.clone(),
    ]
}

fn event_json(event: &HistoryEvent) -> Value {
    json!({"time": time(event.at_ms), "event": event.event, "message": event.message})
}

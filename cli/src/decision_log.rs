//! `lockkeeper replay` and `lockkeeper log`: read the decision log of a controller.

mod log_files;

use crate::Failure;
use crate::report_format::{to_pretty_json, to_table};
use crate::standard_output::print_visible;
use anyhow::{Error, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_cluster_state::journal::DecisionRecord;
use lockkeeper_decision_log::{Difference, History, HistoryEvent, Replay, ReplaySummary};
use log_files::{for_each_line, with_renamed_files};
use serde_json::{Value, json};
use std::io::{Write, stderr};
use std::path::PathBuf;
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

#[derive(Debug, Args)]
struct LogFiles {
    /// Files of the decision log, from the oldest to the newest, or `-`; one file is read with those that were renamed:
    /// FILE.1, FILE.2, ...
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// What a replay has found.
struct Found {
    replay: Replay,
    files: usize,
    /// With its position, `FILE:LINE`.
    problem: Option<(String, Problem)>,
}

enum Problem {
    Difference(Box<Difference>),
    /// The log was changed, or lines are missing.
    Damage(String),
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
    let replay = Replay::with_history(History::of(&workload));
    let found = arguments.files.replay(replay).map_err(Failure::Usage)?;
    if let Some((position, problem)) = &found.problem {
        let text = problem_text(position, problem);
        // The history up to there is still right.
        let _ = write!(stderr(), "warning: {text}");
    }
    let summary = found.replay.summary();
    let history = found.replay.into_history();
    let events = history.map(|it| it.events().to_vec()).unwrap_or_default();
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

impl LogFiles {
    /// Reads all files, up to the first problem.
    fn replay(&self, mut replay: Replay) -> Result<Found, Error> {
        let files = with_renamed_files(&self.files);
        let mut problem = None;
        for path in &files {
            let is_cut = for_each_line(path, |line| {
                let found = match replay.read_line(line.text) {
                    Ok(None) => return Ok(true),
                    Ok(Some(difference)) => Problem::Difference(Box::new(difference)),
                    Err(error) => Problem::Damage(error.to_string()),
                };
                problem = Some((format!("{}:{}", line.file, line.number), found));
                Ok(false)
            })?;
            if problem.is_some() {
                break;
            }
            if is_cut {
                // A closed standard error does not change the result.
                let _ = writeln!(
                    stderr(),
                    "warning: {}: the last line is incomplete and not read, as after a crash or while the file is written",
                    path.display()
                );
            }
        }
        if problem.is_none() && replay.summary().lines == 0 {
            return Err(anyhow!("no line of a decision log in the input"));
        }
        Ok(Found {
            replay,
            files: files.len(),
            problem,
        })
    }
}

fn replay_text(found: &Found) -> String {
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

/// ` from … to …`.
fn range_text(summary: ReplaySummary) -> String {
    match (summary.from_ms, summary.to_ms) {
        (Some(from_ms), Some(to_ms)) => format!(" from {} to {}", time(from_ms), time(to_ms)),
        _ => String::new(),
    }
}

fn problem_text(position: &str, problem: &Problem) -> String {
    match problem {
        Problem::Damage(why) => format!("{position}: {why}\n"),
        Problem::Difference(it) => {
            let own = env!("CARGO_PKG_VERSION");
            let version = if it.version == own {
                String::new()
            } else {
                format!(
                    "  the log was written by lockkeeper {}, this is {own}\n",
                    it.version
                )
            };
            format!(
                "{position}: a decision of {} differs\n  recorded: {}\n  replayed: {}\n{version}",
                time(it.at_ms),
                decision_text(it.recorded.as_ref()),
                decision_text(it.replayed.as_ref()),
            )
        }
    }
}

fn decision_text(decision: Option<&DecisionRecord>) -> String {
    let Some(decision) = decision else {
        return "none".to_owned();
    };
    let pod_sets = decision.pod_sets.iter().map(ToString::to_string);
    let victims = decision.victims.iter();
    let victims = victims.map(|it| format!("preempts {} ({})", it.workload, it.reason));
    let parts: Vec<String> = [format!("{} {}", decision.decision, decision.workload)]
        .into_iter()
        .chain(pod_sets)
        .chain(victims)
        .collect();
    parts.join("; ")
}

fn replay_json(found: &Found) -> Value {
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

/// A time of the log, in UTC, to the millisecond.
fn time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |it| format!("{it:.3}"))
}

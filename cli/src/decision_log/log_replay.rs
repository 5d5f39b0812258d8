//! Replays the files of a decision log.

use super::log_files::{for_each_line, with_renamed_files};
use anyhow::{Error, anyhow};
use clap::Args;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_cluster_state::journal::DecisionRecord;
use lockkeeper_decision_log::{Difference, Replay, ReplayObserver, ReplaySummary};
use std::io::{Write, stderr};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct LogFiles {
    /// Files of the decision log, from the oldest to the newest, or `-`; one file is read with those that were renamed:
    /// FILE.1, FILE.2, ...
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// What a replay has found.
pub(super) struct Found<O> {
    pub(super) replay: Replay<O>,
    pub(super) files: usize,
    /// With its position, `FILE:LINE`.
    pub(super) problem: Option<(String, Problem)>,
}

pub(super) enum Problem {
    Difference(Box<Difference>),
    /// The log was changed, or lines are missing.
    Damage(String),
}

impl LogFiles {
    /// Reads all files, up to the first problem.
    pub(super) fn replay<O: ReplayObserver>(
        &self,
        mut replay: Replay<O>,
    ) -> Result<Found<O>, Error> {
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

/// ` from … to …`.
pub(super) fn range_text(summary: ReplaySummary) -> String {
    match (summary.from_ms, summary.to_ms) {
        (Some(from_ms), Some(to_ms)) => format!(" from {} to {}", time(from_ms), time(to_ms)),
        _ => String::new(),
    }
}

pub(super) fn problem_text(position: &str, problem: &Problem) -> String {
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

/// A time of the log, in UTC, to the millisecond.
pub(super) fn time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |it| format!("{it:.3}"))
}

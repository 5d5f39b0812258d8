//! `lockkeeper queue` and `lockkeeper top`: what is pending, and how much of the quota is used.

use crate::Failure;
use crate::standard_output::print_visible;
use crate::world_source::{Scheduler, SourceArguments};
use anyhow::{Error, anyhow};
use clap::{Args, ValueEnum};
use lockkeeper_explain::{PendingWorkload, QuotaRow, pending_workloads, quota_rows};
use serde::Serialize;
use std::io::Write;
use tabwriter::TabWriter;

/// Flags of `lockkeeper queue`.
#[derive(Debug, Args)]
pub(crate) struct QueueArguments {
    /// Only workloads of this ClusterQueue
    #[arg(value_name = "CLUSTERQUEUE")]
    cluster_queue: Option<String>,

    #[command(flatten)]
    common: CommonArguments,

    /// Workloads of all namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
}

/// Flags of `lockkeeper top`.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct CommonArguments {
    #[command(flatten)]
    source: SourceArguments,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Output,

    /// Whose queues to list [default: those of lockkeeper; those of Kueue if there are no others]
    #[arg(long, value_name = "WHOSE")]
    scheduler: Option<Scheduler>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table
    Table,
    /// A table with messages
    Wide,
    /// JSON
    Json,
    /// Names only, one on each line
    Name,
}

/// Prints the pending workloads in the order of their queues.
pub(crate) fn run_queue(arguments: &QueueArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let loaded = common.source.load(common.scheduler, |_, _| Ok(()))?;
    let mut rows = pending_workloads(&loaded.world);
    if let Some(name) = &arguments.cluster_queue {
        rows.retain(|it| it.cluster_queue.as_deref() == Some(name));
    }
    if let Some(namespace) = loaded.namespace.filter(|_| !arguments.all_namespaces) {
        rows.retain(|it| it.namespace == namespace);
    }
    let text = match common.output {
        Output::Json => to_json(&rows)?,
        Output::Name => lines(
            rows.iter()
                .map(|it| format!("{}/{}", it.namespace, it.name)),
        ),
        Output::Table | Output::Wide => queue_table(&rows, common.output == Output::Wide)?,
    };
    Ok(print_visible(&text)?)
}

/// Prints the quota of ClusterQueues and cohorts.
pub(crate) fn run_top(arguments: &TopArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let loaded = common.source.load(common.scheduler, |_, _| Ok(()))?;
    let rows = quota_rows(&loaded.world);
    let text = match common.output {
        Output::Json => to_json(&rows)?,
        Output::Name => {
            let mut paths: Vec<&str> = rows.iter().map(|it| it.path.as_str()).collect();
            paths.dedup();
            lines(paths.into_iter().map(str::to_owned))
        }
        Output::Table | Output::Wide => top_table(&rows)?,
    };
    Ok(print_visible(&text)?)
}

fn queue_table(rows: &[PendingWorkload], is_wide: bool) -> Result<String, Error> {
    if rows.is_empty() {
        return Ok("no pending workload\n".to_owned());
    }
    let mut table = TabWriter::new(Vec::new()).padding(3);
    let message = if is_wide { "\tMESSAGE" } else { "" };
    writeln!(
        table,
        "POSITION\tNAMESPACE\tWORKLOAD\tJOB\tCLUSTERQUEUE\tLOCALQUEUE\tPRIORITY\tREASON{message}"
    )?;
    for it in rows {
        let position = it
            .position
            .map_or("-".to_owned(), |it| it.saturating_add(1).to_string());
        let or_none = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
        let message = if is_wide {
            format!("\t{}", it.message)
        } else {
            String::new()
        };
        writeln!(
            table,
            "{position}\t{}\t{}\t{}\t{}\t{}\t{}\t{}{message}",
            it.namespace,
            it.name,
            or_none(&it.job),
            or_none(&it.cluster_queue),
            or_none(&it.local_queue),
            it.priority,
            it.reason
        )?;
    }
    finish(table)
}

fn top_table(rows: &[QuotaRow]) -> Result<String, Error> {
    if rows.is_empty() {
        return Ok("no ClusterQueue with quota\n".to_owned());
    }
    let mut table = TabWriter::new(Vec::new()).padding(3);
    writeln!(
        table,
        "QUEUE\tKIND\tFLAVOR\tRESOURCE\tNOMINAL\tUSED\tBORROWED\tFREE\tPENDING"
    )?;
    let mut before = "";
    for it in rows {
        // The tree is shown by indentation; a repeated name is left out.
        let depth = it.path.matches('/').count().saturating_sub(1);
        let name = it.path.rsplit('/').next().unwrap_or_default();
        let (name, kind, pending) = if before == it.path {
            (String::new(), "", String::new())
        } else {
            (
                format!("{}{name}", "  ".repeat(depth)),
                it.kind,
                it.pending.to_string(),
            )
        };
        before = &it.path;
        writeln!(
            table,
            "{name}\t{kind}\t{}\t{}\t{}\t{}\t{}\t{}\t{pending}",
            it.flavor,
            it.resource,
            it.nominal,
            it.used,
            it.borrowed,
            it.free.as_deref().unwrap_or("-")
        )?;
    }
    finish(table)
}

/// The text of a table, without blanks at the ends of lines.
fn finish(table: TabWriter<Vec<u8>>) -> Result<String, Error> {
    let text = String::from_utf8(
        table
            .into_inner()
            .map_err(|error| anyhow!("{}", error.error()))?,
    )?;
    Ok(lines(text.lines().map(|it| it.trim_end().to_owned())))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|it| it + "\n").collect()
}

fn to_json(rows: &[impl Serialize]) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(rows)?;
    text.push('\n');
    Ok(text)
}

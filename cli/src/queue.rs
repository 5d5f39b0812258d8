//! `lockkeeper queue` and `lockkeeper top`: what is pending, and how much of the quota is used.

use crate::Failure;
use crate::live_names;
use crate::report_format::{to_pretty_json, to_table, to_yaml};
use crate::standard_output::print_visible;
use crate::world_source::{Scheduler, SourceArguments};
use anyhow::Error;
use clap::{Args, ValueEnum};
use lockkeeper_explain::{PendingWorkload, QuotaRow, World, pending_workloads, quota_rows};
use std::io::{Write, stderr};

/// Flags of `lockkeeper queue`.
#[derive(Debug, Args)]
pub(crate) struct QueueArguments {
    /// Only workloads of this ClusterQueue
    #[arg(value_name = "CLUSTERQUEUE")]
    cluster_queue: Option<String>,

    /// Namespace of the workloads [default: that of the context; with --dump all]
    #[arg(long, short, add = live_names::namespaces())]
    namespace: Option<String>,

    /// Workloads of all namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,

    #[command(flatten)]
    source: SourceArguments,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: QueueOutput,

    /// Whose queues to list [default: those of lockkeeper; those of Kueue if there are no others]
    #[arg(long, value_name = "WHOSE")]
    scheduler: Option<Scheduler>,
}

/// Flags of `lockkeeper top`.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    source: SourceArguments,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TopOutput,

    /// Whose queues to list [default: those of lockkeeper; those of Kueue if there are no others]
    #[arg(long, value_name = "WHOSE")]
    scheduler: Option<Scheduler>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum QueueOutput {
    /// A table
    Table,
    /// A table with messages
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Names only, one on each line
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TopOutput {
    /// A table
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// The paths of cohorts and ClusterQueues, one on each line
    Name,
}

/// Prints the pending workloads in the order of their queues.
pub(crate) fn run_queue(arguments: &QueueArguments) -> Result<(), Failure> {
    let namespace = arguments.namespace.as_deref();
    let loaded = arguments.source.load(namespace, arguments.scheduler)?;
    let mut rows = pending_workloads(&loaded.world);
    if let Some(name) = &arguments.cluster_queue {
        rows.retain(|it| it.cluster_queue.as_deref() == Some(name));
    }
    if let Some(namespace) = loaded.namespace.filter(|_| !arguments.all_namespaces) {
        rows.retain(|it| it.namespace == namespace);
    }
    let text = match arguments.output {
        QueueOutput::Json => to_pretty_json(&rows)?,
        QueueOutput::Yaml => to_yaml(&rows)?,
        QueueOutput::Name => {
            let names = rows
                .iter()
                .map(|it| format!("{}/{}\n", it.namespace, it.name));
            names.collect()
        }
        QueueOutput::Table => queue_table(&rows, false)?,
        QueueOutput::Wide => queue_table(&rows, true)?,
    };
    print_visible(&text)?;
    warn(&loaded.world);
    Ok(())
}

/// Prints the quota of ClusterQueues and cohorts.
pub(crate) fn run_top(arguments: &TopArguments) -> Result<(), Failure> {
    let loaded = arguments.source.load(None, arguments.scheduler)?;
    let rows = quota_rows(&loaded.world);
    let text = match arguments.output {
        TopOutput::Json => to_pretty_json(&rows)?,
        TopOutput::Yaml => to_yaml(&rows)?,
        TopOutput::Name => {
            let mut paths: Vec<&str> = rows.iter().map(|it| it.path.as_str()).collect();
            paths.dedup();
            paths.into_iter().map(|it| it.to_owned() + "\n").collect()
        }
        TopOutput::Table => top_table(&rows)?,
    };
    print_visible(&text)?;
    warn(&loaded.world);
    Ok(())
}

/// Says on standard error which objects the lists do not consider.
fn warn(world: &World) {
    let unreadable = world.unreadable().iter().map(ToString::to_string);
    let missing = world.assumptions().iter().filter(|_| world.is_partial());
    for line in missing.cloned().chain(unreadable) {
        // A closed standard error does not change the result.
        let _ = writeln!(stderr(), "warning: {line}");
    }
}

fn queue_table(rows: &[PendingWorkload], is_wide: bool) -> Result<String, Error> {
    if rows.is_empty() {
        return Ok("no pending workload\n".to_owned());
    }
    let head = [
        "POSITION",
        "NAMESPACE",
        "WORKLOAD",
        "JOB",
        "CLUSTERQUEUE",
        "LOCALQUEUE",
        "PRIORITY",
        "REASON",
        "MESSAGE",
    ];
    let or_none = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
    let body = rows.iter().map(|it| {
        let position = it.position.map(|it| it.saturating_add(1).to_string());
        [
            or_none(&position),
            it.namespace.clone(),
            it.name.clone(),
            or_none(&it.job),
            or_none(&it.cluster_queue),
            or_none(&it.local_queue),
            it.priority.to_string(),
            it.reason.clone(),
            it.message.clone(),
        ]
    });
    let table: Vec<_> = [head.map(str::to_owned)].into_iter().chain(body).collect();
    let columns = if is_wide {
        head.len()
    } else {
        head.len().saturating_sub(1)
    };
    let table: Vec<_> = table
        .iter()
        .map(|row| row.get(..columns).unwrap_or_default())
        .collect();
    to_table(&table)
}

fn top_table(rows: &[QuotaRow]) -> Result<String, Error> {
    if rows.is_empty() {
        return Ok("no ClusterQueue with quota\n".to_owned());
    }
    let head = [
        "QUEUE", "KIND", "FLAVOR", "RESOURCE", "NOMINAL", "USED", "BORROWED", "FREE", "PENDING",
    ];
    let mut table = vec![head.map(str::to_owned)];
    let mut before = "";
    for it in rows {
        // The tree is shown by indentation; a repeated name is left out.
        let is_repeated = before == it.path;
        let first = |text: String| if is_repeated { String::new() } else { text };
        let depth = it.path.matches('/').count().saturating_sub(1);
        let name = it.path.rsplit('/').next().unwrap_or_default();
        table.push([
            first(format!("{}{name}", "  ".repeat(depth))),
            first(it.kind.to_owned()),
            it.flavor.clone(),
            it.resource.clone(),
            it.nominal.clone(),
            it.used.clone(),
            it.borrowed.clone(),
            it.free.clone().unwrap_or_else(|| "-".to_owned()),
            first(it.pending.to_string()),
        ]);
        before = &it.path;
    }
    to_table(&table)
}

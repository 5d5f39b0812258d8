//! `lockkeeper diff`: the effect of a change of queues, cohorts, flavors and classes on the workloads of a cluster, and the
//! findings that it adds or resolves.

mod findings;
mod report;

use crate::Failure;
use crate::live_names;
use crate::report_format::to_pretty_json;
use crate::standard_output::print_visible;
use crate::world_source::{QueueObjects, Scheduler, SourceArguments, is_kueue};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use findings::compare_findings;
use lockkeeper_crdgen::diff::source::Source;
use lockkeeper_explain::{WorldBuilder, compare};
use report::{DiffReport, markdown_report, text_report};
use serde_json::Value;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  the change has no effect of the kind that --fail-on names
  1  it does
  2  usage or configuration error, or unreadable input
  141  the reader of standard output closed it";

/// The namespace of kubectl without a context.
const DEFAULT_NAMESPACE: &str = "default";

/// Flags of `lockkeeper diff`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Manifests before and after the change: files, folders, REVISION:PATH or a revision of git, or `-`; with one source,
    /// it is compared with the objects of the cluster
    #[arg(value_name = "SOURCE", num_args = 1..=2, required = true)]
    sources: Vec<String>,

    /// Namespace of LocalQueues without one [default: that of the context; with --dump `default`]
    #[arg(long, short, add = live_names::namespaces())]
    namespace: Option<String>,

    #[command(flatten)]
    source: SourceArguments,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    /// Which effects give the exit code 1
    #[arg(long, value_name = "EFFECT", default_value = "harm")]
    fail_on: FailOn,

    /// Whose queues to compare [default: those of lockkeeper; those of Kueue if there are no others]
    #[arg(long, value_name = "WHOSE")]
    scheduler: Option<Scheduler>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text
    Text,
    /// Markdown for a pull request
    Markdown,
    /// JSON
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A running workload is preempted or may be, a workload no longer starts or has no queue, a rule reports a new error, or
    /// a preemption loop becomes possible
    Harm,
    /// Any effect
    Any,
    /// No effect
    Never,
}

/// Compares, prints the report, and returns the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let report = diff_report(arguments)?;
    let text = match arguments.output {
        Output::Text => text_report(&report),
        Output::Markdown => markdown_report(&report),
        Output::Json => to_pretty_json(&report)?,
    };
    print_visible(&text)?;
    let is_failure = match arguments.fail_on {
        FailOn::Harm => report.is_harmful(),
        FailOn::Any => !report.is_empty(),
        FailOn::Never => false,
    };
    Ok(ExitCode::from(u8::from(is_failure)))
}

fn diff_report(arguments: &Arguments) -> Result<DiffReport, Failure> {
    let (old, new) = changed_objects(&arguments.sources)?;
    let source = &arguments.source;
    let mut read = source.read(arguments.namespace.as_deref())?;
    if read.builder.is_partial() {
        return Err(Failure::Usage(anyhow!(
            "the account may not list all queues and workloads, so the effect is not known; grant the right to list them in all namespaces, or use --dump"
        )));
    }
    let base = Side {
        world: std::mem::take(&mut read.builder),
        objects: std::mem::take(&mut read.queue_objects),
    };
    let namespace = read.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let before = match &old {
        Some(old) => base.overlaid(&new, old, namespace),
        None => base.clone(),
    };
    let after = base.overlaid(old.as_deref().unwrap_or_default(), &new, namespace);
    let is_kueue = is_kueue(&after.world, arguments.scheduler);
    let config = source.scheduler_config(&read, is_kueue)?.config;
    let findings = compare_findings(&before.objects, &after.objects, &config, now_seconds());
    let build = |side: Side| source.build(side.world, arguments.scheduler, &read);
    Ok(DiffReport {
        workloads: compare(&build(before)?, &build(after)?),
        findings: findings.map_err(Failure::Usage)?,
    })
}

/// The seconds since 1970.
fn now_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

/// The objects before the change, if there are two sources, and after it.
fn changed_objects(sources: &[String]) -> Result<(Option<Vec<Value>>, Vec<Value>), Failure> {
    let objects = |source: &Source, other: &Source| {
        let read = source.objects_beside(other);
        read.map_err(|error| Failure::Usage(error.into()))
    };
    match sources {
        [old, new] => {
            let (old, new) = (Source::parse(old), Source::parse(new));
            Ok((Some(objects(&old, &new)?), objects(&new, &old)?))
        }
        [new] => {
            let new = Source::parse(new);
            Ok((None, objects(&new, &new)?))
        }
        _ => Err(Failure::Usage(anyhow!("name one source or two"))),
    }
}

/// The objects before or after the change.
#[derive(Clone)]
struct Side {
    world: WorldBuilder,
    /// The objects that rules check.
    objects: QueueObjects,
}

impl Side {
    /// The objects without `removed`, and with `added` in place of those of the same name. `namespace` is that of LocalQueues
    /// without one.
    fn overlaid(&self, removed: &[Value], added: &[Value], namespace: &str) -> Self {
        let mut side = self.clone();
        for object in removed {
            let object = with_namespace(object, namespace);
            side.world.remove(&object);
            side.objects.remove(&object);
        }
        for object in added {
            let object = with_namespace(object, namespace);
            side.objects.put(&object);
            side.world.replace(object);
        }
        side
    }
}

/// The object; a LocalQueue without a namespace is in this one.
fn with_namespace(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    let is_namespaced = object.get("kind").and_then(Value::as_str) == Some("LocalQueue");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && is_namespaced
    {
        metadata
            .entry("namespace")
            .or_insert_with(|| namespace.into());
    }
    object
}

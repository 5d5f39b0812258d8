//! `lockkeeper diff`: the effect of a change of queues, cohorts, flavors and classes on the workloads of a cluster.

mod report;

use crate::Failure;
use crate::report_format::to_pretty_json;
use crate::standard_output::print_visible;
use crate::world_source::{Scheduler, SourceArguments};
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use lockkeeper_crdgen::diff::source::Source;
use lockkeeper_explain::{Comparison, WorldBuilder, compare};
use report::{markdown_report, text_report};
use serde_json::Value;
use std::process::ExitCode;

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  the change affects no workload in the way that --fail-on names
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
    #[arg(long, short)]
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
    /// A running workload is preempted or may be, or a workload no longer starts or has no queue
    Harm,
    /// Any effect
    Any,
    /// No effect
    Never,
}

/// Compares, prints the report, and returns the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let comparison = comparison(arguments)?;
    let text = match arguments.output {
        Output::Text => text_report(&comparison),
        Output::Markdown => markdown_report(&comparison),
        Output::Json => to_pretty_json(&comparison)?,
    };
    print_visible(&text)?;
    let is_failure = match arguments.fail_on {
        FailOn::Harm => comparison.is_harmful(),
        FailOn::Any => !comparison.is_empty(),
        FailOn::Never => false,
    };
    Ok(ExitCode::from(u8::from(is_failure)))
}

fn comparison(arguments: &Arguments) -> Result<Comparison, Failure> {
    let (old, new) = changed_objects(&arguments.sources)?;
    let source = &arguments.source;
    let base = source.read(arguments.namespace.as_deref())?;
    if base.builder.is_partial() {
        return Err(Failure::Usage(anyhow!(
            "the account may not list all queues and workloads, so the effect is not known; grant the right to list them in all namespaces, or use --dump"
        )));
    }
    let namespace = base.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let before = match &old {
        Some(old) => overlaid(&base.builder, &new, old, namespace),
        None => base.builder.clone(),
    };
    let removed = old.as_deref().unwrap_or_default();
    let after = overlaid(&base.builder, removed, &new, namespace);
    let build = |builder: WorldBuilder| source.build(builder, arguments.scheduler, &base);
    Ok(compare(&build(before)?, &build(after)?))
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

/// The objects of `base` without `removed`, and with `added` in place of those of the same name. `namespace` is that of
/// LocalQueues without one.
fn overlaid(
    base: &WorldBuilder,
    removed: &[Value],
    added: &[Value],
    namespace: &str,
) -> WorldBuilder {
    let with_namespace = |object: &Value| {
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
    };
    let mut builder = base.clone();
    for object in removed {
        builder.remove(&with_namespace(object));
    }
    for object in added {
        builder.replace(with_namespace(object));
    }
    builder
}

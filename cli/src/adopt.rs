//! `lockkeeper adopt`: imports running jobs into a LocalQueue without stopping them.

mod adoption;
mod apply;
#[cfg(test)]
mod apply_tests;
mod candidate;
mod listing;
mod objects;
mod plan;
mod progress;
mod quota_check;
mod report;
mod selection;
#[cfg(test)]
mod test_objects;
#[cfg(test)]
mod tests;

use crate::check::cluster_list::ListError;
use crate::configuration::LoadedConfig;
use crate::kubeconfig::{Connection, connect, connect_as};
use crate::live_names;
use crate::standard_output::print;
use crate::user_rules::RuleDirs;
use crate::{Failure, configuration};
use adoption::{ApplyOptions, Clients};
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use lockkeeper_controller::job_adapters::JobKinds;
use plan::Plan;
use progress::Progress;
use quota_check::Settings;
use selection::{JobArgument, Selection};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime;

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  every selected job fits, or is adopted
  1  a job does not fit, or was not adopted
  2  usage or configuration error, or the cluster cannot be read
  141  the reader of standard output closed it";

/// The account of the controller in the chart.
const CONTROLLER_ACCOUNT: &str = "system:serviceaccount:lockkeeper-system:lockkeeper-controller";

/// Flags of `lockkeeper adopt`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Names: NAME of a Job, or KIND/NAME [default: all that run]
    #[arg(value_name = "JOB")]
    jobs: Vec<JobArgument>,

    /// LocalQueue in the namespace of the jobs
    #[arg(long, value_name = "LOCALQUEUE")]
    queue: String,

    /// Namespace of the jobs [default: that of the context]
    #[arg(long, short, add = live_names::namespaces())]
    namespace: Option<String>,

    /// Select jobs in all namespaces, each into its own LocalQueue
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "jobs"])]
    all_namespaces: bool,

    /// Select jobs by their labels, as in `kubectl get -l`
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,

    #[command(flatten)]
    writes: WriteArguments,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    /// Configuration file of the controller, for its settings of quota
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    rules: RuleDirs,

    /// Kubeconfig [default: as kubectl]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Flags for the writes.
#[derive(Debug, Args)]
struct WriteArguments {
    /// Adopt the jobs; without it nothing is written
    #[arg(long)]
    apply: bool,

    /// Adopt the jobs that fit, even if others do not
    #[arg(long)]
    partial: bool,

    /// Account of the controller, which the writes impersonate
    #[arg(long = "as", value_name = "ACCOUNT", default_value = CONTROLLER_ACCOUNT)]
    account: String,

    /// How long to wait for the controller, for each job, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table
    #[default]
    Text,
    /// JSON
    Json,
}

/// Plans, writes with `--apply`, prints the report, and returns the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let loaded = configuration::read(arguments.config.as_deref(), &arguments.rules)
        .map_err(Failure::Usage)?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let plan = runtime.block_on(adopt(arguments, &loaded))?;
    let text = match arguments.output {
        Output::Text => {
            report::text_report(&plan, arguments.writes.apply, arguments.writes.partial)?
        }
        Output::Json => report::json_report(&plan, arguments.writes.apply)?,
    };
    print(text)?;
    Ok(ExitCode::from(u8::from(!plan.is_success())))
}

async fn adopt(arguments: &Arguments, loaded: &LoadedConfig) -> Result<Plan, Failure> {
    let (file, context) = (
        arguments.kubeconfig.as_deref(),
        arguments.context.as_deref(),
    );
    let reader = connect(file, context).await.map_err(Failure::Usage)?;
    let job_kinds = listing::list_job_kinds(&reader.client)
        .await
        .map_err(|error| unreadable(error, &reader))?;
    let selection = selected_jobs(arguments, &reader, job_kinds)?;
    let objects = listing::list(&reader.client, &selection, arguments.selector.as_deref())
        .await
        .map_err(|error| unreadable(error, &reader))?;
    let settings = Settings::new(&loaded.config, configuration::unix_now_seconds());
    let mut plan = Plan::new(objects, &selection, &settings);
    let flags = &arguments.writes;
    if flags.apply && plan.may_apply(flags.partial) {
        let writer = connect_as(file, context, Some(&flags.account))
            .await
            .map_err(Failure::Usage)?;
        let clients = Clients {
            reader: reader.client,
            writer: writer.client,
        };
        let options = ApplyOptions {
            settings: &settings,
            job_kinds: &selection.job_kinds,
            is_partial: flags.partial,
            timeout: Duration::from_secs(flags.timeout),
        };
        let mut progress = Progress::on_standard_error();
        apply::apply(&mut plan, &clients, &options, &mut progress).await;
        progress.clear();
    }
    Ok(plan)
}

fn selected_jobs(
    arguments: &Arguments,
    reader: &Connection,
    job_kinds: JobKinds,
) -> Result<Selection, Failure> {
    let jobs = arguments.jobs.iter().map(|it| it.resolve(&job_kinds));
    let jobs = jobs.collect::<Result<_, _>>();
    let namespace = arguments.namespace.clone();
    let namespace = namespace.unwrap_or_else(|| reader.namespace.clone());
    Ok(Selection {
        queue: arguments.queue.clone(),
        namespace: (!arguments.all_namespaces).then_some(namespace),
        jobs: jobs.map_err(|error| Failure::Usage(anyhow!(error)))?,
        job_kinds,
    })
}

fn unreadable(error: ListError, reader: &Connection) -> Failure {
    let read: Result<(), _> = Err(anyhow!(error));
    let read = read.with_context(|| format!("API server {}", reader.address));
    Failure::Usage(read.err().unwrap_or_else(|| anyhow!("cannot be read")))
}

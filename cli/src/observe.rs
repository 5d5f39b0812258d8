//! `lockkeeper controller --observe kueue`: decides beside a live Kueue without writing, and compares.

mod event_loop;
mod metrics;
mod server;
mod unix_time;
mod watches;

use crate::Failure;
use crate::controller_connection::{bind, clients};
use crate::kubeconfig;
use crate::signals::Signals;
use crate::standard_output::StandardOutput;
use crate::world_source::scheduler_config::{SchedulerConfig, kueue_configuration};
use crate::world_source::world_settings;
use anyhow::{Context, Error};
use clap::{Args, ValueEnum};
use event_loop::{EventLoop, SharedState};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use lockkeeper_api::config::OptionalListen;
use lockkeeper_kube_support::api_client::ApiClients;
use lockkeeper_kube_support::probe_server::{ProbeServerLimits, serve_on_own_thread};
use lockkeeper_observe::ObserveSettings;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// The name of Kueue's `ConfigMap`.
const CONFIG_MAP: &str = "kueue-manager-config";

/// The size of the channel of changes; when it is full, the watches wait.
const EVENTS_MAX: usize = 8_192;

/// Flags of observe mode.
#[derive(Debug, Args)]
pub(crate) struct ObserveArguments {
    /// Decide beside this scheduler without writing, and report decisions that differ; `--config` is its Configuration
    #[arg(long, value_name = "SCHEDULER", conflicts_with_all = ["dry_run", "no_leader_election", "decision_log", "print_config"])]
    pub(crate) observe: Option<ObservedScheduler>,

    /// Time without a decision of the observed scheduler that is a difference, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "observe",
        value_parser = clap::value_parser!(u32).range(5..=86_400))]
    observe_missing_after: u32,

    /// Namespace of the `ConfigMap` kueue-manager-config, which is read without `--config`
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = "kueue-system",
        requires = "observe"
    )]
    observe_namespace: String,
}

/// A scheduler that can be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObservedScheduler {
    /// Kueue
    Kueue,
}

/// Runs observe mode until a signal stops it. `listen` is the address of probes; by default that of the configuration.
pub(crate) fn run(
    arguments: &ObserveArguments,
    config: Option<&Path>,
    kubeconfig: Option<&Path>,
    listen: Option<&OptionalListen>,
) -> Result<(), Failure> {
    let given = config.map(SchedulerConfig::read).transpose();
    let given = given.map_err(Failure::Usage)?;
    kubeconfig::validate(kubeconfig).map_err(Failure::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(observe(arguments, given, kubeconfig, listen))?)
}

async fn observe(
    arguments: &ObserveArguments,
    given: Option<SchedulerConfig>,
    kubeconfig: Option<&Path>,
    listen: Option<&OptionalListen>,
) -> Result<(), Error> {
    let clients = clients(kubeconfig.map(Path::to_owned)).await?;
    let used = match given {
        Some(given) => given,
        None => read_config_map(&clients.watches, &arguments.observe_namespace).await?,
    };
    let listen = listen.unwrap_or(&used.config.controller.listen);
    let port = bind(listen).await?;
    let kinds = watches::watched_kinds(&clients.watches).await?;
    let signals = Signals::install()?;
    print_startup_message(port.as_ref(), &used)?;
    let settings = observe_settings(arguments, used);
    let shared = Arc::new(SharedState::new(&settings));
    if let Some(port) = port {
        let router = server::router(Arc::clone(&shared), clients.ages.clone());
        serve_on_own_thread(port, router, ProbeServerLimits::for_probes())?;
    }
    run_until_stopped(clients, kinds, settings, shared, signals).await
}

async fn run_until_stopped(
    clients: ApiClients,
    kinds: Vec<watches::WatchedKind>,
    settings: ObserveSettings,
    shared: Arc<SharedState>,
    signals: Signals,
) -> Result<(), Error> {
    let (events, received) = mpsc::channel(EVENTS_MAX);
    let event_loop = EventLoop::new(settings, kinds.iter().map(|it| it.kind), shared);
    for kind in kinds {
        watches::start(&clients.watches, kind, events.clone());
    }
    drop(events);
    // A comparison may take long, and must not delay the times at which watches deliver changes.
    event_loop::start(event_loop, received)?;
    signals.wait().await;
    tracing::info!("stopped");
    Ok(())
}

/// Kueue's configuration in the cluster. Without it, or the right to read it, Kueue has its default configuration.
async fn read_config_map(client: &Client, namespace: &str) -> Result<SchedulerConfig, Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let why = match api.get_opt(CONFIG_MAP).await {
        Ok(Some(found)) => {
            let mut value = serde_json::to_value(&found)?;
            if let Some(fields) = value.as_object_mut() {
                fields.insert("kind".to_owned(), "ConfigMap".into());
            }
            if let Some(read) = kueue_configuration(&value) {
                return read.with_context(|| format!("ConfigMap {namespace}/{CONFIG_MAP}"));
            }
            "it has no Configuration".to_owned()
        }
        Ok(None) => "it does not exist".to_owned(),
        Err(kube::Error::Api(status)) => status.message.clone(),
        Err(error) => return Err(error.into()),
    };
    let config_map = format!("{namespace}/{CONFIG_MAP}");
    tracing::warn!(
        config_map,
        why,
        "assuming Kueue's default configuration; --config reads another"
    );
    Ok(SchedulerConfig::default())
}

fn observe_settings(arguments: &ObserveArguments, used: SchedulerConfig) -> ObserveSettings {
    let not_considered = used.assumptions;
    let world = world_settings(used.config, None, true, None);
    ObserveSettings {
        options: world.options,
        requeue: world.requeue,
        excluded_resource_prefixes: world.excluded_resource_prefixes,
        not_considered,
        missing_after_ms: i64::from(arguments.observe_missing_after).saturating_mul(1000),
        ..ObserveSettings::default()
    }
}

/// Prints the startup message. Programs parse the first line.
fn print_startup_message(port: Option<&TcpListener>, used: &SchedulerConfig) -> Result<(), Error> {
    let mut out = StandardOutput::new();
    match port {
        Some(port) => {
            let address = port.local_addr()?;
            writeln!(
                out,
                "observing Kueue; probes and metrics on http://{address}"
            )?;
            writeln!(out, "  results  http://{address}/observed")?;
        }
        None => writeln!(out, "observing Kueue; probes and metrics off")?,
    }
    for assumption in &used.assumptions {
        writeln!(out, "  note     {assumption}")?;
    }
    Ok(out.flush()?)
}

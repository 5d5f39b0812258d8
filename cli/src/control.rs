//! `lockkeeper control`, and `lockkeeper all`.

use crate::logging::LogFormat;
use crate::signals::Signals;
use crate::user_rules::RuleDirs;
use crate::{Failure, configuration, kubeconfig, serve};
use anyhow::{Context, Error, anyhow};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use clap::Args;
use kube::Client;
use lockkeeper_api::config::{Config, OptionalListen};
use lockkeeper_cluster_state::settings;
use lockkeeper_controller::{Health, LeaseSettings, LeaseTiming, RunSettings, Settings};
use lockkeeper_kube_support::probe_server::{ProbeServerLimits, serve_router};
use lockkeeper_policies::settings::Settings as Rules;
use std::env;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

/// What a scraper is told that the metrics are.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Flags of `lockkeeper control`; those that the configuration file has too go before it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the configuration that holds, file and flags taken together, and exit
    #[arg(long)]
    print_config: bool,

    /// The cluster of this kubeconfig; in a pod its service account is used without this
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    rules: RuleDirs,

    #[command(flatten)]
    controller: ControllerArguments,

    /// How log lines on standard error look
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// Flags that only the controller has.
#[derive(Debug, Args)]
struct ControllerArguments {
    /// Decide and report, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Work without a Lease: there must be no other replica
    #[arg(long)]
    no_leader_election: bool,

    /// Address and port of /livez, /readyz and /metrics, over plain HTTP; `off` opens none [default:
    /// 127.0.0.1:9446]
    #[arg(long, value_name = "ADDRESS")]
    control_listen: Option<OptionalListen>,
}

/// Flags of `lockkeeper all`.
#[derive(Debug, Args)]
pub(crate) struct AllArguments {
    #[command(flatten)]
    serve: serve::Arguments,

    #[command(flatten)]
    controller: ControllerArguments,
}

impl ControllerArguments {
    fn apply(&self, config: &mut Config) {
        let controller = &mut config.controller;
        controller.dry_run |= self.dry_run;
        if self.no_leader_election {
            controller.leader_election.enable = false;
        }
        if let Some(listen) = &self.control_listen {
            controller.listen = listen.clone();
        }
    }
}

/// Runs the controller until it is told to stop.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.log_format.start();
    let read = configuration::read(arguments.config.as_deref(), &arguments.rules);
    let loaded = read.map_err(Failure::Usage)?;
    let mut config = loaded.config;
    arguments.controller.apply(&mut config);
    if arguments.print_config {
        return configuration::print(&config);
    }
    // One thread is enough, and threads that wake each other cost more than what they do.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let kubeconfig = arguments.kubeconfig.clone();
    Ok(runtime.block_on(run_controller(kubeconfig, config, loaded.settings))?)
}

/// Runs the webhook server and the controller in one process until it is told to stop.
pub(crate) fn run_all(arguments: &AllArguments) -> Result<(), Failure> {
    let config = arguments.serve.config.as_deref();
    let loaded = configuration::read(config, &arguments.serve.rules).map_err(Failure::Usage)?;
    let mut config = loaded.config;
    arguments.controller.apply(&mut config);
    let kubeconfig = arguments.serve.kubeconfig.clone();
    serve::run_with(
        &arguments.serve,
        |config| arguments.controller.apply(config),
        Some(run_controller(kubeconfig, config, loaded.settings)),
    )
}

async fn run_controller(
    kubeconfig: Option<PathBuf>,
    config: Config,
    rules: Rules,
) -> Result<(), Error> {
    let client = client(kubeconfig).await?;
    let settings = run_settings(&config, rules);
    let port = match &config.controller.listen {
        OptionalListen::At(address) => {
            let bound = TcpListener::bind(address.as_str()).await;
            let remedy = "is another process there? --control-listen takes another address, or off";
            Some(bound.with_context(|| format!("cannot listen on {address}; {remedy}"))?)
        }
        OptionalListen::Off => None,
    };
    let signals = Signals::install()?;
    print_startup_message(&config, port.as_ref())?;
    let health = Arc::new(OnceLock::new());
    if let Some(port) = port {
        let router = router(Arc::clone(&health));
        tokio::spawn(serve_router(port, router, ProbeServerLimits::default()));
    }
    let started = |it: Health| {
        let _ = health.set(it);
    };
    let running = lockkeeper_controller::run(client, settings, started, signals.wait());
    Box::pin(running).await?;
    tracing::info!("stopped");
    Ok(())
}

async fn client(kubeconfig: Option<PathBuf>) -> Result<Client, Error> {
    if let Some(path) = kubeconfig {
        return kubeconfig::client(&path).await;
    }
    let config = kube::Config::incluster().map_err(|error| {
        anyhow!("there is no cluster: give --kubeconfig, or run it in a pod ({error})")
    })?;
    Ok(Client::try_from(config)?)
}

/// Says what it does. The first line is for programs too: it does not change.
fn print_startup_message(config: &Config, port: Option<&TcpListener>) -> Result<(), Error> {
    let mut out = stdout().lock();
    match port {
        Some(port) => writeln!(
            out,
            "controlling; probes and metrics on http://{}",
            port.local_addr()?
        )?,
        None => writeln!(out, "controlling; probes and metrics off")?,
    }
    let controller = &config.controller;
    if controller.leader_election.enable {
        writeln!(out, "  lease    {}", controller.leader_election.lease)?;
    } else {
        writeln!(out, "  lease    none: there must be no other replica")?;
    }
    if controller.dry_run {
        writeln!(
            out,
            "  dry run  it reports what it would write, and writes nothing"
        )?;
    }
    Ok(out.flush()?)
}

fn run_settings(config: &Config, rules: Rules) -> RunSettings {
    let controller = &config.controller;
    let identity = identity();
    let election = &controller.leader_election;
    let lease = election.enable.then(|| LeaseSettings {
        namespace: election.lease.namespace().to_owned(),
        name: election.lease.name().to_owned(),
        identity: identity.clone(),
        timing: LeaseTiming {
            duration: election.lease_seconds.seconds(),
            renew_deadline: election.renew_seconds.seconds(),
            retry_period: election.retry_seconds.seconds(),
        },
    });
    let interval = controller.status_interval_seconds.seconds();
    RunSettings {
        reconciler: Settings {
            options: settings::scheduling_options(config),
            requeue: settings::requeue_settings(config),
            rules,
            writes_max: controller.writes_max.count(),
            status_interval_ms: i64::try_from(interval.as_millis()).unwrap_or(i64::MAX),
            pending_reason_writes_per_second: controller
                .pending_reason_writes_per_second
                .count_u32(),
            eviction_events_per_second: controller.eviction_events_per_second.count_u32(),
            job_kinds: Vec::new(),
            seed: u64::try_from(unix_time().as_millis()).unwrap_or(1),
            instance: identity,
        },
        lease,
        is_dry_run: controller.dry_run,
        shutdown: controller.shutdown_seconds.seconds(),
    }
}

/// The name of this process, among all of its kind.
fn identity() -> String {
    let host = env::var("HOSTNAME").unwrap_or_else(|_| "lockkeeper".to_owned());
    let started = unix_time().as_millis();
    format!("{host}_{}_{started:x}", process::id())
}

fn unix_time() -> Duration {
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or_default()
}

type SharedHealth = Arc<OnceLock<Health>>;

fn router(health: SharedHealth) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(health)
}

async fn livez(State(health): State<SharedHealth>) -> Response {
    probe(health.get().is_none_or(Health::is_alive), "stuck")
}

async fn readyz(State(health): State<SharedHealth>) -> Response {
    let is_ready = health.get().is_some_and(Health::is_ready);
    probe(is_ready, "not all objects were seen yet")
}

fn probe(is_well: bool, why: &'static str) -> Response {
    if is_well {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response()
    }
}

async fn metrics(State(health): State<SharedHealth>) -> Response {
    let health = health.get().cloned();
    let text = match health {
        Some(health) => health.metrics().await,
        None => None,
    };
    match text {
        Some(text) => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        None => probe(false, "not started"),
    }
}

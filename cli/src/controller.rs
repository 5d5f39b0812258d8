//! `lockkeeper controller`, and `lockkeeper serve --with-controller`.

use crate::controller_connection::{bind, clients};
use crate::logging::LogFormat;
use crate::observe::{self, ObserveArguments};
use crate::signals::Signals;
use crate::standard_output::StandardOutput;
use crate::user_rules::RuleDirs;
use crate::{Failure, configuration, kubeconfig, serve};
use anyhow::{Error, anyhow};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use clap::Args;
use lockkeeper_api::config::{Config, OptionalListen};
use lockkeeper_cluster_state::settings;
use lockkeeper_controller::{
    DecisionLogTarget, Health, LeaseSettings, LeaseTiming, RunSettings, Settings,
};
use lockkeeper_decision_log::LogHeader;
use lockkeeper_kube_support::probe_server::{ProbeServerLimits, serve_on_own_thread};
use lockkeeper_policies::settings::Settings as Rules;
use std::env;
use std::io::{Write, stderr};
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

/// The name of standard output as the file of the decision log.
const STANDARD_OUTPUT: &str = "-";

/// The content type of the metrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Flags of `lockkeeper controller`. They override the configuration file.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the effective configuration (file and flags) and exit
    #[arg(long)]
    print_config: bool,

    /// Cluster to use [default: in a pod, its service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    rules: RuleDirs,

    #[command(flatten)]
    controller: ControllerArguments,

    #[command(flatten)]
    observe: ObserveArguments,

    /// Format of log lines on stderr
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// Flags of the controller.
#[derive(Debug, Args)]
struct ControllerArguments {
    /// Report decisions and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Run without a Lease; only safe with a single replica
    #[arg(long)]
    no_leader_election: bool,

    /// Write every decision to this file, for `lockkeeper replay` and `lockkeeper log`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    decision_log: Option<String>,

    /// Address of /livez, /readyz and /metrics, or `off` [default: 127.0.0.1:9446]
    #[arg(long, value_name = "ADDRESS")]
    control_listen: Option<OptionalListen>,
}

/// Flags of `lockkeeper serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    serve: serve::Arguments,

    /// Also run the controller in this process
    #[arg(long)]
    with_controller: bool,

    #[command(flatten)]
    controller: ControllerArguments,
}

impl ControllerArguments {
    fn is_any_set(&self) -> bool {
        self.dry_run
            || self.no_leader_election
            || self.control_listen.is_some()
            || self.decision_log.is_some()
    }

    fn apply(&self, config: &mut Config) {
        let controller = &mut config.controller;
        controller.dry_run |= self.dry_run;
        if self.no_leader_election {
            controller.leader_election.enable = false;
        }
        if let Some(file) = &self.decision_log {
            controller.decision_log.file = Some(file.clone());
        }
        if let Some(listen) = &self.control_listen {
            controller.listen = listen.clone();
        }
    }
}

/// Runs the controller until a signal stops it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.log_format.start().map_err(Failure::Usage)?;
    if arguments.observe.observe.is_some() {
        let listen = arguments.controller.control_listen.as_ref();
        let (config, kubeconfig) = (&arguments.config, &arguments.kubeconfig);
        return observe::run(
            &arguments.observe,
            config.as_deref(),
            kubeconfig.as_deref(),
            listen,
        );
    }
    let read = configuration::read(arguments.config.as_deref(), &arguments.rules);
    let loaded = read.map_err(Failure::Usage)?;
    let mut config = loaded.config;
    arguments.controller.apply(&mut config);
    if arguments.print_config {
        return configuration::print(&config);
    }
    kubeconfig::validate(arguments.kubeconfig.as_deref()).map_err(Failure::Usage)?;
    // One thread suffices: waking other threads costs more than the work itself.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let kubeconfig = arguments.kubeconfig.clone();
    Ok(runtime.block_on(run_controller(kubeconfig, config, loaded.settings))?)
}

/// Runs the webhook server, and the controller with `--with-controller`, until a signal stops them.
pub(crate) fn run_serve(arguments: &ServeArguments) -> Result<(), Failure> {
    if !arguments.with_controller {
        if arguments.controller.is_any_set() {
            return Err(Failure::Usage(anyhow!(
                "--dry-run, --no-leader-election, --decision-log and --control-listen have no effect without the \
                 controller; add --with-controller or remove them"
            )));
        }
        return serve::run(&arguments.serve);
    }
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
    let clients = clients(kubeconfig).await?;
    let settings = run_settings(&config, rules);
    let port = bind(&config.controller.listen).await?;
    let signals = Signals::install()?;
    print_startup_message(&config, port.as_ref())?;
    let health = Arc::new(OnceLock::new());
    if let Some(port) = port {
        // Serves probes before the controller starts, so that /readyz reports the initial lists.
        let router = router(Arc::clone(&health));
        serve_on_own_thread(port, router, ProbeServerLimits::for_probes())?;
    }
    let started = |state: Health| {
        let _ = health.set(state);
    };
    let running = lockkeeper_controller::run(clients, settings, started, signals.wait());
    Box::pin(running).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Prints the startup message. Programs parse the first line: it does not change.
fn print_startup_message(config: &Config, port: Option<&TcpListener>) -> Result<(), Error> {
    // The decision log has standard output for itself.
    let is_log = config.controller.decision_log.file.as_deref() == Some(STANDARD_OUTPUT);
    let mut out: Box<dyn Write> = if is_log {
        Box::new(stderr())
    } else {
        Box::new(StandardOutput::new())
    };
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
        writeln!(out, "  lease    none; run a single replica")?;
    }
    if controller.dry_run {
        writeln!(out, "  dry run  reports writes without executing them")?;
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
    let ms = |pause: Duration| i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
    RunSettings {
        reconciler: Settings {
            options: settings::scheduling_options(config),
            requeue: settings::requeue_settings(config),
            excluded_resource_prefixes: config.resources.exclude_prefixes.clone(),
            rules,
            writes_max: controller.writes_max.count(),
            status_interval_ms: ms(interval),
            pending_reason_writes_per_second: controller
                .pending_reason_writes_per_second
                .count_u32(),
            eviction_events_per_second: controller.eviction_events_per_second.count_u32(),
            job_response_ms: ms(controller.job_response_seconds.seconds()),
            stuck_eviction_ms: ms(controller.stuck_eviction_seconds.seconds()),
            finished_retention_ms: controller
                .finished_workload_retention_seconds
                .map(|it| ms(it.seconds())),
            has_decision_log: controller.decision_log.file.is_some(),
            template_bytes_max: TEMPLATE_BYTES_MAX,
            job_kinds: Vec::new(),
            has_pod_groups: false,
            has_job_kinds: false,
            seed: u64::try_from(unix_time().as_millis()).unwrap_or(1),
            instance: identity.clone(),
        },
        decision_log: decision_log(config, &identity),
        lease,
        job_spec_max_bytes: controller.job_spec_max_bytes.count(),
        is_dry_run: controller.dry_run,
        shutdown: controller.shutdown_seconds.seconds(),
    }
}

/// The decision log, if there is one.
fn decision_log(config: &Config, identity: &str) -> Option<DecisionLogTarget> {
    let given = &config.controller.decision_log;
    let file = given.file.as_deref()?;
    Some(DecisionLogTarget {
        file: (file != STANDARD_OUTPUT).then(|| PathBuf::from(file)),
        file_bytes_max: given.file_bytes_max.get(),
        files_max: given.files_max.count(),
        header: LogHeader::new(env!("CARGO_PKG_VERSION"), identity, config),
    })
}

/// The most bytes of pod templates that the controller keeps as text: those of some thousand jobs that are about to
/// get a workload. More would not make it faster.
const TEMPLATE_BYTES_MAX: usize = 32 << 20;

/// The identity of this process in the Lease.
fn identity() -> String {
    // In a pod this is its name. The start time differs after a restart of its container.
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
    // Alive before the start: the liveness probe must not restart a starting process.
    probe(health.get().is_none_or(Health::is_alive), "stuck")
}

async fn readyz(State(health): State<SharedHealth>) -> Response {
    let is_ready = health.get().is_some_and(Health::is_ready);
    probe(is_ready, "initial lists are not complete")
}

fn probe(is_ok: bool, reason: &'static str) -> Response {
    if is_ok {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response()
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

#[cfg(test)]
mod tests {
    use super::{ServeArguments, run_serve};
    use crate::Failure;
    use clap::{Command, FromArgMatches};

    #[test]
    fn serve_rejects_controller_flags_without_controller() {
        let command = <ServeArguments as clap::Args>::augment_args(Command::new("serve"));
        for flags in [
            &["--dry-run"] as &[_],
            &["--no-leader-election"],
            &["--control-listen", "off"],
        ] {
            let words = ["serve"].iter().chain(flags);
            let matches = command.clone().try_get_matches_from(words).unwrap();
            let arguments = ServeArguments::from_arg_matches(&matches).unwrap();
            let Err(Failure::Usage(error)) = run_serve(&arguments) else {
                panic!("{flags:?} is accepted");
            };
            assert!(
                error.to_string().contains("add --with-controller"),
                "{error}"
            );
        }
    }
}

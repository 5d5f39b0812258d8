//! `lockkeeper serve`.

mod arguments;
mod caller_tokens;
mod certificates;
mod otel;
mod preview;
mod reload;
mod startup_message;

pub(crate) use arguments::Arguments;

use crate::configuration::{self, LoadedConfig};
use crate::signals::Signals;
use crate::{Failure, kubeconfig, world_files};
use anyhow::{Context, Error, anyhow, bail};
use axum::Router;
use certificates::CertificateSource;
use kube::Client;
use lockkeeper_api::config::{Config, ListenAddress, OptionalListen, WebhookSettings};
use lockkeeper_certs::tls::{CertificateStatus, ClientVerification, TlsOptions, WatchMode};
use lockkeeper_kube_support::api_client::ApiClients;
use lockkeeper_kube_support::health::{self, Health};
use lockkeeper_kube_support::probe_server::{ProbeServerLimits, serve_on_own_thread};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::reference::entries;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::listener::{self, ConnectionLimits};
use lockkeeper_webhook::live_lookup::{ApiServerLookup, NegativeCache};
use lockkeeper_webhook::load_shedding::{LoadLimits, LoadShedder};
use lockkeeper_webhook::metrics::CertificateProbe;
use lockkeeper_webhook::metrics_server;
use lockkeeper_webhook::{http, stores};
use otel::Traces;
use reload::Reloader;
use startup_message::Addresses;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::net::TcpListener;

/// The folder with the objects to look up, if there is no cluster and no `--world`.
const WORLD_DEFAULT: &str = "examples/world";

/// Set in every pod, where an API server is available.
const IN_CLUSTER_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// The time that a stopping pod is unready and still serves, in seconds: until all clients have stopped
/// sending requests to it.
const SHUTDOWN_DELAY_SECONDS: u64 = 5;

/// The source of the objects that rules look up.
enum ObjectSource {
    Cluster(Box<ApiClients>),
    Folder(PathBuf, Box<Index>),
    Empty,
}

impl ObjectSource {
    fn client(&self) -> Option<&Client> {
        match self {
            // The certificates' owner retries by itself.
            Self::Cluster(clients) => Some(&clients.watches),
            _ => None,
        }
    }
}

/// Runs the server until a signal stops it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    run_with(
        arguments,
        |_| {},
        None::<std::future::Ready<Result<(), Error>>>,
    )
}

/// Runs the server and `beside` in one process. `apply` writes the flags of `beside` into the configuration. If
/// one of them fails, both end.
pub(crate) fn run_with(
    arguments: &Arguments,
    apply: impl FnOnce(&mut Config),
    beside: Option<impl Future<Output = Result<(), Error>>>,
) -> Result<(), Failure> {
    arguments.log_format.start().map_err(Failure::Usage)?;
    let read = configuration::read(arguments.config.as_deref(), &arguments.rules);
    let loaded = read.map_err(Failure::Usage)?;
    let mut config = loaded.config.clone();
    arguments.apply(&mut config);
    apply(&mut config);
    let clients = client_verification(&config.webhook).map_err(Failure::Usage)?;
    caller_tokens::validate(&config.webhook).map_err(Failure::Usage)?;
    arguments.validate().map_err(Failure::Usage)?;
    if arguments.print_config {
        return configuration::print(&config);
    }
    kubeconfig::validate(arguments.kubeconfig.as_deref()).map_err(Failure::Usage)?;
    certificates::validate(arguments, &config)?;
    let traces = Traces::start();
    let runtime = tokio::runtime::Runtime::new()?;
    let served = runtime.block_on(async {
        let served = serve(arguments, &config, loaded, clients, &traces);
        match beside {
            Some(beside) => tokio::try_join!(served, beside).map(|_| ()),
            None => served.await,
        }
    });
    // After the runtime has finished the reviews: their spans are in the queue now.
    traces.shutdown();
    Ok(served?)
}

async fn serve(
    arguments: &Arguments,
    config: &Config,
    loaded: LoadedConfig,
    clients: Option<ClientVerification>,
    traces: &Traces,
) -> Result<(), Error> {
    let source = object_source(arguments).await?;
    let certificates = CertificateSource::from_arguments(arguments, config, source.client())?;
    let options = TlsOptions {
        minimum: config.webhook.minimum_tls,
        http1_only: config.webhook.http1_only,
    };
    let serving = certificates.serving(options, clients.as_ref())?;
    let ports = Ports::bind(&config.webhook).await?;
    // Installed before the startup message, so that a signal right after it is not lost.
    let signals = Signals::install()?;
    let addresses = ports.addresses()?;
    let address = addresses.reviews;
    let rule_count = entries()
        .len()
        .saturating_add(loaded.settings.user_rules.iter().count());
    startup_message::print(&addresses, &certificates, &source, rule_count)?;
    let limits = &config.webhook.limits;
    let app = build_app(loaded.settings.clone(), source, config)?;
    let app = app.with_certificate(certificate_probe(&serving.status()));
    let app = Arc::new(traces.attach(app));
    // These tasks run until the runtime ends.
    if let Some(metrics) = ports.metrics {
        let limits = ProbeServerLimits::from(&limits.metrics);
        tokio::spawn(metrics_server::serve(metrics, Arc::clone(&app), limits));
    }
    if arguments.config.is_some() || !arguments.rules.is_empty() {
        let (path, folders) = (arguments.config.as_deref(), &arguments.rules);
        let reloader = Reloader::new(path, folders, loaded, Arc::clone(&app));
        tokio::spawn(reloader.watch());
    }
    tokio::spawn(serving.watch_with(WatchMode::from(&config.webhook)));
    let health = Arc::new(Health::unchecked());
    let self_check = certificates.start_renewal(&serving, &health, address, &config.webhook)?;
    tokio::spawn(self_check.run_periodically(Arc::clone(&health)));
    let stopped = health::drain_delay(Arc::clone(&health), signals.wait(), shutdown_delay(config));
    let load = Arc::new(LoadShedder::new(LoadLimits::from(limits)));
    if let Some(probes) = ports.probes {
        let router = http::probe_router(Arc::clone(&app), Arc::clone(&health));
        serve_on_own_thread(probes, router, ProbeServerLimits::for_probes())?;
    }
    let router = review_router(arguments, app, load, health);
    let router = serving.require_client_cert(router);
    let limits = ConnectionLimits::from(&config.webhook);
    let drained = listener::serve(ports.reviews, serving.config(), router, limits, stopped).await;
    if drained.connections_cut > 0 {
        tracing::warn!(
            connections = drained.connections_cut,
            "drain timeout: closed connections with open requests"
        );
    }
    tracing::info!("stopped");
    Ok(())
}

/// The router of the port for reviews.
fn review_router(
    arguments: &Arguments,
    app: Arc<AppState>,
    load: Arc<LoadShedder>,
    health: Arc<Health>,
) -> Router {
    let router = http::router_with(Arc::clone(&app), Arc::clone(&load), Arc::clone(&health));
    if arguments.noop {
        return router.merge(http::noop_router(app, load, health));
    }
    router
}

/// The open ports; `None` for those that are off.
struct Ports {
    reviews: TcpListener,
    metrics: Option<TcpListener>,
    probes: Option<TcpListener>,
}

impl Ports {
    async fn bind(settings: &WebhookSettings) -> Result<Self, Error> {
        let (metrics, probes) = (&settings.metrics_listen, &settings.probe_listen);
        Ok(Self {
            reviews: bind(&settings.listen, "set another --listen").await?,
            metrics: bind_optional(metrics, "set another --metrics-listen, or off").await?,
            probes: bind_optional(probes, "set another --probe-listen, or off").await?,
        })
    }

    fn addresses(&self) -> Result<Addresses, Error> {
        let address = |port: &Option<TcpListener>| {
            let address = port.as_ref().map(TcpListener::local_addr);
            address.transpose()
        };
        Ok(Addresses {
            reviews: self.reviews.local_addr()?,
            metrics: address(&self.metrics)?,
            probes: address(&self.probes)?,
        })
    }
}

async fn bind_optional(
    listen: &OptionalListen,
    remedy: &str,
) -> Result<Option<TcpListener>, Error> {
    match listen {
        OptionalListen::At(address) => Ok(Some(bind(address, remedy).await?)),
        OptionalListen::Off => Ok(None),
    }
}

async fn bind(address: &ListenAddress, remedy: &str) -> Result<TcpListener, Error> {
    TcpListener::bind(address.as_str())
        .await
        .with_context(|| format!("cannot listen on {address}; is another process there? {remedy}"))
}

/// The values of the serving certificate's metrics.
fn certificate_probe(status: &CertificateStatus) -> CertificateProbe {
    let read = |number: fn(&CertificateStatus) -> u64| {
        let status = status.clone();
        Box::new(move || i64::try_from(number(&status)).unwrap_or(i64::MAX))
    };
    CertificateProbe {
        not_after_seconds: read(CertificateStatus::not_after),
        reloads: read(CertificateStatus::reloads),
        failures: read(CertificateStatus::failures),
        rejected_clients: read(CertificateStatus::rejected_clients),
    }
}

/// The time that the server is unready before it stops accepting connections.
fn shutdown_delay(config: &Config) -> Duration {
    let is_pod = env::var_os(IN_CLUSTER_VARIABLE).is_some();
    // Outside a pod, no client uses the readiness.
    let usual = if is_pod { SHUTDOWN_DELAY_SECONDS } else { 0 };
    Duration::from_secs(config.webhook.shutdown_delay_seconds.unwrap_or(usual))
}

fn build_app(settings: Settings, source: ObjectSource, config: &Config) -> Result<AppState, Error> {
    let webhook = &config.webhook;
    let body_limit_bytes = usize::try_from(webhook.body_limit_bytes)?;
    Ok(match source {
        ObjectSource::Cluster(clients) => {
            let index = Arc::new(RwLock::new(Index::default()));
            let lag_max = webhook.limits.stores_lag_max_milliseconds.milliseconds();
            let readiness =
                stores::start_watches(&clients, &index, lag_max, &webhook.foreign_kinds);
            let preview = webhook.preview.then(|| preview::start(&clients, config));
            let preview = preview.transpose()?;
            let tokens = caller_tokens::start(&clients, webhook);
            let live = Box::new(ApiServerLookup::new(clients.requests));
            let app = AppState::connected(settings, index, readiness, live, body_limit_bytes)
                .with_negative_cache(NegativeCache::from(&webhook.limits));
            let app = match preview {
                Some(preview) => app.with_preview(preview),
                None => app,
            };
            match tokens {
                Some(tokens) => app.with_caller_tokens(tokens),
                None => app,
            }
        }
        _ if webhook.token_audience.is_some() => bail!(
            "webhook.tokenAudience needs an API server, which has the keys of the tokens; set --kubeconfig, or leave it out"
        ),
        ObjectSource::Folder(_, index) => AppState::offline(settings, *index, body_limit_bytes),
        ObjectSource::Empty => AppState::offline(settings, Index::default(), body_limit_bytes),
    })
}

async fn object_source(arguments: &Arguments) -> Result<ObjectSource, Error> {
    if let Some(path) = &arguments.kubeconfig {
        let clients = kubeconfig::clients(Some(path)).await?;
        return Ok(ObjectSource::Cluster(Box::new(clients)));
    }
    let folder = match &arguments.world {
        Some(folder) => folder.clone(),
        // Not the file in the home directory: without any setting the examples are served, without a cluster.
        None if kubeconfig::is_in_environment() => {
            return Ok(ObjectSource::Cluster(Box::new(
                kubeconfig::clients(None).await?,
            )));
        }
        None if env::var_os(IN_CLUSTER_VARIABLE).is_some() => {
            let config =
                kube::Config::incluster().context("cannot use the pod's service account")?;
            return Ok(ObjectSource::Cluster(Box::new(ApiClients::new(config)?)));
        }
        None if Path::new(WORLD_DEFAULT).is_dir() => PathBuf::from(WORLD_DEFAULT),
        None => return Ok(ObjectSource::Empty),
    };
    let index = world_files::read_folder(&folder)?;
    Ok(ObjectSource::Folder(folder, Box::new(index)))
}

/// The clients that are accepted; `None` if no client certificate is required.
fn client_verification(settings: &WebhookSettings) -> Result<Option<ClientVerification>, Error> {
    let names = settings.client_names.clone();
    match &settings.client_ca {
        Some(ca) => Ok(Some(ClientVerification {
            ca: PathBuf::from(ca),
            names,
        })),
        None if names.is_empty() => Ok(None),
        None => Err(anyhow!(
            "client names need the CA of their certificates; set --client-ca"
        )),
    }
}

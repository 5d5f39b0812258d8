//! `lockkeeper serve`.

mod arguments;
mod certificates;
mod greeting;
mod reload;
mod traces;

pub(crate) use arguments::Arguments;

use crate::configuration::{self, Loaded};
use crate::signals::Signals;
use crate::{Failure, kubeconfig, world};
use anyhow::{Context, Error, anyhow};
use certificates::Certificates;
use kube::Client;
use lockkeeper_api::config::{Config, ListenAddress, OptionalListen, WebhookSettings};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app::App;
use lockkeeper_webhook::limits::{Bounds, Load};
use lockkeeper_webhook::listener::{self, Limits};
use lockkeeper_webhook::live::{ApiServer, Memory};
use lockkeeper_webhook::metrics::{self, CertificateProbe, PortLimits};
use lockkeeper_webhook::readiness::{self, Health};
use lockkeeper_webhook::tls::{CertificateStatus, ClientVerification, TlsOptions, Watching};
use lockkeeper_webhook::{http, stores};
use reload::Reloader;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::net::TcpListener;
use traces::Traces;

/// The folder whose objects are the world when there is no cluster.
const WORLD_DEFAULT: &str = "examples/world";

/// Set in every pod: there is an API server to ask.
const IN_CLUSTER_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// How long a pod that is told to stop is unready and serves on, in seconds: until all who send
/// requests have heard of it. Outside a pod nobody asks, and it is nothing.
const SHUTDOWN_DELAY_SECONDS: u64 = 5;

/// Where the world comes from.
enum Source {
    Cluster(Client),
    Folder(PathBuf, Box<Index>),
    Nothing,
}

impl Source {
    fn client(&self) -> Option<&Client> {
        match self {
            Self::Cluster(client) => Some(client),
            _ => None,
        }
    }
}

/// Runs the server until it is told to stop.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    run_beside(
        arguments,
        |_| {},
        None::<std::future::Ready<Result<(), Error>>>,
    )
}

/// The same, and something else in the same process, whose flags `apply` writes into the configuration. If
/// one of them fails, both end.
pub(crate) fn run_beside(
    arguments: &Arguments,
    apply: impl FnOnce(&mut Config),
    beside: Option<impl Future<Output = Result<(), Error>>>,
) -> Result<(), Failure> {
    arguments.log_format.start();
    let read = configuration::read(arguments.config.as_deref(), &arguments.rules);
    let loaded = read.map_err(Failure::Usage)?;
    let mut config = loaded.config.clone();
    arguments.apply(&mut config);
    apply(&mut config);
    let clients = clients(&config.webhook).map_err(Failure::Usage)?;
    arguments.check().map_err(Failure::Usage)?;
    if arguments.print_config {
        return configuration::print(&config);
    }
    certificates::check(arguments, &config)?;
    let traces = Traces::start();
    let runtime = tokio::runtime::Runtime::new()?;
    let served = runtime.block_on(async {
        let served = serve(arguments, &config, loaded, clients, &traces);
        match beside {
            Some(beside) => tokio::try_join!(served, beside).map(|_| ()),
            None => served.await,
        }
    });
    traces.finish();
    Ok(served?)
}

async fn serve(
    arguments: &Arguments,
    config: &Config,
    loaded: Loaded,
    clients: Option<ClientVerification>,
    traces: &Traces,
) -> Result<(), Error> {
    let source = source(arguments).await?;
    let certificates = Certificates::of(arguments, config, source.client())?;
    let options = TlsOptions {
        minimum: config.webhook.minimum_tls,
        http1_only: config.webhook.http1_only,
    };
    let serving = certificates.serving(options, clients.as_ref())?;
    let tcp = bind(&config.webhook.listen, "--listen takes another address").await?;
    let metrics = match &config.webhook.metrics_listen {
        OptionalListen::At(address) => {
            Some(bind(address, "--metrics-listen takes another address, or off").await?)
        }
        OptionalListen::Off => None,
    };
    // Signals are taken from here on, so that none is lost between the greeting and the first wait.
    let signals = Signals::take()?;
    let address = tcp.local_addr()?;
    let metrics_address = metrics.as_ref().map(TcpListener::local_addr).transpose()?;
    greeting::print(address, metrics_address, &certificates, &source)?;
    let limits = &config.webhook.limits;
    let app = app(loaded.settings.clone(), source, &config.webhook)?;
    let app = app.with_certificate(certificate_probe(&serving.status()));
    let app = Arc::new(traces.follow(app));
    // These go on until the runtime ends.
    if let Some(metrics) = metrics {
        let limits = PortLimits::from(&limits.metrics);
        tokio::spawn(metrics::serve(metrics, Arc::clone(&app), limits));
    }
    if arguments.config.is_some() || !arguments.rules.is_empty() {
        let (path, folders) = (arguments.config.as_deref(), &arguments.rules);
        let reloader = Reloader::new(path, folders, loaded, Arc::clone(&app));
        tokio::spawn(reloader.watch());
    }
    tokio::spawn(serving.watch_by(Watching::from(&config.webhook)));
    let health = Arc::new(Health::unchecked());
    let self_check = certificates.keep(&serving, &health, address, &config.webhook)?;
    tokio::spawn(self_check.watch(Arc::clone(&health)));
    let stopped = readiness::farewell(Arc::clone(&health), signals.first(), shutdown_delay(config));
    let load = Arc::new(Load::new(Bounds::from(limits)));
    let router = http::router_with(app, load, health);
    let router = serving.guard(router);
    let limits = Limits::from(&config.webhook);
    let drained = listener::serve(tcp, serving.config(), router, limits, stopped).await;
    if drained.cut > 0 {
        tracing::warn!(connections = drained.cut, "cut off after the drain timeout");
    }
    tracing::info!("stopped");
    Ok(())
}

async fn bind(address: &ListenAddress, remedy: &str) -> Result<TcpListener, Error> {
    TcpListener::bind(address.as_str())
        .await
        .with_context(|| format!("cannot listen on {address}; is another process there? {remedy}"))
}

/// What metrics say of the serving certificate.
fn certificate_probe(status: &CertificateStatus) -> CertificateProbe {
    let read = |number: fn(&CertificateStatus) -> u64| {
        let status = status.clone();
        Box::new(move || i64::try_from(number(&status)).unwrap_or(i64::MAX))
    };
    CertificateProbe {
        not_after_seconds: read(CertificateStatus::not_after),
        applied: read(CertificateStatus::reloads),
        refused: read(CertificateStatus::failures),
        refused_clients: read(CertificateStatus::refused_clients),
    }
}

/// How long the server is unready before it accepts no more.
fn shutdown_delay(config: &Config) -> Duration {
    let is_pod = env::var_os(IN_CLUSTER_VARIABLE).is_some();
    let usual = if is_pod { SHUTDOWN_DELAY_SECONDS } else { 0 };
    Duration::from_secs(config.webhook.shutdown_delay_seconds.unwrap_or(usual))
}

fn app(settings: Settings, source: Source, webhook: &WebhookSettings) -> Result<App, Error> {
    let body_limit_bytes = usize::try_from(webhook.body_limit_bytes)?;
    Ok(match source {
        Source::Cluster(client) => {
            let index = Arc::new(RwLock::new(Index::default()));
            let lag_max = webhook.limits.stores_lag_max_milliseconds.milliseconds();
            let readiness = stores::follow(&client, &index, lag_max, &webhook.foreign_kinds);
            let live = Box::new(ApiServer::new(client));
            App::connected(settings, index, readiness, live, body_limit_bytes)
                .remembering(Memory::from(&webhook.limits))
        }
        Source::Folder(_, index) => App::offline(settings, *index, body_limit_bytes),
        Source::Nothing => App::offline(settings, Index::default(), body_limit_bytes),
    })
}

async fn source(arguments: &Arguments) -> Result<Source, Error> {
    if let Some(path) = &arguments.kubeconfig {
        return Ok(Source::Cluster(kubeconfig::client(path).await?));
    }
    let folder = match &arguments.world {
        Some(folder) => folder.clone(),
        None if env::var_os(IN_CLUSTER_VARIABLE).is_some() => {
            let config =
                kube::Config::incluster().context("cannot use the pod's service account")?;
            return Ok(Source::Cluster(Client::try_from(config)?));
        }
        None if Path::new(WORLD_DEFAULT).is_dir() => PathBuf::from(WORLD_DEFAULT),
        None => return Ok(Source::Nothing),
    };
    let index = world::read(&folder)?;
    Ok(Source::Folder(folder, Box::new(index)))
}

/// Which clients' certificates are accepted, if they are asked for one.
fn clients(settings: &WebhookSettings) -> Result<Option<ClientVerification>, Error> {
    let names = settings.client_names.clone();
    match &settings.client_ca {
        Some(ca) => Ok(Some(ClientVerification {
            ca: PathBuf::from(ca),
            names,
        })),
        None if names.is_empty() => Ok(None),
        None => Err(anyhow!(
            "names of clients are given, but no CA that vouches for them; give --client-ca"
        )),
    }
}

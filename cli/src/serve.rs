//! `lockkeeper serve`.

mod arguments;
mod greeting;

pub(crate) use arguments::Arguments;

use crate::{Failure, configuration, world};
use anyhow::{Context, Error, anyhow};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lockkeeper_api::config::Config;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app::App;
use lockkeeper_webhook::bootstrap::{self, Files};
use lockkeeper_webhook::listener::{self, Limits};
use lockkeeper_webhook::live::ApiServer;
use lockkeeper_webhook::tls::{self, TlsOptions};
use lockkeeper_webhook::{http, stores};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// The folder whose objects are the world when there is no cluster.
const WORLD_DEFAULT: &str = "examples/world";

/// Set in every pod: there is an API server to ask.
const IN_CLUSTER_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// Where the world comes from.
enum Source {
    Cluster(Client),
    Folder(PathBuf, Box<Index>),
    Nothing,
}

/// Runs the server until it is told to stop.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.log();
    let mut config = configuration::read(arguments.config.as_deref()).map_err(Failure::Usage)?;
    arguments.apply(&mut config);
    let settings = registry::settings(&config)
        .with_context(|| file(arguments.config.as_deref()))
        .map_err(Failure::Usage)?;
    let runtime = tokio::runtime::Runtime::new()?;
    Ok(runtime.block_on(serve(arguments, &config, settings))?)
}

/// How a message names the configuration.
fn file(path: Option<&Path>) -> String {
    path.map_or_else(
        || "configuration".to_owned(),
        |path| path.display().to_string(),
    )
}

async fn serve(arguments: &Arguments, config: &Config, settings: Settings) -> Result<(), Error> {
    let source = source(arguments).await?;
    let files = certificate(arguments)?;
    let options = TlsOptions {
        minimum: config.webhook.minimum_tls,
        http1_only: config.webhook.http1_only,
    };
    let tls = tls::server_config(&files.certificate, &files.key, &options)?;
    let listen = &config.webhook.listen;
    let tcp = TcpListener::bind(listen).await.with_context(|| {
        format!(
            "cannot listen on {listen}; is another process there? --listen takes another address"
        )
    })?;
    // Signals are taken from here on, so that none is lost between the greeting and the first wait.
    let stopped = stopped()?;
    greeting::print(tcp.local_addr()?, &files, &source)?;
    let app = app(
        settings,
        source,
        usize::try_from(config.webhook.body_limit_bytes)?,
    );
    let limits = Limits {
        drain_timeout: Duration::from_secs(config.webhook.drain_seconds),
        ..Limits::default()
    };
    let drained = listener::serve(tcp, tls, http::router(Arc::new(app)), limits, stopped).await;
    if drained.cut > 0 {
        tracing::warn!(connections = drained.cut, "cut off after the drain timeout");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Resolves at the first SIGINT or SIGTERM.
fn stopped() -> Result<impl Future<Output = ()>, Error> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping: answering what was accepted");
    })
}

fn app(settings: Settings, source: Source, body_limit_bytes: usize) -> App {
    match source {
        Source::Cluster(client) => {
            let index = Arc::new(RwLock::new(Index::default()));
            let readiness = stores::follow(&client, &index);
            let live = Box::new(ApiServer::new(client));
            App::connected(settings, index, readiness, live, body_limit_bytes)
        }
        Source::Folder(_, index) => App::offline(settings, *index, body_limit_bytes),
        Source::Nothing => App::offline(settings, Index::default(), body_limit_bytes),
    }
}

async fn source(arguments: &Arguments) -> Result<Source, Error> {
    if let Some(path) = &arguments.kubeconfig {
        let shown = path.display();
        let read = Kubeconfig::read_from(path).with_context(|| format!("cannot use {shown}"))?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options).await?;
        return Ok(Source::Cluster(Client::try_from(config)?));
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

/// The certificate that was given, or one of our own making.
fn certificate(arguments: &Arguments) -> Result<Files, Error> {
    if let (Some(certificate), Some(key)) = (&arguments.tls_certificate, &arguments.tls_key) {
        return Ok(Files {
            ca: certificate.clone(),
            certificate: certificate.clone(),
            key: key.clone(),
        });
    }
    let directory = match &arguments.tls_dir {
        Some(directory) => directory.clone(),
        None => state_directory()?.join("lockkeeper/tls"),
    };
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    names.extend(arguments.tls_name.iter().cloned());
    Ok(bootstrap::ensure(&directory, &names, SystemTime::now())?)
}

/// Where a user's programs keep what they make (XDG Base Directory Specification).
fn state_directory() -> Result<PathBuf, Error> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| anyhow!("neither XDG_STATE_HOME nor HOME is set; give --tls-dir"))
}

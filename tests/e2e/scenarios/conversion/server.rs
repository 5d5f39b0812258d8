//! A conversion server for the sample kind: the webhook as a library, as another team would use it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use lockkeeper_certs::self_signed;
use lockkeeper_certs::tls::{TlsOptions, server_config};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router;
use lockkeeper_webhook::listener::{ConnectionLimits, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::reservation;

/// In bytes.
const BODY_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// A server that runs until it is stopped or dropped.
pub struct ConversionServer {
    pub address: SocketAddr,
    pub ca: PathBuf,
    app: Arc<AppState>,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    folder: PathBuf,
}

impl ConversionServer {
    /// Starts a server with its certificate in a folder, on a free port.
    #[track_caller]
    pub fn start(folder: PathBuf) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), folder)
    }

    #[track_caller]
    fn start_at(address: SocketAddr, folder: PathBuf) -> Self {
        let names = ["127.0.0.1".to_owned()];
        let files = self_signed::ensure(&folder, &names, SystemTime::now()).unwrap();
        let options = TlsOptions::default();
        let tls = server_config(&files.certificate, &files.key, &options).unwrap();
        let app = AppState::offline(Settings::default(), Index::default(), BODY_LIMIT_BYTES);
        let app = Arc::new(app.with_converters(reservation::converters()));
        let runtime = Runtime::new().unwrap();
        let tcp = runtime.block_on(TcpListener::bind(address)).unwrap();
        let address = tcp.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let until = async {
            // Dropping the server stops it as well.
            let _ = stopped.await;
        };
        let routes = router(Arc::clone(&app));
        runtime.spawn(serve(tcp, tls, routes, ConnectionLimits::default(), until));
        Self {
            address,
            ca: files.ca,
            app,
            runtime,
            stop: Some(stop),
            folder,
        }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The number of conversion reviews with this result.
    #[track_caller]
    pub fn count(&self, result: &str) -> u64 {
        let text = self.app.metrics().prometheus();
        let line = format!("lockkeeper_webhook_conversions_total{{result={result:?}}} ");
        let found = text.lines().find_map(|it| it.strip_prefix(&line));
        found.unwrap().parse().unwrap()
    }

    /// Stops the server; later connections fail.
    pub fn stop(mut self) -> StoppedServer {
        drop(self.stop.take());
        self.runtime.shutdown_background();
        StoppedServer {
            address: self.address,
            folder: self.folder,
        }
    }
}

/// A stopped server.
pub struct StoppedServer {
    address: SocketAddr,
    folder: PathBuf,
}

impl StoppedServer {
    /// Starts it again on the same port with the same certificate.
    #[track_caller]
    pub fn start(self) -> ConversionServer {
        ConversionServer::start_at(self.address, self.folder)
    }
}

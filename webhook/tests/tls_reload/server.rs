//! A server whose certificate files change, and its clients.

use std::fs;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use lockkeeper_api::config::MinimumTls;
use lockkeeper_certs::tls::{
    CertificateStatus, ClientVerification, ServerTls, TlsOptions, WatchMode,
};
use lockkeeper_testkit::{CertPair, TestCa};
use lockkeeper_webhook::listener::{ConnectionLimits, serve};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

/// Much longer than any step takes; a test that waits longer fails.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Only events: the poll would be too late for the test.
pub const EVENTS: WatchMode = WatchMode {
    events: true,
    poll: Duration::from_hours(1),
};

/// Only the poll.
pub const POLLING: WatchMode = WatchMode {
    events: false,
    poll: Duration::from_millis(10),
};

pub const CERTIFICATE: &str = "tls.crt";
pub const KEY: &str = "tls.key";
pub const CA: &str = "ca.crt";

/// A running server with files that tests change.
pub struct Server {
    pub authority: TestCa,
    pub directory: TempDir,
    pub address: SocketAddr,
    pub status: CertificateStatus,
}

impl Server {
    /// Starts a server; also returns its certificate.
    pub async fn start(watching: WatchMode) -> (Self, CertPair) {
        let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
        let pair = authority.server();
        pair.write(directory.path());
        (
            Self::start_on(authority, directory, watching, None).await,
            pair,
        )
    }

    /// Starts a server that verifies clients.
    pub async fn start_with_client_auth(
        clients: &TestCa,
        names: &[&str],
        watching: WatchMode,
    ) -> Self {
        let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
        authority.server().write(directory.path());
        fs::write(directory.path().join(CA), clients.pem()).unwrap();
        let client = ClientVerification {
            ca: directory.path().join(CA),
            names: names.iter().map(ToString::to_string).collect(),
        };
        Self::start_on(authority, directory, watching, Some(client)).await
    }

    pub async fn start_on(
        authority: TestCa,
        directory: TempDir,
        watching: WatchMode,
        client: Option<ClientVerification>,
    ) -> Self {
        let file = |name| directory.path().join(name);
        let options = TlsOptions {
            minimum: MinimumTls::V1_2,
            http1_only: true,
        };
        let (certificate, key) = (file(CERTIFICATE), file(KEY));
        let serving = ServerTls::load(&certificate, &key, &options, client.as_ref()).unwrap();
        let router = Router::new()
            .route("/validate", get(async || "reviewed"))
            .route("/mutate", get(async || "changed"))
            .route("/livez", get(async || "ok"))
            .route("/readyz", get(async || "ok"));
        let router = serving.require_client_cert(router);
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let status = serving.status();
        tokio::spawn(serving.watch_with(watching));
        tokio::spawn(async move {
            serve(
                tcp,
                serving.config(),
                router,
                ConnectionLimits::default(),
                pending(),
            )
            .await
        });
        Self {
            authority,
            directory,
            address,
            status,
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns a client that trusts the server's CA, with this certificate.
    pub fn client(
        &self,
        version: &'static SupportedProtocolVersion,
        shows: Option<&CertPair>,
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.authority.pem().as_bytes()).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match shows {
            None => client.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                let chain = vec![pair.der.clone()];
                client.with_client_auth_cert(chain, key).unwrap()
            }
        })
    }

    pub async fn connect(&self, client: &Arc<ClientConfig>) -> std::io::Result<Connection> {
        let tcp = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::clone(client))
            .connect(name, tcp)
            .await?;
        let served = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Ok(Connection {
            sender,
            served: served.into_owned(),
        })
    }

    /// Connects a client without a certificate.
    pub async fn open(&self) -> Connection {
        self.connect(&self.client(&TLS13, None)).await.unwrap()
    }

    /// Returns the certificate that a new connection gets.
    pub async fn served_certificate(&self) -> CertificateDer<'static> {
        let mut connection = self.open().await;
        assert_eq!(connection.get("/livez").await, Some(StatusCode::OK));
        connection.served
    }

    pub async fn until_served(&self, pair: &CertPair) {
        until("the new certificate is served", async || {
            self.served_certificate().await == pair.der
        })
        .await;
    }

    /// Damages the files, and waits until a reload has failed.
    pub async fn assert_failure_after(&self, change: impl FnOnce()) {
        let before = self.status.failures();
        change();
        until("the files are found unusable", async || {
            self.status.failures() > before
        })
        .await;
    }

    pub async fn until_reloads(&self, reloads: u64) {
        until("the new files are taken over", async || {
            self.status.reloads() == reloads
        })
        .await;
    }

    /// Returns the response to a client with this certificate; `None` if the
    /// connection is rejected.
    pub async fn request_status(
        &self,
        client: &Arc<ClientConfig>,
        path: &str,
    ) -> Option<StatusCode> {
        // With TLS 1.3 the client finishes before the server has verified its certificate.
        let mut connection = self.connect(client).await.ok()?;
        connection.get(path).await
    }
}

/// A client's open connection, and the certificate of the server.
pub struct Connection {
    sender: SendRequest<Body>,
    pub served: CertificateDer<'static>,
}

impl Connection {
    pub async fn get(&mut self, path: &str) -> Option<StatusCode> {
        self.sender.ready().await.ok()?;
        let request = Request::get(path).header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        let answer = self.sender.send_request(request).await.ok()?;
        Some(answer.status())
    }
}

/// Waits until a condition is true.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_MAX, wait).await;
    waited.unwrap_or_else(|_| panic!("not in time: {what}"));
}

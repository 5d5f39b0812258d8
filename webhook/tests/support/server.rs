//! The listener behind a real socket, with a router that signals the progress of requests.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::body::Body;
use axum::routing::{any, get};
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lockkeeper_certs::self_signed::{self, CertificatePaths};
use lockkeeper_certs::tls::{TlsOptions, server_config};
use lockkeeper_webhook::listener::{ConnectionLimits, DrainReport, serve};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub const BOTH: &[&str] = &["h2", "http/1.1"];
pub const H2: &[&str] = &["h2"];
pub const HTTP1: &[&str] = &["http/1.1"];

/// Signals of the handlers of `/wait` and `/never`, and the signal that `/wait` waits for.
pub struct Gate {
    pub entered: Semaphore,
    pub open: Notify,
}

impl Gate {
    /// Waits until that many more requests have reached their handlers.
    pub async fn wait_for_requests(&self, requests: u32) {
        self.entered.acquire_many(requests).await.unwrap().forget();
    }
}

/// A running server with certificates of its own.
pub struct Server {
    pub address: SocketAddr,
    pub gate: Arc<Gate>,
    pub files: CertificatePaths,
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<DrainReport>,
    _directory: TempDir,
}

impl Server {
    pub async fn start(options: TlsOptions, limits: ConnectionLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let names = ["localhost".to_owned()];
        let private = directory.path().join("tls");
        let files = self_signed::ensure(&private, &names, SystemTime::now()).unwrap();
        let tls = server_config(&files.certificate, &files.key, &options).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let gate = Arc::new(Gate {
            entered: Semaphore::new(0),
            open: Notify::new(),
        });
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap() };
        let task = tokio::spawn(serve(tcp, tls, router(&gate), limits, stopped));
        Self {
            address,
            gate,
            files,
            stop,
            task,
            _directory: directory,
        }
    }

    pub async fn with_limits(limits: ConnectionLimits) -> Self {
        Self::start(TlsOptions::default(), limits).await
    }

    pub async fn default() -> Self {
        Self::with_limits(ConnectionLimits::default()).await
    }

    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub async fn tls(&self, client: Client) -> std::io::Result<TlsStream<TcpStream>> {
        let config = Arc::new(client.config(&self.files));
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(config)
            .connect(name, self.tcp().await)
            .await
    }

    /// Connects with the HTTP version that the handshake negotiates.
    pub async fn connect(&self, alpn: &'static [&'static str]) -> Sender {
        let stream = self.tls(Client::new(alpn)).await.unwrap();
        Sender::connect(stream).await
    }

    /// Checks that the server serves a new client.
    pub async fn assert_serves(&self) {
        let answer = self.connect(BOTH).await.get("/").await.unwrap();
        assert_eq!(answer, (Version::HTTP_2, StatusCode::OK, "fine".to_owned()));
    }

    /// Stops the server, and waits until it accepts no more connections.
    pub async fn stop(self) -> (Arc<Gate>, JoinHandle<DrainReport>) {
        self.stop.send(()).unwrap();
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        (self.gate, self.task)
    }
}

fn router(gate: &Arc<Gate>) -> Router {
    let (waiting, stuck) = (Arc::clone(gate), Arc::clone(gate));
    let wait = || async move {
        waiting.entered.add_permits(1);
        waiting.open.notified().await;
        "late"
    };
    let never = |body: Body| async move {
        stuck.entered.add_permits(1);
        // The body is never read.
        pending::<&str>().await;
        drop(body);
    };
    Router::new()
        .route("/", get(async || "fine"))
        .route("/wait", get(wait))
        .route("/never", any(never))
        .route("/panic", get(async || -> &str { panic!("on purpose") }))
}

/// The TLS versions and protocols of a client.
pub struct Client {
    pub alpn: &'static [&'static str],
    pub version: &'static rustls::SupportedProtocolVersion,
    pub provider: CryptoProvider,
}

impl Client {
    pub fn new(alpn: &'static [&'static str]) -> Self {
        Self {
            alpn,
            version: &TLS13,
            provider: aws_lc_rs::default_provider(),
        }
    }

    pub fn config(self, files: &CertificatePaths) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(&files.ca).unwrap())
            .unwrap();
        let mut config = ClientConfig::builder_with_provider(self.provider.into())
            .with_protocol_versions(&[self.version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = self.alpn.iter().map(|&name| name.into()).collect();
        config
    }
}

/// An HTTP connection of either version, and the task that drives it.
pub enum Sender {
    Http1(http1::SendRequest<Body>, JoinHandle<hyper::Result<()>>),
    Http2(http2::SendRequest<Body>, JoinHandle<hyper::Result<()>>),
}

impl Sender {
    pub async fn connect(stream: TlsStream<TcpStream>) -> Self {
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = TokioIo::new(stream);
        if is_h2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
            Self::Http2(sender, tokio::spawn(connection))
        } else {
            let (sender, connection) = http1::handshake(io).await.unwrap();
            Self::Http1(sender, tokio::spawn(connection))
        }
    }

    pub async fn get(&mut self, path: &str) -> hyper::Result<(Version, StatusCode, String)> {
        let request = Request::get(format!("https://localhost{path}"))
            .header("host", "localhost")
            .body(Body::empty())
            .unwrap();
        let answer: Response<_> = match self {
            Self::Http1(sender, _) => sender.send_request(request).await?,
            Self::Http2(sender, _) => sender.send_request(request).await?,
        };
        let (version, status) = (answer.version(), answer.status());
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((version, status, String::from_utf8(body.into()).unwrap()))
    }

    /// Waits until the server closes the connection.
    pub async fn closed(self) {
        match self {
            Self::Http1(sender, connection) => {
                connection.await.unwrap().unwrap();
                drop(sender);
            }
            Self::Http2(sender, connection) => {
                connection.await.unwrap().unwrap();
                drop(sender);
            }
        }
    }
}

/// Waits until the server closes, with or without an error.
pub async fn closed(mut stream: impl tokio::io::AsyncRead + Unpin) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

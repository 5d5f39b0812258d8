//! The whole webhook behind a real socket, and its clients.

use axum::body::Body;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lockkeeper_certs::self_signed::{self, CertificatePaths};
use lockkeeper_certs::tls::{TlsOptions, server_config};
use lockkeeper_kube_support::health::{Health, drain_delay};
use lockkeeper_policies::cluster_view::PriorityClassFacts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router_with;
use lockkeeper_webhook::listener::{ConnectionLimits, DrainReport, serve};
use lockkeeper_webhook::live_lookup::ObjectLookup;
use lockkeeper_webhook::load_shedding::{LoadLimits, LoadShedder};
use lockkeeper_webhook::stores::StoreReadiness;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub const H2: &str = "h2";
pub const HTTP1: &str = "http/1.1";

const BODY_LIMIT_BYTES: usize = 1024 * 1024;

/// A running webhook with certificates of its own.
pub struct Webhook {
    pub address: SocketAddr,
    pub files: CertificatePaths,
    pub load: Arc<LoadShedder>,
    pub health: Arc<Health>,
    pub index: Arc<RwLock<Index>>,
    /// Stops the webhook.
    pub stop: Arc<Notify>,
    pub task: JoinHandle<DrainReport>,
    _directory: TempDir,
}

/// The settings of a webhook.
pub struct WebhookOptions {
    pub bounds: LoadLimits,
    pub source: Option<Box<dyn ObjectLookup>>,
    pub health: Health,
    pub delay: Duration,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            bounds: LoadLimits::default(),
            source: None,
            health: Health::default(),
            delay: Duration::ZERO,
        }
    }
}

impl Webhook {
    pub async fn start(plan: WebhookOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let names = ["localhost".to_owned()];
        let private = directory.path().join("tls");
        let files = self_signed::ensure(&private, &names, SystemTime::now()).unwrap();
        let options = TlsOptions::default();
        let tls = server_config(&files.certificate, &files.key, &options).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();

        let mut index = Index::default();
        index.mark_complete(IndexedKind::PriorityClass);
        let index = Arc::new(RwLock::new(index));
        let (settings, ready) = (Settings::default(), StoreReadiness::always());
        let source = plan.source.unwrap_or_else(|| Box::new(EmptyLookup));
        let app = AppState::connected(
            settings,
            Arc::clone(&index),
            ready,
            source,
            BODY_LIMIT_BYTES,
        );
        let (load, health) = (
            Arc::new(LoadShedder::new(plan.bounds)),
            Arc::new(plan.health),
        );
        let router = router_with(Arc::new(app), Arc::clone(&load), Arc::clone(&health));
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop).notified_owned();
        let shutdown = drain_delay(Arc::clone(&health), stopped, plan.delay);
        let task = tokio::spawn(serve(
            tcp,
            tls,
            router,
            ConnectionLimits::default(),
            shutdown,
        ));
        Self {
            address,
            files,
            load,
            health,
            index,
            stop,
            task,
            _directory: directory,
        }
    }

    pub async fn with_load_limits(bounds: LoadLimits) -> Self {
        let plan = WebhookOptions {
            bounds,
            ..WebhookOptions::default()
        };
        Self::start(plan).await
    }

    pub async fn tls(&self, alpn: &str) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(&self.files.ca).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.into()];
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, tcp).await.unwrap()
    }

    /// Sends one request on a new connection.
    pub async fn send(&self, alpn: &str, request: Request<Body>) -> hyper::Result<HttpAnswer> {
        Self::send_over(alpn, self.tls(alpn).await, request).await
    }

    pub async fn send_over(
        alpn: &str,
        stream: TlsStream<TcpStream>,
        request: Request<Body>,
    ) -> hyper::Result<HttpAnswer> {
        let io = TokioIo::new(stream);
        let answer = if alpn == H2 {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(connection);
            sender.send_request(request).await?
        } else {
            let (mut sender, connection) = http1::handshake(io).await?;
            tokio::spawn(connection);
            sender.send_request(request).await?
        };
        let (head, body) = answer.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(HttpAnswer {
            status: head.status,
            headers: head.headers,
            body: String::from_utf8(body.into()).unwrap(),
        })
    }

    pub async fn get(&self, alpn: &str, path: &str) -> HttpAnswer {
        let request = Request::get(uri(path)).header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        self.send(alpn, request).await.unwrap()
    }

    pub async fn post(&self, alpn: &str, path: &str, body: impl Into<Body>) -> HttpAnswer {
        self.send(alpn, post(path, body)).await.unwrap()
    }
}

/// The response to a request.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl HttpAnswer {
    /// Decodes the body as a review, and returns its response.
    #[track_caller]
    pub fn review(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        serde_json::from_str::<Value>(&self.body).unwrap()["response"].clone()
    }
}

/// An API server without objects.
struct EmptyLookup;

impl ObjectLookup for EmptyLookup {
    fn priority_class<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn uri(path: &str) -> String {
    format!("https://localhost{path}")
}

pub fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(uri(path))
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap()
}

/// Returns a review that creates a workload of this class; the uid is the class too.
pub fn workload(class: &str, padding_bytes: usize) -> String {
    json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": class, "operation": "CREATE", "name": "example", "namespace": "team",
            "kind": {"group": "lockkeeper.dev", "version": "v1alpha1", "kind": "Workload"},
            "object": {
                "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
                "metadata": {
                    "name": "example", "namespace": "team",
                    "annotations": {"padding": "x".repeat(padding_bytes)},
                },
                "spec": {"priorityClassName": class, "podSets": []},
            },
        },
    })
    .to_string()
}

/// Waits until the condition is true; other tasks run meanwhile.
pub async fn wait_until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

//! Certificates that change while the server runs, and certificates of clients:
//! real files, real handshakes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use lockkeeper_api::config::MinimumTls;
use lockkeeper_certs::tls::{
    CertificateStatus, ClientVerification, ServerTls, TlsError, TlsOptions, WatchMode,
};
use lockkeeper_testkit::{CertPair, SecretVolume, TestCa, replace_file};
use lockkeeper_webhook::listener::{ConnectionLimits, serve};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

/// Much longer than any step takes; a test that waits longer fails.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Only events: the poll would be too late for the test.
const EVENTS: WatchMode = WatchMode {
    events: true,
    poll: Duration::from_hours(1),
};

/// Only the poll.
const POLLING: WatchMode = WatchMode {
    events: false,
    poll: Duration::from_millis(10),
};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const CA: &str = "ca.crt";

/// A running server with files that tests change.
struct Server {
    authority: TestCa,
    directory: TempDir,
    address: SocketAddr,
    status: CertificateStatus,
}

impl Server {
    /// Starts a server; also returns its certificate.
    async fn start(watching: WatchMode) -> (Self, CertPair) {
        let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
        let pair = authority.server();
        pair.write(directory.path());
        (
            Self::start_on(authority, directory, watching, None).await,
            pair,
        )
    }

    /// Starts a server that verifies clients.
    async fn start_with_client_auth(clients: &TestCa, names: &[&str], watching: WatchMode) -> Self {
        let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
        authority.server().write(directory.path());
        fs::write(directory.path().join(CA), clients.pem()).unwrap();
        let client = ClientVerification {
            ca: directory.path().join(CA),
            names: names.iter().map(ToString::to_string).collect(),
        };
        Self::start_on(authority, directory, watching, Some(client)).await
    }

    async fn start_on(
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

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns a client that trusts the server's CA, with this certificate.
    fn client(
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

    async fn connect(&self, client: &Arc<ClientConfig>) -> std::io::Result<Connection> {
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
    async fn open(&self) -> Connection {
        self.connect(&self.client(&TLS13, None)).await.unwrap()
    }

    /// Returns the certificate that a new connection gets.
    async fn served_certificate(&self) -> CertificateDer<'static> {
        let mut connection = self.open().await;
        assert_eq!(connection.get("/livez").await, Some(StatusCode::OK));
        connection.served
    }

    async fn until_served(&self, pair: &CertPair) {
        until("the new certificate is served", async || {
            self.served_certificate().await == pair.der
        })
        .await;
    }

    /// Damages the files, and waits until a reload has failed.
    async fn assert_failure_after(&self, change: impl FnOnce()) {
        let before = self.status.failures();
        change();
        until("the files are found unusable", async || {
            self.status.failures() > before
        })
        .await;
    }

    async fn until_reloads(&self, reloads: u64) {
        until("the new files are taken over", async || {
            self.status.reloads() == reloads
        })
        .await;
    }

    /// Returns the response to a client with this certificate; `None` if the
    /// connection is rejected.
    async fn request_status(&self, client: &Arc<ClientConfig>, path: &str) -> Option<StatusCode> {
        // With TLS 1.3 the client finishes before the server has verified its certificate.
        let mut connection = self.connect(client).await.ok()?;
        connection.get(path).await
    }
}

/// A client's open connection, and the certificate of the server.
struct Connection {
    sender: SendRequest<Body>,
    served: CertificateDer<'static>,
}

impl Connection {
    async fn get(&mut self, path: &str) -> Option<StatusCode> {
        self.sender.ready().await.ok()?;
        let request = Request::get(path).header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        let answer = self.sender.send_request(request).await.ok()?;
        Some(answer.status())
    }
}

/// Waits until a condition is true.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_MAX, wait).await;
    waited.unwrap_or_else(|_| panic!("not in time: {what}"));
}

#[tokio::test]
async fn rewritten_files_are_reloaded() {
    let (server, first) = Server::start(EVENTS).await;
    assert_eq!(server.served_certificate().await, first.der);
    for rotation in 1..=2 {
        let next = server.authority.server();
        next.write(server.path());
        server.until_served(&next).await;
        assert_eq!(server.status.reloads(), rotation);
    }
}

#[tokio::test]
async fn renamed_files_are_reloaded() {
    let (server, _) = Server::start(EVENTS).await;
    for _ in 0..2 {
        let next = server.authority.server();
        next.rename_over(server.path());
        server.until_served(&next).await;
    }
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn kubelet_volume_swaps_are_reloaded() {
    let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
    let first = authority.server();
    let mut volume = SecretVolume::mount(directory.path().to_owned(), &authority, &first);
    let server = Server::start_on(authority, directory, EVENTS, None).await;
    assert_eq!(server.served_certificate().await, first.der);
    for _ in 0..2 {
        let next = server.authority.server();
        volume.write(&next.certificate, &next.key);
        server.until_served(&next).await;
    }
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn polling_reloads_without_file_events() {
    let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
    let folder = directory.path().to_owned();
    let mut volume = SecretVolume::mount(folder, &authority, &authority.server());
    let server = Server::start_on(authority, directory, POLLING, None).await;
    for _ in 0..2 {
        let next = server.authority.server();
        volume.write(&next.certificate, &next.key);
        server.until_served(&next).await;
    }
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn partial_file_is_ignored_until_complete() {
    let (server, first) = Server::start(EVENTS).await;
    let next = server.authority.server();
    let half = &next.certificate[..next.certificate.len() / 2];
    server
        .assert_failure_after(|| fs::write(server.path().join(CERTIFICATE), half).unwrap())
        .await;
    assert_eq!(server.served_certificate().await, first.der);
    server
        .assert_failure_after(|| {
            fs::write(server.path().join(CERTIFICATE), &next.certificate).unwrap();
        })
        .await;
    assert_eq!(
        server.served_certificate().await,
        first.der,
        "its key is not there yet"
    );
    assert_eq!(server.status.reloads(), 0);
    fs::write(server.path().join(KEY), &next.key).unwrap();
    server.until_served(&next).await;
}

#[tokio::test]
async fn mismatched_key_keeps_old_certificate() {
    let (server, first) = Server::start(EVENTS).await;
    let other = server.authority.server();
    server
        .assert_failure_after(|| replace_file(&server.path().join(KEY), &other.key))
        .await;
    assert_eq!(server.served_certificate().await, first.der);
    replace_file(&server.path().join(KEY), &first.key);
    // This change has no visible result, so the test waits for the next one.
    let next = server.authority.server();
    next.rename_over(server.path());
    server.until_served(&next).await;
    assert_eq!(server.status.reloads(), 1);
}

#[tokio::test]
async fn missing_file_keeps_old_certificate() {
    let (server, first) = Server::start(EVENTS).await;
    server
        .assert_failure_after(|| fs::remove_file(server.path().join(KEY)).unwrap())
        .await;
    assert_eq!(server.served_certificate().await, first.der);
    first.rename_over(server.path());
    let next = server.authority.server();
    next.rename_over(server.path());
    server.until_served(&next).await;
    assert_eq!(server.status.reloads(), 1);
}

#[tokio::test]
async fn missing_directory_keeps_old_certificate() {
    let (authority, directory) = (TestCa::new("CA"), tempfile::tempdir().unwrap());
    authority.server().write(directory.path());
    let watching = WatchMode {
        events: true,
        ..POLLING
    };
    let server = Server::start_on(authority, directory, watching, None).await;
    server
        .assert_failure_after(|| fs::remove_dir_all(server.path()).unwrap())
        .await;
    fs::create_dir(server.path()).unwrap();
    let next = server.authority.server();
    next.write(server.path());
    server.until_served(&next).await;
}

#[tokio::test]
async fn unchanged_content_does_not_count_as_reload() {
    let (server, first) = Server::start(EVENTS).await;
    first.rename_over(server.path());
    let (next, last) = (server.authority.server(), server.authority.server());
    next.rename_over(server.path());
    server.until_served(&next).await;
    next.rename_over(server.path());
    last.rename_over(server.path());
    server.until_served(&last).await;
    assert_eq!(server.status.reloads(), 2);
}

#[tokio::test]
async fn persistent_failure_is_counted_each_poll() {
    let (server, _) = Server::start(POLLING).await;
    fs::write(server.path().join(KEY), "").unwrap();
    until("it is counted again", async || server.status.failures() > 3).await;
}

#[tokio::test]
async fn open_connection_survives_rotation() {
    let (server, first) = Server::start(EVENTS).await;
    let mut old = server.open().await;
    assert_eq!(old.get("/validate").await, Some(StatusCode::OK));
    let next = server.authority.server();
    next.rename_over(server.path());
    server.until_served(&next).await;
    assert_eq!(old.get("/validate").await, Some(StatusCode::OK));
    assert_eq!(old.served, first.der);
}

#[tokio::test]
async fn status_reports_not_after_of_served_certificate() {
    let (server, _) = Server::start(EVENTS).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_s = now.unwrap().as_secs();
    let ends_in_days = || (server.status.not_after() + 60 - now_s) / (24 * 60 * 60);
    assert_eq!(ends_in_days(), 1);
    let next = server
        .authority
        .sign("server", &["localhost"], false, -10..30);
    next.rename_over(server.path());
    server.until_reloads(1).await;
    assert_eq!(ends_in_days(), 30);
}

#[tokio::test]
async fn client_signed_by_ca_is_accepted() {
    let ca = TestCa::new("clients");
    let server = Server::start_with_client_auth(&ca, &[], EVENTS).await;
    for version in [&TLS12, &TLS13] {
        let client = server.client(version, Some(&ca.client("client", &[])));
        for path in ["/validate", "/mutate", "/livez"] {
            let answer = server.request_status(&client, path).await;
            assert_eq!(answer, Some(StatusCode::OK), "{path}");
        }
    }
    assert_eq!(server.status.rejected_clients(), 0);
}

#[tokio::test]
async fn client_without_certificate_reaches_probes_only() {
    let ca = TestCa::new("clients");
    let server = Server::start_with_client_auth(&ca, &[], EVENTS).await;
    let client = server.client(&TLS13, None);
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            server.request_status(&client, path).await,
            Some(StatusCode::OK)
        );
    }
    assert_eq!(server.status.rejected_clients(), 0);
    for path in ["/validate", "/mutate", "/livez/", "//validate", "/"] {
        let answer = server.request_status(&client, path).await;
        assert_eq!(answer, Some(StatusCode::FORBIDDEN), "{path}");
    }
    assert_eq!(server.status.rejected_clients(), 5);
}

#[tokio::test]
async fn foreign_or_expired_client_certificate_is_rejected() {
    let ca = TestCa::new("clients");
    // A CA with the same name is another CA.
    let other = TestCa::new("clients");
    let server = Server::start_with_client_auth(&ca, &[], EVENTS).await;
    let bad = [
        other.client("client", &[]),
        ca.sign("client", &[], true, -10..-1),
        ca.sign("client", &[], true, 1..2),
        ca.sign("client", &[], false, -10..1),
    ];
    let mut rejected = 0;
    for pair in &bad {
        for version in [&TLS12, &TLS13] {
            let client = server.client(version, Some(pair));
            assert_eq!(server.request_status(&client, "/validate").await, None);
            rejected += 1;
            assert_eq!(server.status.rejected_clients(), rejected);
        }
    }
}

#[tokio::test]
async fn client_name_matches_san_or_common_name() {
    let ca = TestCa::new("clients");
    let server =
        Server::start_with_client_auth(&ca, &["kube-apiserver", "API.example"], EVENTS).await;
    let request = async |common_name: &str, names: &[&str]| {
        let client = server.client(&TLS13, Some(&ca.client(common_name, names)));
        server.request_status(&client, "/validate").await
    };
    assert_eq!(request("kube-apiserver", &[]).await, Some(StatusCode::OK));
    let named = ["other", "api.EXAMPLE"];
    assert_eq!(request("other", &named).await, Some(StatusCode::OK));

    assert_eq!(request("other", &["other"]).await, None);
    assert_eq!(request("Kube-Apiserver", &[]).await, None);
    assert_eq!(request("kube-apiserver.evil", &["*.example"]).await, None);
    assert_eq!(server.status.rejected_clients(), 3);
}

#[tokio::test]
async fn client_ca_rotation_is_reloaded() {
    let (old, new) = (TestCa::new("old"), TestCa::new("new"));
    let server = Server::start_with_client_auth(&old, &[], EVENTS).await;
    // One configuration each, since a client with the same one would resume its session.
    let old_client = server.client(&TLS13, Some(&old.client("client", &[])));
    let new_client = server.client(&TLS13, Some(&new.client("client", &[])));
    let ok = Some(StatusCode::OK);
    assert_eq!(server.request_status(&old_client, "/validate").await, ok);
    assert_eq!(server.request_status(&new_client, "/validate").await, None);

    let file = server.path().join(CA);
    server
        .assert_failure_after(|| replace_file(&file, "no PEM"))
        .await;
    assert_eq!(server.request_status(&old_client, "/validate").await, ok);

    replace_file(&file, &format!("{}{}", old.pem(), new.pem()));
    server.until_reloads(1).await;
    assert_eq!(server.request_status(&old_client, "/validate").await, ok);
    assert_eq!(server.request_status(&new_client, "/validate").await, ok);

    replace_file(&file, new.pem());
    server.until_reloads(2).await;
    assert_eq!(server.request_status(&old_client, "/validate").await, None);
    assert_eq!(server.request_status(&new_client, "/validate").await, ok);
}

#[test]
fn invalid_client_ca_fails_at_start() {
    let directory = tempfile::tempdir().unwrap();
    TestCa::new("CA").server().write(directory.path());
    let file = |name| -> PathBuf { directory.path().join(name) };
    let load = || {
        let client = ClientVerification {
            ca: file(CA),
            names: vec![],
        };
        let options = TlsOptions::default();
        ServerTls::load(&file(CERTIFICATE), &file(KEY), &options, Some(&client)).unwrap_err()
    };
    assert!(matches!(load(), TlsError::Read { path, .. } if path == file(CA)));
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(file(CA), text).unwrap();
    assert!(matches!(load(), TlsError::InvalidCa { path } if path == file(CA)));
}

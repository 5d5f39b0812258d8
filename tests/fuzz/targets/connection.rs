//! Raw bytes on the webhook's port: no panic, the connection ends, and the server answers a correct request afterwards.
//!
//! The first byte of an input is where the rest is sent: T before the handshake, 1 inside TLS with HTTP/1.1, 2 inside TLS with
//! HTTP/2.

use lockkeeper_certs::self_signed;
use lockkeeper_certs::tls::{TlsOptions, server_config};
use lockkeeper_policies::index::Index;
use lockkeeper_policies::settings::Settings;
use lockkeeper_webhook::app_state::AppState;
use lockkeeper_webhook::http::router;
use lockkeeper_webhook::listener::{ConnectionLimits, serve};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const BODY_LIMIT_BYTES: usize = 1 << 16;

/// The longest wait of the server for a client that sends nothing more.
const WAIT: Duration = Duration::from_millis(100);

/// The longest time to the end of a connection after its client has sent all. Much more than all waits of the server.
const END: Duration = Duration::from_secs(8);

const PROBE: &[u8] = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

struct Server {
    runtime: Runtime,
    address: SocketAddr,
    clients: [TlsConnector; 2],
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let names = ["localhost".to_owned()];
    let files = self_signed::ensure(&folder.path().join("tls"), &names, SystemTime::now()).expect("certificates");
    let tls = server_config(&files.certificate, &files.key, &TlsOptions::default()).expect("a server");
    let client = |alpn: &str| {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&files.ca).expect("a CA")).expect("the CA is one");
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.into()];
        TlsConnector::from(Arc::new(config))
    };
    let clients = [client("http/1.1"), client("h2")];
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let app = AppState::offline(Settings::default(), Index::default(), BODY_LIMIT_BYTES);
    let limits = ConnectionLimits {
        handshake_timeout: WAIT,
        header_timeout: WAIT,
        idle_timeout: WAIT,
        drain_timeout: WAIT,
        answer_timeout: WAIT,
        ..ConnectionLimits::default()
    };
    let tcp = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = tcp.local_addr().expect("an address");
    runtime.spawn(serve(tcp, tls, router(Arc::new(app)), limits, std::future::pending()));
    Server { runtime, address, clients }
});

pub fn run(input: &[u8]) {
    let Some((place, bytes)) = input.split_first() else {
        return;
    };
    let server = &*SERVER;
    server.runtime.block_on(async {
        match place {
            b'1' => send(server.connect(0).await, bytes).await,
            b'2' => send(server.connect(1).await, bytes).await,
            _ => send(server.tcp().await, bytes).await,
        };
        let answer = send(server.connect(0).await, PROBE).await;
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    });
}

impl Server {
    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("a connection")
    }

    async fn connect(&self, protocol: usize) -> TlsStream<TcpStream> {
        let name = "localhost".try_into().expect("a name");
        self.clients[protocol].connect(name, self.tcp().await).await.expect("a handshake")
    }
}

/// Sends the bytes and returns the answer.
async fn send(stream: impl AsyncRead + AsyncWrite, bytes: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = tokio::io::split(Box::pin(stream));
    let mut answer = Vec::new();
    let exchange = async {
        // Errors mean that the server has closed the connection, which it may.
        let write = async {
            let _ = writer.write_all(bytes).await;
            let _ = writer.flush().await;
        };
        let _ = tokio::join!(write, reader.read_to_end(&mut answer));
    };
    timeout(END, exchange).await.expect("the server ends the connection");
    answer
}

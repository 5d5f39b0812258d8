//! The handshake ends for every client certificate, and succeeds only for one signed by the CA. Any
//! process that can reach the port can send one.

use lockkeeper_certs::self_signed;
use lockkeeper_certs::tls::{ClientVerification, ServerTls, TlsOptions};
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;
use tempfile::TempDir;

/// A server that requires client certificates, the roots that trust it, and a key to sign with.
struct Setup {
    server: Arc<ServerConfig>,
    roots: Arc<RootCertStore>,
    key: Arc<dyn SigningKey>,
    /// The one certificate of the CA that the key belongs to.
    good: CertificateDer<'static>,
}

static SETUP: LazyLock<Setup> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let directory = folder.path().join("tls");
    let names = ["localhost".to_owned()];
    let files = self_signed::ensure(&directory, &names, SystemTime::now()).expect("certificates");
    let clients = ClientVerification { ca: files.ca.clone(), names: vec!["api".to_owned()] };
    let options = TlsOptions::default();
    let serving = ServerTls::load(&files.certificate, &files.key, &options, Some(&clients));
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(&files.ca).expect("a CA");
    roots.add(ca).expect("the CA is one");
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    Setup {
        server: serving.expect("a server").config(),
        roots: Arc::new(roots),
        key: aws_lc_rs::sign::any_supported_type(&key).expect("a usable key"),
        good: CertificateDer::from_pem_file(&files.certificate).expect("a certificate"),
    }
});

/// Presents the same certificate to every server.
#[derive(Debug)]
struct Presents(Arc<CertifiedKey>);

impl ResolvesClientCert for Presents {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

pub fn run(certificate: &[u8]) {
    let setup = &*SETUP;
    let certificate = CertificateDer::from(certificate.to_vec());
    let is_good = certificate == setup.good;
    let presented = CertifiedKey::new(vec![certificate], Arc::clone(&setup.key));
    let client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(Arc::clone(&setup.roots))
        .with_client_cert_resolver(Arc::new(Presents(Arc::new(presented))));
    let name = "localhost".try_into().expect("a name");
    let mut client = ClientConnection::new(Arc::new(client), name).expect("a client");
    let mut server = ServerConnection::new(Arc::clone(&setup.server)).expect("a server");
    assert!(is_good || !shakes_hands(&mut client, &mut server));
}

/// Returns true if the handshake succeeds.
fn shakes_hands(client: &mut ClientConnection, server: &mut ServerConnection) -> bool {
    while server.is_handshaking() {
        let mut sent = Vec::new();
        client.write_tls(&mut sent).expect("a buffer accepts every write");
        if sent.is_empty() {
            return false;
        }
        let mut sent = sent.as_slice();
        while !sent.is_empty() {
            server.read_tls(&mut sent).expect("a buffer returns every byte");
            if server.process_new_packets().is_err() {
                return false;
            }
        }
        let mut answered = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut answered).expect("a buffer accepts every write");
        }
        let mut answered = answered.as_slice();
        while !answered.is_empty() {
            client.read_tls(&mut answered).expect("a buffer returns every byte");
            client.process_new_packets().expect("the server sends valid messages");
        }
    }
    true
}

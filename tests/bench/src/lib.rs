//! Shared by the benchmark programs: a client that trusts one CA.

use anyhow::{Context, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connects to a server on this machine whose certificate a CA (PEM) has signed, and offers one
/// protocol.
///
/// # Errors
///
/// When the CA cannot be read, nothing listens there, or the handshake fails.
pub async fn connect(
    address: SocketAddr,
    cacert: &Path,
    protocol: &[u8],
) -> Result<TlsStream<TcpStream>> {
    let tcp = TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    let mut config = trusting(cacert)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    let tls = TlsConnector::from(Arc::new(config));
    Ok(tls.connect(ServerName::try_from("localhost")?, tcp).await?)
}

fn trusting(cacert: &Path) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let shown = cacert.display();
    for certificate in CertificateDer::pem_file_iter(cacert).with_context(|| format!("{shown}"))? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

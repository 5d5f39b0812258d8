//! A TLS handshake with the own listener, as a client that trusts the configured CA.

use super::trust::SelfCheckTrust;
use lockkeeper_certs::tls::{self, TlsError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Why a self-check failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfCheckError {
    /// When the CA cannot be read.
    #[error(transparent)]
    Ca(#[from] TlsError),
    /// When there is no CA to verify the certificate against.
    #[error("there is no CA yet")]
    NoCa,
    /// When rustls cannot use the CA.
    #[error("the CA cannot be used: {0}; make or mount it again")]
    InvalidCa(String),
    /// When the port is closed, or the handshake fails: with a certificate of another CA, for another
    /// name, or expired.
    #[error("no handshake: {0}; is the certificate signed by the CA, for this name, and in date?")]
    Handshake(io::Error),
    /// When the handshake exceeds the timeout.
    #[error("no handshake within {} s", .0.as_secs_f64())]
    Timeout(Duration),
}

/// Connects, completes a handshake and closes the connection.
pub(super) async fn connect(
    address: SocketAddr,
    name: ServerName<'static>,
    trust: &SelfCheckTrust,
) -> Result<(), SelfCheckError> {
    let connector = TlsConnector::from(Arc::new(client_config(trust)?));
    let tcp = TcpStream::connect(address)
        .await
        .map_err(SelfCheckError::Handshake)?;
    let mut stream = connector
        .connect(name, tcp)
        .await
        .map_err(SelfCheckError::Handshake)?;
    // The handshake is the whole check; whether the close reaches the listener does not matter.
    let _ = stream.shutdown().await;
    Ok(())
}

fn client_config(trust: &SelfCheckTrust) -> Result<ClientConfig, SelfCheckError> {
    let unusable = |error: &dyn std::error::Error| SelfCheckError::InvalidCa(error.to_string());
    let provider = tls::provider();
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        SelfCheckTrust::Any => Arc::new(AcceptAnyCertificate(Arc::clone(&provider))),
        SelfCheckTrust::Ca(path) => ca_verifier(tls::read_certificates(path)?, &provider)?,
        SelfCheckTrust::Bundle(bundle) => {
            let bundle = bundle.borrow().clone().ok_or(SelfCheckError::NoCa)?;
            ca_verifier(bundle.to_vec(), &provider)?
        }
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // A resumed session would not verify the certificate.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn ca_verifier(
    bundle: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, SelfCheckError> {
    let unusable = |error: &dyn std::error::Error| SelfCheckError::InvalidCa(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in bundle {
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(&error))
}

/// Accepts any certificate, but only from a peer that has its key.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        None
    }
}

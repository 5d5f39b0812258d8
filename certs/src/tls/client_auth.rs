//! Authenticates clients by certificates of a CA, optionally with certain names.

use super::error::TlsError;
use super::pem_files::read_certificates;
use super::provider::provider;
use super::reload::Reloadable;
use super::status::CertificateStatus;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tracing::info;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The longest logged name of a rejected client, in characters.
const LOGGED_NAME_CHARS_MAX: usize = 64;

/// The clients that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientVerification {
    /// The PEM file of the CA, or of several, such as during a rotation.
    pub ca: PathBuf,
    /// A certificate must have one of these as a DNS name or as the common name of its subject. If
    /// empty, every certificate of the CA is accepted.
    pub names: Vec<String>,
}

/// Verifies client certificates with a CA that can be reloaded. The handshake accepts a client without
/// a certificate; [`super::require_client_cert`] rejects its requests.
#[derive(Debug)]
pub(super) struct ClientAuth {
    ca: PathBuf,
    names: Vec<String>,
    client_ca: RwLock<Arc<ClientCa>>,
    status: CertificateStatus,
}

/// The certificates of the CA file, and the verifier for them.
#[derive(Debug)]
struct ClientCa {
    certificates: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuth {
    pub(super) fn load(
        client: &ClientVerification,
        status: &CertificateStatus,
    ) -> Result<Self, TlsError> {
        let certificates = read_certificates(&client.ca)?;
        let authority = build_client_ca(certificates, &client.ca)?;
        Ok(Self {
            ca: client.ca.clone(),
            names: client.names.clone(),
            client_ca: RwLock::new(Arc::new(authority)),
            status: status.clone(),
        })
    }

    fn current_ca(&self) -> Arc<ClientCa> {
        let current = self
            .client_ca
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Returns true if the certificate has an accepted name.
    fn has_accepted_name(&self, certificate: &CertificateDer<'_>) -> bool {
        if self.names.is_empty() {
            return true;
        }
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
            return false;
        };
        let accepts = |same: fn(&str, &str) -> bool, name: &str| {
            self.names.iter().any(|accepted| same(accepted, name))
        };
        // DNS names are case-insensitive; a common name is any text.
        dns_names(&certificate).any(|name| accepts(str::eq_ignore_ascii_case, name))
            || common_names(&certificate).any(|name| accepts(|a, b| a == b, name))
    }

    /// Counts a rejection and logs it, at most once per interval for each reason. `reason` is never a text of rustls, which may quote bytes of the client.
    fn reject(&self, certificate: &CertificateDer<'_>, reason: &'static str) {
        if let Some(rejected) = self.status.count_rejected_client(reason) {
            let claimed_name = claimed_name(certificate);
            info!(?claimed_name, reason, rejected, "rejected a client");
        }
    }

    /// Returns the result; an error is counted as a rejection.
    fn check_signature(
        &self,
        certificate: &CertificateDer<'_>,
        result: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        result.inspect_err(|_| {
            self.reject(certificate, "it does not hold the key of its certificate");
        })
    }
}

impl Reloadable for ClientAuth {
    fn name(&self) -> &'static str {
        "CA of the clients"
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.ca.clone()]
    }

    fn refresh(&self) -> Result<bool, TlsError> {
        let certificates = read_certificates(&self.ca)?;
        if certificates == self.current_ca().certificates {
            return Ok(false);
        }
        // Before the lock: handshakes do not wait, and an error keeps the old CA.
        let new = build_client_ca(certificates, &self.ca)?;
        let mut current = self
            .client_ca
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(new);
        Ok(true)
    }
}

/// Returns the verifier that trusts only these certificates.
fn build_client_ca(
    certificates: Vec<CertificateDer<'static>>,
    path: &Path,
) -> Result<ClientCa, TlsError> {
    let bad = || TlsError::InvalidCa { path: path.into() };
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|_| bad())?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|_| bad())?;
    Ok(ClientCa {
        certificates,
        verifier,
    })
}

impl ClientCertVerifier for ClientAuth {
    fn client_auth_mandatory(&self) -> bool {
        // The probes of a kubelet have no certificate.
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // A client that selects its certificate by these names would send none after the CA was
        // replaced.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let assertion = self
            .current_ca()
            .verifier
            .verify_client_cert(end_entity, intermediates, now)
            .inspect_err(|error| self.reject(end_entity, rejection_reason(error)))?;
        if !self.has_accepted_name(end_entity) {
            self.reject(
                end_entity,
                "it has none of the names that --client-name accepts",
            );
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(assertion)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = &self.current_ca().verifier;
        self.check_signature(cert, verifier.verify_tls12_signature(message, cert, dss))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = &self.current_ca().verifier;
        self.check_signature(cert, verifier.verify_tls13_signature(message, cert, dss))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current_ca().verifier.supported_verify_schemes()
    }
}

/// Why a certificate is not accepted.
fn rejection_reason(error: &Error) -> &'static str {
    let Error::InvalidCertificate(error) = error else {
        return "its certificate cannot be verified";
    };
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet"
        }
        CertificateError::UnknownIssuer => "its certificate is not of the CA of --client-ca",
        CertificateError::BadSignature => "its certificate has a bad signature",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not for clients (extended key usage)"
        }
        CertificateError::BadEncoding => "its certificate cannot be read",
        _ => "its certificate cannot be verified",
    }
}

/// Returns the name in a certificate, which is not verified.
fn claimed_name(certificate: &CertificateDer<'_>) -> String {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else {
        return String::new();
    };
    let name = common_names(&certificate)
        .chain(dns_names(&certificate))
        .next()
        .unwrap_or_default();
    // The client chooses this text.
    name.chars().take(LOGGED_NAME_CHARS_MAX).collect()
}

fn common_names<'a>(certificate: &'a X509Certificate<'_>) -> impl Iterator<Item = &'a str> {
    certificate
        .subject()
        .iter_common_name()
        .filter_map(|name| name.as_str().ok())
}

fn dns_names<'a>(certificate: &'a X509Certificate<'_>) -> impl Iterator<Item = &'a str> {
    certificate
        .subject_alternative_name()
        .ok()
        .flatten()
        .into_iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        })
}

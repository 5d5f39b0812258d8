//! The served certificate and key, and their files.

use super::error::TlsError;
use super::pem_files::certified_key;
use super::reload::Reloadable;
use super::status::CertificateStatus;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The served certificate and key.
#[derive(Debug)]
pub(super) struct ServerCert {
    current: RwLock<Arc<CertifiedKey>>,
    status: CertificateStatus,
}

impl ServerCert {
    /// `not_after` is the last second of the first certificate, since 1970.
    pub(super) fn new(pair: Arc<CertifiedKey>, not_after: u64, status: &CertificateStatus) -> Self {
        status.set_not_after(not_after);
        Self {
            current: RwLock::new(pair),
            status: status.clone(),
        }
    }

    fn current(&self) -> Arc<CertifiedKey> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Returns true if this chain is served already.
    fn is_current(&self, pair: &CertifiedKey) -> bool {
        // The first certificate of the chain determines the key.
        pair.cert == self.current().cert
    }

    fn replace(&self, pair: Arc<CertifiedKey>, not_after: u64) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = pair;
        self.status.set_not_after(not_after);
    }
}

impl ResolvesServerCert for ServerCert {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Replaces the served certificate from memory. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct CertSlot(pub(super) Arc<ServerCert>);

impl CertSlot {
    /// Serves this certificate and key; returns false if they are served already. The key must match
    /// the certificate. `not_after` is the last second of the first certificate, since 1970.
    pub(crate) fn replace(&self, pair: &Arc<CertifiedKey>, not_after: u64) -> bool {
        let is_new = !self.0.is_current(pair);
        if is_new {
            self.0.replace(Arc::clone(pair), not_after);
        }
        is_new
    }
}

/// The files of the certificate and key.
#[derive(Debug)]
pub(super) struct ServerCertFiles {
    certificate: PathBuf,
    key: PathBuf,
    server_cert: Arc<ServerCert>,
}

impl ServerCertFiles {
    /// Reads both files for the first time.
    pub(super) fn load(
        certificate: &Path,
        key: &Path,
        status: &CertificateStatus,
    ) -> Result<Self, TlsError> {
        let read = certified_key(certificate, key)?;
        let not_after = not_after(&read, certificate)?;
        Ok(Self {
            certificate: certificate.into(),
            key: key.into(),
            server_cert: Arc::new(ServerCert::new(Arc::new(read), not_after, status)),
        })
    }

    /// Returns the served certificate and key.
    pub(super) fn server_cert(&self) -> Arc<ServerCert> {
        Arc::clone(&self.server_cert)
    }
}

impl Reloadable for ServerCertFiles {
    fn name(&self) -> &'static str {
        "serving certificate"
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.certificate.clone(), self.key.clone()]
    }

    fn refresh(&self) -> Result<bool, TlsError> {
        let read = certified_key(&self.certificate, &self.key)?;
        // `certified_key` has checked that the key belongs to the chain.
        if self.server_cert.is_current(&read) {
            return Ok(false);
        }
        let not_after = not_after(&read, &self.certificate)?;
        self.server_cert.replace(Arc::new(read), not_after);
        Ok(true)
    }
}

/// Returns the last second of the first certificate.
fn not_after(pair: &CertifiedKey, path: &Path) -> Result<u64, TlsError> {
    pair.cert
        .first()
        .and_then(|leaf| X509Certificate::from_der(leaf).ok())
        // A time before 1970 is negative.
        .map(|(_, leaf)| u64::try_from(leaf.validity().not_after.timestamp()).unwrap_or(0))
        .ok_or_else(|| TlsError::InvalidCertificate {
            path: path.into(),
            reason: rustls::CertificateError::BadEncoding.into(),
        })
}

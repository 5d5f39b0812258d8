//! The TLS server configuration, and how new files replace the served certificate while connections are
//! open.
//!
//! One rustls configuration exists for the whole run. It resolves the certificate at every handshake: an
//! open connection keeps its certificate, and the next one gets the new certificate.

use super::client_auth::{ClientAuth, ClientVerification};
use super::error::TlsError;
use super::file_watcher::{FileChanges, WatchMode};
use super::options::TlsOptions;
use super::provider::{ALPN_H2, ALPN_HTTP1, provider};
use super::reload::{ReloadTarget, Reloader};
use super::require_client_cert;
use super::server_cert::{CertSlot, ServerCert, ServerCertFiles};
use super::status::CertificateStatus;
use axum::Router;
use lockkeeper_api::config::MinimumTls;
use rustls::ServerConfig;
use rustls::server::{NoClientAuth, NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::error;

/// Cached sessions for resumption. The clients are a few API servers; the rest is reserve.
const SESSIONS_MAX: usize = 256;

/// Tickets sent after a TLS 1.3 handshake. A ticket is used once, and a client with a long-lived
/// connection rarely needs one.
const TICKETS_PER_HANDSHAKE: usize = 1;

/// A TLS server, with certificates from files that may change, or from memory.
#[derive(Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    server_cert: Arc<ServerCert>,
    files: Option<Arc<ServerCertFiles>>,
    client_auth: Option<Arc<ClientAuth>>,
    status: CertificateStatus,
}

impl ServerTls {
    /// Reads a certificate (or a chain, the serving certificate first) and its key, both PEM, and the
    /// CA of the clients if they are verified.
    ///
    /// Sessions can be resumed unless clients are verified. Early data is never accepted, because it can be
    /// replayed.
    ///
    /// Blocks on the disk: call it before the server starts.
    ///
    /// # Errors
    ///
    /// A [`TlsError`] that names the file and the remedy.
    pub fn load(
        certificate: &Path,
        key: &Path,
        options: &TlsOptions,
        client: Option<&ClientVerification>,
    ) -> Result<Self, TlsError> {
        let status = CertificateStatus::default();
        let files = ServerCertFiles::load(certificate, key, &status)?;
        let pair = files.server_cert();
        Self::new(pair, Some(Arc::new(files)), *options, client, status)
    }

    /// Starts with a certificate and key in memory, which must match; `not_after` is the last second
    /// of the certificate since 1970. [`Self::cert_slot`] replaces them.
    pub(crate) fn from_memory(
        pair: CertifiedKey,
        not_after: u64,
        options: TlsOptions,
        client: Option<&ClientVerification>,
    ) -> Result<Self, TlsError> {
        let status = CertificateStatus::default();
        let pair = Arc::new(ServerCert::new(Arc::new(pair), not_after, &status));
        Self::new(pair, None, options, client, status)
    }

    fn new(
        pair: Arc<ServerCert>,
        files: Option<Arc<ServerCertFiles>>,
        options: TlsOptions,
        client: Option<&ClientVerification>,
        status: CertificateStatus,
    ) -> Result<Self, TlsError> {
        let clients = client
            .map(|client| ClientAuth::load(client, &status).map(Arc::new))
            .transpose()?;
        let config = build_config(&pair, clients.as_ref(), options)?;
        Ok(Self {
            config: Arc::new(config),
            server_cert: pair,
            files,
            client_auth: clients,
            status,
        })
    }

    /// Returns the slot to replace the certificate; `None` if it comes from files.
    pub(crate) fn cert_slot(&self) -> Option<CertSlot> {
        let from_memory = self.files.is_none();
        from_memory.then(|| CertSlot(Arc::clone(&self.server_cert)))
    }

    /// Returns the configuration. It stays valid when certificates are replaced.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Returns the expiry and counters of the certificate.
    #[must_use]
    pub fn status(&self) -> CertificateStatus {
        self.status.clone()
    }

    /// Adds a layer to `router` that rejects requests without a client certificate, if clients are verified.
    /// Probes need no certificate.
    pub fn require_client_cert(&self, router: Router) -> Router {
        match &self.client_auth {
            Some(_) => require_client_cert::require_client_cert(router, self.status()),
            None => router,
        }
    }

    /// Reads the files when they change and at every poll ([`WatchMode`]), and uses a new valid
    /// certificate. Invalid files change nothing. Without files the future only waits. It must be spawned,
    /// and ends when dropped.
    pub fn watch(&self) -> impl Future<Output = Infallible> + Send + use<> {
        self.watch_with(WatchMode::default())
    }

    /// [`Self::watch`] with another mode to detect changes.
    pub fn watch_with(
        &self,
        watching: WatchMode,
    ) -> impl Future<Output = Infallible> + Send + use<> {
        let files = self.files.iter().map(|files| Arc::clone(files) as _);
        let clients = self
            .client_auth
            .iter()
            .map(|clients| Arc::clone(clients) as _);
        let sources: Vec<_> = files.chain(clients).map(ReloadTarget::new).collect();
        let files: Vec<PathBuf> = sources.iter().flat_map(|it| it.source.files()).collect();
        let reloader = Arc::new(Reloader {
            sources,
            changes: FileChanges::new(&files, watching),
            status: self.status(),
        });
        async move {
            loop {
                let looking = Arc::clone(&reloader);
                // Files may be on a slow disk, and handshakes must not wait for it.
                let looked = tokio::task::spawn_blocking(move || looking.reload_changed()).await;
                if looked.is_err() {
                    error!("a look at the certificates panicked; the old ones are kept");
                }
                reloader.changes.changed().await;
            }
        }
    }
}

fn build_config(
    pair: &Arc<ServerCert>,
    clients: Option<&Arc<ClientAuth>>,
    options: TlsOptions,
) -> Result<ServerConfig, TlsError> {
    let versions = match options.minimum {
        MinimumTls::V1_3 => &[&rustls::version::TLS13][..],
        MinimumTls::V1_2 => &[&rustls::version::TLS13, &rustls::version::TLS12][..],
    };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .map_err(TlsError::Configuration)?
        .with_client_cert_verifier(match clients {
            Some(clients) => Arc::clone(clients) as _,
            None => Arc::new(NoClientAuth),
        })
        .with_cert_resolver(Arc::clone(pair) as _);
    config.alpn_protocols = if options.http1_only {
        vec![ALPN_HTTP1.to_vec()]
    } else {
        vec![ALPN_H2.to_vec(), ALPN_HTTP1.to_vec()]
    };
    if clients.is_some() {
        // A resumed session is not verified again, so it would outlive its certificate and CA.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else {
        // In memory: there is no ticket key that must be rotated or could leak.
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
        config.send_tls13_tickets = TICKETS_PER_HANDSHAKE;
    }
    Ok(config)
}

/// Returns the configuration of a [`ServerTls`] that is not reloaded and requests no client certificate.
///
/// # Errors
///
/// A [`TlsError`] that names the file and the remedy.
pub fn server_config(
    certificate: &Path,
    key: &Path,
    options: &TlsOptions,
) -> Result<Arc<ServerConfig>, TlsError> {
    Ok(ServerTls::load(certificate, key, options, None)?.config())
}

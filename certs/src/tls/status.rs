//! What there is to know about the certificates while they are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers about the served certificate, as they are at the moment. Cheap to
/// clone and to read; all clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct CertificateStatus(Arc<StatusCounters>);

// Relaxed throughout: each number stands for itself.
#[derive(Debug, Default)]
struct StatusCounters {
    not_after: AtomicU64,
    reloads: AtomicU64,
    failures: AtomicU64,
    rejected_clients: AtomicU64,
}

impl CertificateStatus {
    /// The last second of the served certificate, since 1970.
    #[must_use]
    pub fn not_after(&self) -> u64 {
        self.0.not_after.load(Ordering::Relaxed)
    }

    /// How often a new certificate and key, or a new CA of the clients, was taken over.
    #[must_use]
    pub fn reloads(&self) -> u64 {
        self.0.reloads.load(Ordering::Relaxed)
    }

    /// How often the files were looked at and could not be used. A fault that stays
    /// is counted at every look, so that the number grows for as long as it stays.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// How often a client was refused: for its certificate in the handshake, or
    /// a request for having none.
    #[must_use]
    pub fn rejected_clients(&self) -> u64 {
        self.0.rejected_clients.load(Ordering::Relaxed)
    }

    pub(super) fn set_not_after(&self, at_s: u64) {
        self.0.not_after.store(at_s, Ordering::Relaxed);
    }

    pub(crate) fn count_reload(&self) {
        self.0.reloads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_failure(&self) {
        self.0.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_rejected_client(&self) {
        self.0.rejected_clients.fetch_add(1, Ordering::Relaxed);
    }
}

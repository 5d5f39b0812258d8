//! Counters of the served certificate.

use super::rejection_log::RejectionLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Expiry and counters of the served certificate. Cheap to clone and to read; clones share the values.
#[derive(Clone, Debug, Default)]
pub struct CertificateStatus(Arc<StatusCounters>);

// Relaxed throughout: each value is independent of the others.
#[derive(Debug, Default)]
struct StatusCounters {
    not_after: AtomicU64,
    reloads: AtomicU64,
    failures: AtomicU64,
    rejected_clients: AtomicU64,
    rejection_log: RejectionLog,
}

impl CertificateStatus {
    /// Returns the last second of the served certificate, since 1970.
    #[must_use]
    pub fn not_after(&self) -> u64 {
        self.0.not_after.load(Ordering::Relaxed)
    }

    /// Returns how often a new certificate and key, or a new CA of the clients, was loaded.
    #[must_use]
    pub fn reloads(&self) -> u64 {
        self.0.reloads.load(Ordering::Relaxed)
    }

    /// Returns how often the files were read and could not be used. A persistent failure is counted at
    /// every check, so the number grows while it persists.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Returns how often a client was rejected: for its certificate in the handshake, or a request without
    /// a certificate.
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

    /// Counts a rejected client. Returns the count if a log line with this reason is due.
    pub(super) fn count_rejected_client(&self, reason: &'static str) -> Option<u64> {
        let before = self.0.rejected_clients.fetch_add(1, Ordering::Relaxed);
        let is_due = self.0.rejection_log.is_due(reason, Instant::now());
        is_due.then(|| before.saturating_add(1))
    }
}

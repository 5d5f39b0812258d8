//! Connections that stay open and forward nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Which connections are frozen: those that were opened before the last freeze.
#[derive(Default)]
pub(super) struct FrozenConnections {
    opened: AtomicU64,
    frozen: AtomicU64,
}

impl FrozenConnections {
    /// The number of a new connection.
    pub(super) fn open(&self) -> u64 {
        self.opened.fetch_add(1, Ordering::SeqCst)
    }

    /// Freezes all open connections.
    pub(super) fn freeze(&self) {
        let opened = self.opened.load(Ordering::SeqCst);
        self.frozen.store(opened, Ordering::SeqCst);
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        number < self.frozen.load(Ordering::SeqCst)
    }
}

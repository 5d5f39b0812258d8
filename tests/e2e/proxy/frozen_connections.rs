//! Connections that stay open and forward nothing.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Which connections are frozen: those that were opened before the last freeze, until the proxy stops.
#[derive(Default)]
pub(super) struct FrozenConnections {
    state: Mutex<FreezeState>,
    stopped: Condvar,
}

#[derive(Default)]
struct FreezeState {
    opened: u64,
    frozen: u64,
    is_stopped: bool,
}

impl FrozenConnections {
    /// The number of a new connection.
    pub(super) fn open(&self) -> u64 {
        let mut state = self.lock();
        state.opened += 1;
        state.opened
    }

    /// Freezes all open connections.
    pub(super) fn freeze(&self) {
        let mut state = self.lock();
        state.frozen = state.opened;
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        number <= self.lock().frozen
    }

    /// Returns when the proxy stops.
    pub(super) fn wait_until_stopped(&self) {
        let stopped = self.stopped.wait_while(self.lock(), |it| !it.is_stopped);
        drop(stopped.unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.stopped.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, FreezeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

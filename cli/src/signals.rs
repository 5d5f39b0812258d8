//! The signals that stop the process.

use anyhow::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code after a signal is this number plus the number of the signal.
const SIGNAL_CODE: i32 = 128;

/// Waits for SIGINT and SIGTERM.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn install() -> Result<Self, Error> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Completes at the first signal. The second one ends the process at once.
    pub(crate) async fn wait(mut self) {
        self.next_signal().await;
        tracing::info!("stopping: finishing accepted requests; a second signal stops at once");
        tokio::spawn(async move {
            let kind = self.next_signal().await;
            tracing::warn!("second signal: stopped with unfinished requests");
            // The convention of shells for a process that a signal ends.
            std::process::exit(SIGNAL_CODE.saturating_add(kind.as_raw_value()));
        });
    }

    async fn next_signal(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        }
    }
}

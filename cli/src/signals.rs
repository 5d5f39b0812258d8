//! The signals that end a process.

use anyhow::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A process that dies of a signal has its number and this one as its exit code.
const SIGNAL_CODE: i32 = 128;

/// SIGINT and SIGTERM.
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

    /// Resolves at the first one. The second one ends the process at once.
    pub(crate) async fn wait(mut self) {
        self.next_signal().await;
        tracing::info!("stopping: answering what was accepted; a second signal cuts that short");
        tokio::spawn(async move {
            let kind = self.next_signal().await;
            tracing::warn!("a second signal: ended with requests unanswered");
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

//! The signals that stop the process.

use anyhow::Error;
use std::io;
use std::process::exit;
use std::thread;
use tokio::runtime::Builder;
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

/// At SIGINT, SIGTERM and SIGHUP, runs a function and ends the process. For programs without a runtime.
pub(crate) fn run_before_end(function: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    drop(entered);
    thread::spawn(move || {
        let kind = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
                _ = hangup.recv() => SignalKind::hangup(),
            }
        });
        function();
        exit(SIGNAL_CODE.saturating_add(kind.as_raw_value()));
    });
    Ok(())
}

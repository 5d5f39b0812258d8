//! The port for probes and metrics: plain HTTP, separate from the reviews.
//!
//! It shares the process with the webhook, which is in the path of writes, so a bad client of this port
//! must not cost much: few connections, one request each, and a time limit on all of them.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lockkeeper_api::config::MetricsLimits;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Limits of the connections to the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeServerLimits {
    /// Connections open at once; the next ones wait in the kernel's queue.
    pub connections_max: usize,
    /// Longest for the head of the request to arrive.
    pub header_timeout: Duration,
    /// Longest for a connection in all.
    pub connection_timeout: Duration,
}

impl From<&MetricsLimits> for ProbeServerLimits {
    fn from(settings: &MetricsLimits) -> Self {
        Self {
            connections_max: settings.connections_max.count(),
            header_timeout: settings.head_timeout_seconds.seconds(),
            connection_timeout: settings.connection_timeout_seconds.seconds(),
        }
    }
}

impl Default for ProbeServerLimits {
    fn default() -> Self {
        Self::from(&MetricsLimits::default())
    }
}

/// Wait after a failed accept, in milliseconds.
const ACCEPT_BACKOFF_MS: u64 = 100;

/// Serves `router` on `tcp` within `limits`. Runs until it is dropped.
pub async fn serve_router(tcp: TcpListener, router: Router, limits: ProbeServerLimits) {
    let connections_max = limits.connections_max.min(Semaphore::MAX_PERMITS);
    let permits = Arc::new(Semaphore::new(connections_max));
    loop {
        // Before the accept: connections over the limit wait in the kernel's queue.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match tcp.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    serve_connection(stream, router, limits).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection on the metrics port; retrying");
                tokio::time::sleep(Duration::from_millis(ACCEPT_BACKOFF_MS)).await;
            }
        }
    }
}

/// Serves one request and closes the connection.
async fn serve_connection(stream: TcpStream, router: Router, limits: ProbeServerLimits) {
    let mut http = http1::Builder::new();
    // An idle client must not occupy one of the few connections.
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .keep_alive(false);
    let service = TowerToHyperService::new(router);
    let served = http.serve_connection(TokioIo::new(stream), service);
    match timeout(limits.connection_timeout, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "metrics connection failed"),
        Err(_) => tracing::debug!("metrics connection timed out"),
    }
}

//! The accept loop: TCP in, TLS, HTTP/2 or HTTP/1.1, and an orderly end.
//!
//! Each connection is a task of its own, from the handshake on. What one client
//! does wrong ends its own task and nothing else, and is logged at `debug` with
//! the client's address, never with a byte it sent.
//!
//! Every wait for a client has an end: the handshake, the first request, the
//! time between two requests. Between a request's head and its answer the
//! router is in charge: it must bound the reading of the body.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use lockkeeper_api::config::WebhookSettings;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, error, warn};

use crate::load_shedding::LogThrottle;

mod connection;
mod requests;

use connection::Connection;

/// Wait after a failed accept, in milliseconds. The usual cause is that the
/// process is out of file descriptors, and only other connections' ends help.
const ACCEPT_BACKOFF_MS: u64 = 100;

/// How long and how many: what clients may take of the server. A duration
/// longer than a day counts as a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Longest a client may take for the TLS handshake.
    pub handshake_timeout: Duration,
    /// Longest from the handshake to the head of the first request. Of a later
    /// one, the head may take this much longer than [`Self::idle_timeout`].
    pub header_timeout: Duration,
    /// Longest between two requests on one connection; then it is closed in good order.
    pub idle_timeout: Duration,
    /// Longest for a connection that was told to close to finish its requests.
    pub drain_timeout: Duration,
    /// Connections open at once; the next ones wait in the kernel's queue. Zero
    /// serves nobody.
    pub connections_max: usize,
    /// Requests open at once on one connection of HTTP/2; a client may exceed it
    /// only by opening another.
    pub streams_max: u32,
    /// Longest for a client to take an answer; then the connection is closed.
    pub answer_timeout: Duration,
    /// Quiet time before an HTTP/2 client is sent a ping.
    pub ping_interval: Duration,
    /// Longest for it to answer the ping; then the connection is dropped.
    pub ping_timeout: Duration,
    /// The largest head of a request, in bytes; at least 8 KiB.
    pub head_max_bytes: u32,
    /// Header fields of a request on HTTP/1.1; at most 1,024.
    pub header_fields_max: usize,
    /// Requests of HTTP/2 that a client may open and take back before anybody has
    /// looked at them; the next one ends the connection (CVE-2023-44487).
    pub pending_resets_max: usize,
    /// Requests of HTTP/2 on one connection that may break the protocol; the next
    /// one ends it.
    pub faulty_streams_max: usize,
    /// The largest frame of HTTP/2 that is taken, in bytes; from 16 KiB to 16 MiB.
    pub frame_max_bytes: u32,
    /// What an HTTP/2 client may send ahead on one request, in bytes.
    pub stream_window_bytes: u32,
    /// What it may send ahead on all of a connection's requests together, in bytes.
    pub connection_window_bytes: u32,
    /// Shortest between two log lines about [`Self::connections_max`].
    pub log_interval: Duration,
}

impl From<&WebhookSettings> for ConnectionLimits {
    fn from(settings: &WebhookSettings) -> Self {
        let limits = &settings.limits;
        let http2 = &limits.http2;
        Self {
            handshake_timeout: limits.handshake_timeout_seconds.seconds(),
            header_timeout: limits.first_request_timeout_seconds.seconds(),
            idle_timeout: limits.idle_timeout_seconds.seconds(),
            drain_timeout: Duration::from_secs(settings.drain_seconds),
            connections_max: limits.connections_max.count(),
            streams_max: http2.streams_max.count_u32(),
            answer_timeout: limits.answer_timeout_seconds.seconds(),
            ping_interval: http2.ping_interval_seconds.seconds(),
            ping_timeout: http2.ping_timeout_seconds.seconds(),
            head_max_bytes: limits.head_max_bytes.count_u32(),
            header_fields_max: limits.header_fields_max.count(),
            pending_resets_max: http2.pending_resets_max.count(),
            faulty_streams_max: http2.faulty_streams_max.count(),
            frame_max_bytes: http2.frame_max_bytes.count_u32(),
            stream_window_bytes: http2.stream_window_bytes.count_u32(),
            connection_window_bytes: http2.connection_window_bytes.count_u32(),
            log_interval: limits.log_interval_seconds.seconds(),
        }
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self::from(&WebhookSettings::default())
    }
}

/// How the connections ended after the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "connections that were cut are worth a line in the log"]
pub struct DrainReport {
    /// Connections still open after [`Limits::drain_timeout`] and dropped as they were.
    pub connections_cut: usize,
}

/// What every connection is given.
struct ListenerState {
    tls: tokio_rustls::TlsAcceptor,
    router: Router,
    limits: ConnectionLimits,
}

/// Serves `router` on `tcp` until `shutdown` completes; then accepts no more,
/// lets every connection finish the requests it has, and returns when all are
/// closed, after [`Limits::drain_timeout`] at the latest.
///
/// A connection that is still in its handshake at that time is a client too: it
/// may finish it and is answered if its request comes along with it.
///
/// A panic in a handler ends that request (HTTP/2) or that connection (HTTP/1.1).
pub async fn serve(
    tcp: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    limits: ConnectionLimits,
    shutdown: impl Future<Output = ()>,
) -> DrainReport {
    let drain_timeout = limits.drain_timeout;
    let connections_max = limits.connections_max.min(Semaphore::MAX_PERMITS);
    let told = LogThrottle::new(limits.log_interval);
    let places = Arc::new(Semaphore::new(connections_max));
    let shared = Arc::new(ListenerState {
        tls: tls.into(),
        router,
        limits,
    });
    let (closing, _) = watch::channel(());
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        if places.available_permits() == 0 && told.is_due() {
            warn!(
                connections_max,
                "every place is taken; new connections wait"
            );
        }
        // Before the accept, so that what is over the limit waits in the
        // kernel's queue, where it costs us nothing.
        let place = tokio::select! {
            () = &mut shutdown => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let (stream, peer) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&tcp) => accepted,
        };
        let connection = Connection {
            peer,
            shared: Arc::clone(&shared),
            // From here on, so that a shutdown during the handshake is seen after it.
            closing: closing.subscribe(),
        };
        connections.spawn(async move {
            connection.run(stream).await;
            drop(place);
        });
        while let Some(ended) = connections.try_join_next() {
            log_panic(ended);
        }
    }
    drop(tcp);
    drain(closing, connections, drain_timeout).await
}

/// The next connection; failures to accept are waited out.
async fn accept(tcp: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match tcp.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_client_disconnect(&error) => {
                debug!(%error, "client left before the accept")
            }
            Err(error) => {
                warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(Duration::from_millis(ACCEPT_BACKOFF_MS)).await;
            }
        }
    }
}

/// True for errors of one connection, not of the listener.
fn is_client_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

/// Tells all connections to close, and counts those which have not in time.
async fn drain(
    closing: watch::Sender<()>,
    mut connections: JoinSet<()>,
    drain_timeout: Duration,
) -> DrainReport {
    closing.send_replace(());
    let all = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    };
    if tokio::time::timeout(drain_timeout, all).await.is_ok() {
        return DrainReport { connections_cut: 0 };
    }
    while let Some(ended) = connections.try_join_next() {
        log_panic(ended);
    }
    // Dropping the set aborts the rest. It isn't waited for: a handler that
    // never yields would hold up the exit.
    DrainReport {
        connections_cut: connections.len(),
    }
}

/// A panic is a defect of ours; a connection reports everything else itself.
fn log_panic(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("a connection's task panicked; the connection is lost, the server goes on");
    }
}

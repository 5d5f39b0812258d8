//! The accept loop: TCP, TLS, HTTP/2 or HTTP/1.1, and a graceful shutdown.
//!
//! Each connection is a separate task from the handshake on. An error of a client ends only its own task,
//! and is logged at `debug` with the client's address, never with its bytes.
//!
//! Every wait for a client has a timeout: the handshake, the first request, the time between two requests.
//! Between the head of a request and its response the router is responsible: it must limit the reading of
//! the body.

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
use crate::peer_shares::PeerShares;

mod connection;
mod requests;

use connection::Connection;

/// Pause after a failed accept, in milliseconds. The usual cause is a lack of file descriptors, which only
/// the end of other connections resolves.
const ACCEPT_BACKOFF_MS: u64 = 100;

/// Limits of connections and requests. A duration longer than a day counts as a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The longest TLS handshake.
    pub handshake_timeout: Duration,
    /// The longest time from the handshake to the head of the first request. The head of a later one
    /// may take this much longer than [`Self::idle_timeout`].
    pub header_timeout: Duration,
    /// The longest time between two requests on a connection; then it is closed gracefully.
    pub idle_timeout: Duration,
    /// The longest time for a closing connection to finish its requests.
    pub drain_timeout: Duration,
    /// Open connections; further ones wait in the kernel's queue. With zero, none is accepted.
    pub connections_max: usize,
    /// Open connections from one client address; further ones are closed at once.
    pub connections_per_peer_max: usize,
    /// Open requests on one HTTP/2 connection; more need another connection.
    pub streams_max: u32,
    /// The longest time for a client to read a response; then the connection is closed.
    pub answer_timeout: Duration,
    /// Idle time before an HTTP/2 client gets a ping.
    pub ping_interval: Duration,
    /// The longest time for the reply to a ping; then the connection is dropped.
    pub ping_timeout: Duration,
    /// The largest head of a request, in bytes; at least 8 KiB.
    pub head_max_bytes: u32,
    /// Header fields of an HTTP/1.1 request; at most 1,024.
    pub header_fields_max: usize,
    /// HTTP/2 requests that a client may reset before they are handled; one more ends the connection
    /// (CVE-2023-44487).
    pub pending_resets_max: usize,
    /// HTTP/2 requests of a connection that may violate the protocol; one more ends it.
    pub faulty_streams_max: usize,
    /// The largest HTTP/2 frame, in bytes; from 16 KiB to 16 MiB.
    pub frame_max_bytes: u32,
    /// The HTTP/2 flow-control window of a request, in bytes.
    pub stream_window_bytes: u32,
    /// The HTTP/2 flow-control window of a connection, in bytes.
    pub connection_window_bytes: u32,
    /// The shortest time between two log lines about [`Self::connections_max`].
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
            connections_per_peer_max: limits.connections_per_peer_max.count(),
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
    /// Connections that were still open after [`ConnectionLimits::drain_timeout`] and were dropped.
    pub connections_cut: usize,
}

/// State shared by all connections.
struct ListenerState {
    tls: tokio_rustls::TlsAcceptor,
    router: Router,
    limits: ConnectionLimits,
}

/// Serves `router` on `tcp` until `shutdown` completes; then accepts no more connections, lets every
/// connection finish its requests, and returns when all are closed, after
/// [`ConnectionLimits::drain_timeout`] at the latest.
///
/// A connection that is in its handshake at that time may finish it, and its first request gets a response
/// if it arrives with it.
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
    let limit_log = LogThrottle::new(limits.log_interval);
    let peer_log = LogThrottle::new(limits.log_interval);
    let peers = PeerShares::new(limits.connections_per_peer_max);
    let permits = Arc::new(Semaphore::new(connections_max));
    let shared = Arc::new(ListenerState {
        tls: tls.into(),
        router,
        limits,
    });
    let (closing, _) = watch::channel(());
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        if permits.available_permits() == 0 && limit_log.is_due() {
            warn!(
                connections_max,
                "every place is taken; new connections wait"
            );
        }
        // Before the accept, so that connections over the limit wait in the kernel's queue, where
        // they cost nothing.
        let place = tokio::select! {
            () = &mut shutdown => break,
            place = Arc::clone(&permits).acquire_owned() => place,
        };
        let (stream, peer) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&tcp) => accepted,
        };
        // Closed before the handshake: waiting would let one client fill the queue for all.
        let Some(share) = peers.take_one(peer.ip()) else {
            if peer_log.is_due() {
                let (address, connections) = (peer.ip(), peers.max());
                warn!(%address, connections, "closed a connection: the address has its share of them");
            }
            continue;
        };
        let connection = Connection {
            peer,
            shared: Arc::clone(&shared),
            // Subscribed here, so that a shutdown during the handshake is noticed after it.
            closing: closing.subscribe(),
        };
        connections.spawn(async move {
            connection.run(stream).await;
            drop((place, share));
        });
        // The set keeps the result of an ended task until it is joined.
        while let Some(ended) = connections.try_join_next() {
            log_panic(ended);
        }
    }
    // Closes the port before the drain, so that new clients do not wait in the kernel's queue.
    drop(tcp);
    drain(closing, connections, drain_timeout).await
}

/// Accepts the next connection; pauses after a failure.
async fn accept(tcp: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match tcp.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_client_disconnect(&error) => {
                debug!(%error, "client left before the accept");
            }
            Err(error) => {
                warn!(%error, "cannot accept connections; retrying");
                tokio::time::sleep(Duration::from_millis(ACCEPT_BACKOFF_MS)).await;
            }
        }
    }
}

/// Returns true for errors of one connection, not of the listener.
fn is_client_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

/// Signals all connections to close, and counts those that did not in time.
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
    // Connections that ended together with the timeout were not cut.
    while let Some(ended) = connections.try_join_next() {
        log_panic(ended);
    }
    // Dropping the set aborts the rest. It is not awaited: a handler that never yields would delay the
    // exit.
    DrainReport {
        connections_cut: connections.len(),
    }
}

/// A panic is a defect of lockkeeper; every other error is reported by the connection itself.
fn log_panic(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("the task of a connection panicked; the connection is lost, the server continues");
    }
}

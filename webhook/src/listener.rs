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
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, error, warn};

use crate::limits::Throttle;

mod connection;
mod requests;

use connection::Connection;

/// Longest a client may take for the handshake, in seconds.
const HANDSHAKE_TIMEOUT_S: u64 = 10;

/// Longest from the handshake to the first request, in seconds.
const HEADER_TIMEOUT_S: u64 = 10;

/// Longest between two requests, in seconds. Above the 90 seconds after which
/// Go's client, and with it the API server, drops an idle connection: if the
/// server closed first, a request could be on its way into the closed door.
const IDLE_TIMEOUT_S: u64 = 120;

/// Longest for a connection that was told to close, in seconds. Below the 30
/// that Kubernetes gives a pod to end, above the 10 of an admission request.
const DRAIN_TIMEOUT_S: u64 = 20;

/// Connections open at once, those in the handshake included.
const CONNECTIONS_MAX: usize = 4_096;

/// Requests open at once on one connection of HTTP/2, as many as Go's own servers take.
const STREAMS_MAX: u32 = 250;

/// Longest for a client to take an answer that is ready, in seconds. HTTP/2 lets it refuse the bytes
/// for as long as it likes.
const ANSWER_TIMEOUT_S: u64 = 10;

/// The largest head of a request, in bytes: 16 KiB. The API server's are below 1 KiB.
const HEAD_MAX_BYTES: u32 = 16 * 1024;

/// Header fields of a request on HTTP/1.1.
const HEADER_FIELDS_MAX: usize = 64;

/// The largest frame of HTTP/2 that is taken, in bytes: the smallest limit there is.
const FRAME_MAX_BYTES: u32 = 16 * 1024;

/// What an HTTP/2 client may send ahead on one request, in bytes: 1 MiB.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;

/// What it may send ahead on all of a connection's requests together, in bytes: 1 MiB.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Requests of HTTP/2 that a client may open and take back before anybody has looked at them; the
/// next one ends the connection (CVE-2023-44487).
const PENDING_RESETS_MAX: usize = 20;

/// Requests of HTTP/2 on one connection that may break the protocol; the next one ends it.
const FAULTY_STREAMS_MAX: usize = 1_024;

/// Quiet time before an HTTP/2 client is asked whether it lives, in seconds.
const PING_INTERVAL_S: u64 = 20;

/// Longest for it to say so, in seconds.
const PING_TIMEOUT_S: u64 = 10;

/// Wait after a failed accept, in milliseconds. The usual cause is that the
/// process is out of file descriptors, and only other connections' ends help.
const ACCEPT_BACKOFF_MS: u64 = 100;

/// How long and how many: what clients may take of the server. A duration
/// longer than a day counts as a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(HANDSHAKE_TIMEOUT_S),
            header_timeout: Duration::from_secs(HEADER_TIMEOUT_S),
            idle_timeout: Duration::from_secs(IDLE_TIMEOUT_S),
            drain_timeout: Duration::from_secs(DRAIN_TIMEOUT_S),
            connections_max: CONNECTIONS_MAX,
            streams_max: STREAMS_MAX,
            answer_timeout: Duration::from_secs(ANSWER_TIMEOUT_S),
            ping_interval: Duration::from_secs(PING_INTERVAL_S),
            ping_timeout: Duration::from_secs(PING_TIMEOUT_S),
        }
    }
}

/// How the connections ended after the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "connections that were cut are worth a line in the log"]
pub struct Drained {
    /// Connections still open after [`Limits::drain_timeout`] and dropped as they were.
    pub cut: usize,
}

/// What every connection is given.
struct Shared {
    tls: tokio_rustls::TlsAcceptor,
    router: Router,
    limits: Limits,
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
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> Drained {
    let drain_timeout = limits.drain_timeout;
    let connections_max = limits.connections_max.min(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(connections_max));
    let shared = Arc::new(Shared {
        tls: tls.into(),
        router,
        limits,
    });
    let (closing, _) = watch::channel(());
    let mut connections = JoinSet::new();
    let told = Throttle::default();
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
            report(ended);
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
            Err(error) if client_left(&error) => debug!(%error, "client left before the accept"),
            Err(error) => {
                warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(Duration::from_millis(ACCEPT_BACKOFF_MS)).await;
            }
        }
    }
}

/// True for errors of one connection, not of the listener.
fn client_left(error: &io::Error) -> bool {
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
) -> Drained {
    closing.send_replace(());
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(drain_timeout, all).await.is_ok() {
        return Drained { cut: 0 };
    }
    while let Some(ended) = connections.try_join_next() {
        report(ended);
    }
    // Dropping the set aborts the rest. It isn't waited for: a handler that
    // never yields would hold up the exit.
    Drained {
        cut: connections.len(),
    }
}

/// A panic is a defect of ours; a connection reports everything else itself.
fn report(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("a connection's task panicked; the connection is lost, the server goes on");
    }
}

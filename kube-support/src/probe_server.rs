//! A plain HTTP port for probes and metrics that no client can fill: a new connection closes an old one.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lockkeeper_api::config::MetricsLimits;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Limits of the connections to the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeServerLimits {
    /// Connections open at once. A further one closes the oldest of the address with the most connections.
    pub connections_max: usize,
    /// Connections open at once from one address. A further one closes the oldest of them.
    pub connections_per_peer_max: usize,
    /// Longest for the head of the request to arrive.
    pub header_timeout: Duration,
    /// Longest for a connection in all.
    pub connection_timeout: Duration,
}

impl ProbeServerLimits {
    /// The limits of a port with probes only: a kubelet sends its request at once, and the response is
    /// a few bytes.
    #[must_use]
    pub const fn for_probes() -> Self {
        Self {
            connections_max: 64,
            connections_per_peer_max: 16,
            header_timeout: Duration::from_secs(2),
            connection_timeout: Duration::from_secs(5),
        }
    }
}

impl From<&MetricsLimits> for ProbeServerLimits {
    fn from(settings: &MetricsLimits) -> Self {
        Self {
            connections_max: settings.connections_max.count(),
            connections_per_peer_max: settings.connections_per_peer_max.count(),
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

/// Serves `router` on a thread of its own, so that no load on the other threads delays a probe. The thread
/// runs until the process ends.
///
/// # Errors
///
/// If the listener cannot be moved to the thread, or the thread cannot be started.
pub fn serve_on_own_thread(
    tcp: TcpListener,
    router: Router,
    limits: ProbeServerLimits,
) -> io::Result<()> {
    let tcp = tcp.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let serve = move || {
        runtime.block_on(async {
            match TcpListener::from_std(tcp) {
                Ok(tcp) => serve_router(tcp, router, limits).await,
                Err(error) => tracing::error!(%error, "cannot serve probes"),
            }
        });
    };
    thread::Builder::new()
        .name("probes".to_owned())
        .spawn(serve)?;
    Ok(())
}

/// Serves `router` on `tcp` within `limits`. Runs until it is dropped.
pub async fn serve_router(tcp: TcpListener, router: Router, limits: ProbeServerLimits) {
    let mut open = OpenConnections::new(limits);
    loop {
        match tcp.accept().await {
            Ok((stream, peer)) => {
                // Before the task, so that the number of open connections never exceeds the limit for long.
                open.make_room(peer.ip());
                let task = tokio::spawn(serve_connection(stream, router.clone(), limits));
                open.add(peer.ip(), task.abort_handle());
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection on the probe port; retrying");
                tokio::time::sleep(Duration::from_millis(ACCEPT_BACKOFF_MS)).await;
            }
        }
    }
}

/// The open connections, the oldest first.
struct OpenConnections {
    limits: ProbeServerLimits,
    by_age: VecDeque<(IpAddr, AbortHandle)>,
}

impl Drop for OpenConnections {
    fn drop(&mut self) {
        for (_, task) in &self.by_age {
            task.abort();
        }
    }
}

impl OpenConnections {
    fn new(limits: ProbeServerLimits) -> Self {
        Self {
            limits,
            by_age: VecDeque::new(),
        }
    }

    /// Closes a connection if one more from this address would exceed a limit.
    ///
    /// Waiting in the kernel's queue instead would let idle clients delay a probe until it times out.
    fn make_room(&mut self, peer: IpAddr) {
        self.by_age.retain(|(_, task)| !task.is_finished());
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (address, _) in &self.by_age {
            let count = counts.entry(*address).or_default();
            *count = count.saturating_add(1);
        }
        let own = counts.get(&peer).copied().unwrap_or_default();
        let victim = if own >= self.limits.connections_per_peer_max.max(1) {
            Some(peer)
        } else if self.by_age.len() >= self.limits.connections_max.max(1) {
            let most = counts.into_iter().max_by_key(|(_, count)| *count);
            most.map(|(address, _)| address)
        } else {
            None
        };
        let position = self
            .by_age
            .iter()
            .position(|(address, _)| Some(*address) == victim);
        if let Some((_, task)) = position.and_then(|at| self.by_age.remove(at)) {
            task.abort();
        }
    }

    fn add(&mut self, peer: IpAddr, task: AbortHandle) {
        self.by_age.push_back((peer, task));
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
        Ok(Err(error)) => tracing::debug!(%error, "probe connection failed"),
        Err(_) => tracing::debug!("probe connection timed out"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use axum::routing::get;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream as StdStream};

    /// Starts a port on its own thread; a client that does nothing is closed after an hour.
    fn start(connections_max: usize, connections_per_peer_max: usize) -> SocketAddr {
        let limits = ProbeServerLimits {
            connections_max,
            connections_per_peer_max,
            header_timeout: Duration::from_hours(1),
            connection_timeout: Duration::from_hours(1),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let router = Router::new().route("/livez", get(async || "ok\n"));
        runtime.block_on(async {
            let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = tcp.local_addr().unwrap();
            serve_on_own_thread(tcp, router, limits).unwrap();
            address
        })
    }

    fn probe(address: SocketAddr) -> String {
        let mut stream = StdStream::connect(address).unwrap();
        stream
            .write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn probe_is_answered_while_300_idle_sockets_are_open() {
        for (all, per_peer) in [(16, 4), (16, 16), (16, 1_000)] {
            let address = start(all, per_peer);
            let idle: Vec<StdStream> = (0..300)
                .map(|_| StdStream::connect(address).unwrap())
                .collect();
            for _ in 0..20 {
                assert!(probe(address).ends_with("ok\n"));
            }
            drop(idle);
        }
    }

    #[tokio::test]
    async fn open_connections_full_port_closes_oldest_of_busiest_peer() {
        let mut open = OpenConnections::new(ProbeServerLimits {
            connections_max: 4,
            connections_per_peer_max: 3,
            ..ProbeServerLimits::for_probes()
        });
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|it| it.parse().unwrap());
        let mut tasks = Vec::new();
        for peer in [b, a, a, a, a, c] {
            open.make_room(peer);
            let task = tokio::spawn(std::future::pending::<()>());
            open.add(peer, task.abort_handle());
            tasks.push(task);
        }
        let left: Vec<IpAddr> = open.by_age.iter().map(|(peer, _)| *peer).collect();
        // The fourth of `a` closes its first one; the one of `c` closes the next of `a`.
        assert_eq!(left, [b, a, a, c]);
        let closed = tasks.remove(1).await;
        assert!(closed.unwrap_err().is_cancelled());
        let closed = tasks.remove(1).await;
        assert!(closed.unwrap_err().is_cancelled());
    }
}

//! A load balancer in the test process: it sends new connections to ready replicas.
//!
//! It models how kube-proxy uses readiness. New connections go round-robin to the replicas whose last `/readyz` probe
//! returned 200. An open connection stays with its replica, even if the replica becomes unready, and breaks with it.
//! One difference: if a replica does not accept a connection, the balancer tries the next replica at once.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::https::Endpoint;
use crate::wait;

/// Time between two readiness probes of the replicas.
const PROBE_INTERVAL_MS: u64 = 100;

/// A running balancer. Dropping it closes its connections.
pub struct Balancer {
    port: u16,
    shared: Arc<BalancerState>,
    threads: Vec<JoinHandle<()>>,
}

struct BalancerState {
    ca: PathBuf,
    is_stopping: AtomicBool,
    replicas: Mutex<Vec<Replica>>,
    connections: Mutex<Vec<Arc<Connection>>>,
    /// Round-robin counter.
    next_replica: AtomicUsize,
    /// Number of connections forwarded so far.
    connections_total: AtomicU64,
}

#[derive(Clone, Copy)]
struct Replica {
    port: u16,
    is_ready: bool,
}

/// An open connection and the replica it goes to.
struct Connection {
    replica: u16,
    client: TcpStream,
    server: TcpStream,
    /// The client has closed its side and no longer uses the connection.
    is_over: AtomicBool,
}

impl Balancer {
    /// Starts a balancer without replicas. `ca` signs the certificates of the replicas.
    pub fn start(ca: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(BalancerState {
            ca: ca.to_owned(),
            is_stopping: AtomicBool::new(false),
            replicas: Mutex::default(),
            connections: Mutex::default(),
            next_replica: AtomicUsize::new(0),
            connections_total: AtomicU64::new(0),
        });
        let (accepting, probing) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            thread::spawn(move || accepting.accept(&listener)),
            thread::spawn(move || probing.probe()),
        ];
        Ok(Self {
            port,
            shared,
            threads,
        })
    }

    /// The webhook URL for the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Adds a replica, which gets connections once it is ready.
    pub fn add(&self, port: u16) {
        let is_ready = false;
        lock(&self.shared.replicas).push(Replica { port, is_ready });
    }

    /// Waits until exactly these replicas are ready.
    #[track_caller]
    pub fn wait_ready(&self, ports: &[u16]) {
        let ready = || {
            let replicas = lock(&self.shared.replicas);
            let ready = replicas.iter().filter(|replica| replica.is_ready);
            let ready: Vec<u16> = ready.map(|replica| replica.port).collect();
            Ok((ready == ports).then_some(()))
        };
        let late = || format!("not ready in time: {ports:?}");
        wait::until(ready, late).unwrap_or_else(|e| panic!("{e}"));
    }

    /// Number of open connections to this replica.
    pub fn connections_to(&self, port: u16) -> usize {
        let connections = lock(&self.shared.connections);
        connections.iter().filter(|it| it.replica == port).count()
    }

    /// Number of connections forwarded so far.
    pub fn connections_total(&self) -> u64 {
        self.shared.connections_total.load(Ordering::SeqCst)
    }

    /// Closes every connection and waits until the clients have noticed, so that no client sends another request on
    /// an old connection. Call it only while no request is in flight.
    #[track_caller]
    pub fn close_connections(&self) {
        let old: Vec<_> = lock(&self.shared.connections).clone();
        for connection in &old {
            // Fails only if the connection is already closed.
            let _ = connection.client.shutdown(Shutdown::Write);
        }
        let seen = || {
            let mut all = old.iter();
            Ok(all
                .all(|it| it.is_over.load(Ordering::SeqCst))
                .then_some(()))
        };
        wait::until(seen, || "a client keeps a closed connection".to_owned()).unwrap();
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        // Wakes up the accepting thread.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        for connection in lock(&self.shared.connections).iter() {
            connection.close();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl BalancerState {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_stopping.load(Ordering::SeqCst) {
                return;
            }
            // Without a ready replica the connection is dropped, and the client sees it closed.
            let Ok(client) = client else { continue };
            let Some((replica, server)) = self.connect() else {
                continue;
            };
            if let Err(error) = self.pass(replica, client, server) {
                eprintln!("balancer: {error}");
            }
        }
    }

    /// Connects to the next replica that is ready and accepts the connection.
    fn connect(&self) -> Option<(u16, TcpStream)> {
        let replicas = lock(&self.replicas).clone();
        let ready: Vec<_> = replicas.iter().filter(|replica| replica.is_ready).collect();
        let turn = self.next_replica.fetch_add(1, Ordering::SeqCst);
        (0..ready.len()).find_map(|step| {
            let port = ready[(turn + step) % ready.len()].port;
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
            Some((port, server))
        })
    }

    fn pass(
        self: &Arc<Self>,
        replica: u16,
        client: TcpStream,
        server: TcpStream,
    ) -> io::Result<()> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let connection = Arc::new(Connection {
            replica,
            client,
            server,
            is_over: AtomicBool::new(false),
        });
        lock(&self.connections).push(Arc::clone(&connection));
        self.connections_total.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(self);
        thread::spawn(move || {
            connection.run();
            lock(&shared.connections).retain(|it| !Arc::ptr_eq(it, &connection));
        });
        Ok(())
    }

    fn probe(&self) {
        while !self.is_stopping.load(Ordering::SeqCst) {
            let ports: Vec<u16> = lock(&self.replicas)
                .iter()
                .map(|replica| replica.port)
                .collect();
            for port in ports {
                let endpoint = Endpoint {
                    port,
                    ca: &self.ca,
                    token: None,
                };
                let is_ready = endpoint.get("/readyz").is_some_and(|(code, _)| code == 200);
                let mut replicas = lock(&self.replicas);
                for replica in replicas.iter_mut().filter(|it| it.port == port) {
                    replica.is_ready = is_ready;
                }
            }
            thread::sleep(Duration::from_millis(PROBE_INTERVAL_MS));
        }
    }
}

impl Connection {
    /// Copies bytes in both directions until both sides have closed.
    fn run(self: &Arc<Self>) {
        let other = Arc::clone(self);
        let answers = thread::spawn(move || {
            if io::copy(&mut &other.server, &mut &other.client).is_err() {
                other.close();
            }
            // Pass the server's close on to the client, which may still be sending.
            let _ = other.client.shutdown(Shutdown::Write);
        });
        if io::copy(&mut &self.client, &mut &self.server).is_err() {
            self.close();
        }
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.server.shutdown(Shutdown::Write);
        let _ = answers.join();
    }

    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

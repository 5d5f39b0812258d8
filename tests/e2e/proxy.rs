//! A proxy between the controller and the API server that injects delays and faults.
//!
//! It serves plain HTTP/1.1 and adds the credentials. It is deterministic: a fault occurs at every n-th request or
//! event, starting with the first, and is counted.

mod faults;
mod frozen_connections;
mod write_hold;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::faults::{Disposition, collection, error_response, is_watch, is_write, path, status};
pub use self::faults::{FaultCounts, Faults};
use self::frozen_connections::FrozenConnections;
use self::write_hold::WriteHold;
pub use self::write_hold::WritePattern;
use crate::client::{HttpMessage, Until};
use crate::https::Stream;
use crate::watcher::{InterruptibleStream, WatchServer};

/// A running proxy. Dropping it breaks its connections.
pub struct Proxy {
    port: u16,
    shared: Arc<ProxyState>,
    thread: Option<JoinHandle<()>>,
}

struct ProxyState {
    server: WatchServer,
    is_stopping: AtomicBool,
    faults: Mutex<Faults>,
    counts: Mutex<FaultCounts>,
    /// The expired versions, by path of a collection: older ones than this have expired.
    oldest: Mutex<BTreeMap<String, u64>>,
    clients: Mutex<Vec<Arc<TcpStream>>>,
    frozen: FrozenConnections,
    hold: WriteHold,
}

impl Proxy {
    /// A proxy without faults.
    pub fn start(server: WatchServer) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(ProxyState {
            server,
            is_stopping: AtomicBool::new(false),
            faults: Mutex::default(),
            counts: Mutex::default(),
            oldest: Mutex::default(),
            clients: Mutex::default(),
            frozen: FrozenConnections::default(),
            hold: WriteHold::default(),
        });
        let accepting = Arc::clone(&shared);
        let thread = thread::spawn(move || accepting.accept(&listener));
        Ok(Self {
            port,
            shared,
            thread: Some(thread),
        })
    }

    /// Sets the faults from now on.
    pub fn set(&self, faults: Faults) {
        *lock(&self.shared.faults) = faults;
    }

    /// Every request gets 503 from now on, and open connections break.
    pub fn begin_outage(&self) {
        self.set(Faults {
            unavailable: true,
            ..Faults::default()
        });
        self.break_connections();
    }

    /// Open connections stay open and forward nothing any more. New ones work.
    pub fn freeze(&self) {
        self.shared.frozen.freeze();
    }

    /// Holds the next write with this pattern until `release`; a write that is held already stays held.
    pub fn hold(&self, pattern: WritePattern) {
        self.shared.hold.arm(pattern);
    }

    pub fn is_holding(&self) -> bool {
        self.shared.hold.is_holding()
    }

    /// Forwards the held write, even if its client is gone.
    pub fn release(&self) {
        self.shared.hold.release();
    }

    /// Takes the status of the API server's answer to the released write; `None` before the answer.
    pub fn take_answer_to_held(&self) -> Option<u16> {
        self.shared.hold.take_answer()
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    fn break_connections(&self) {
        for client in lock(&self.shared.clients).iter() {
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    pub fn counts(&self) -> FaultCounts {
        *lock(&self.shared.counts)
    }

    /// Writes a kubeconfig for the proxy into a folder.
    pub fn kubeconfig(&self, folder: &Path) -> io::Result<PathBuf> {
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "proxy", "cluster": {"server": format!("http://127.0.0.1:{}", self.port)},
            }],
            "users": [{"name": "proxied", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxied"}}],
            "current-context": "proxy",
        });
        fs::create_dir_all(folder)?;
        let path = folder.join("kubeconfig-proxy");
        fs::write(&path, format!("{kubeconfig:#}\n"))?;
        Ok(path)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.hold.release();
        self.shared.frozen.stop();
        self.break_connections();
    }
}

impl ProxyState {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_stopping.load(Ordering::SeqCst) {
                return;
            }
            let Ok(client) = client else { continue };
            let client = Arc::new(client);
            lock(&self.clients).push(Arc::clone(&client));
            let shared = Arc::clone(self);
            thread::spawn(move || {
                // Ends when one side closes, or when the proxy breaks the connection.
                let _ = shared.serve(&client);
                let _ = client.shutdown(Shutdown::Both);
                lock(&shared.clients).retain(|it| !Arc::ptr_eq(it, &client));
            });
        }
    }

    /// A frozen connection stays frozen until the proxy stops, which is an error here.
    fn wait_if_frozen(&self, number: u64) -> io::Result<()> {
        if self.frozen.contains(number) {
            return self.wait_until_stopped();
        }
        Ok(())
    }

    fn wait_until_stopped(&self) -> io::Result<()> {
        self.frozen.wait_until_stopped();
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Handles the requests of one connection, until it breaks.
    fn serve(self: &Arc<Self>, mut client: &TcpStream) -> io::Result<()> {
        let number = self.frozen.open();
        client.set_nodelay(true)?;
        let mut requests = BufReader::new(client);
        let mut upstream = None;
        loop {
            let mut request = HttpMessage::receive(&mut requests, Until::Head)?;
            request.fields.retain(|(name, _)| name != "authorization");
            let token = format!("Bearer {}", self.server.token);
            request.fields.push(("authorization".to_owned(), token));
            self.wait_if_frozen(number)?;
            let faults = *lock(&self.faults);
            let fate = {
                let oldest = lock(&self.oldest);
                lock(&self.counts).dispose(&request, &faults, &oldest)
            };
            self.delay(Instant::now(), faults.delay_ms(&request.first));
            let is_held = self.hold.hold_if_matching(&request);
            if is_held {
                // The connection may have timed out meanwhile.
                upstream = None;
            }
            let answer = match fate {
                Disposition::Respond(code, reason) => Ok(error_response(code, reason)),
                Disposition::Forward if is_watch(&request) => {
                    return self.forward_watch(client, request, number);
                }
                Disposition::Forward | Disposition::DropResponse | Disposition::FreezeAfterHead => {
                    self.forward(&request, &mut upstream)
                }
            };
            if is_write(&request) {
                // Before the client gets the response and may start the next write.
                lock(&self.counts).in_flight -= 1;
            }
            if is_held && let Some(status) = answer.as_ref().ok().and_then(HttpMessage::status) {
                self.hold.record_answer(status);
            }
            if matches!(fate, Disposition::DropResponse) {
                return Ok(());
            }
            self.wait_if_frozen(number)?;
            let answer = answer?;
            if matches!(fate, Disposition::FreezeAfterHead) {
                client.write_all(&answer.head_with_length())?;
                return self.wait_until_stopped();
            }
            answer.send(&mut client)?;
        }
    }

    fn delay(&self, since: Instant, latency_ms: u64) {
        if latency_ms > 0 {
            lock(&self.counts).late += 1;
            // The injected fault.
            thread::sleep(Duration::from_millis(latency_ms).saturating_sub(since.elapsed()));
        }
    }

    /// Forwards a request over a persistent connection.
    fn forward(
        &self,
        request: &HttpMessage,
        upstream: &mut Option<BufReader<Stream>>,
    ) -> io::Result<HttpMessage> {
        let mut connection = match upstream.take() {
            Some(connection) => connection,
            None => BufReader::new(self.server.endpoint().handshake(&["http/1.1"])?),
        };
        request.send(connection.get_mut())?;
        let answer = HttpMessage::receive(&mut connection, Until::Closed)?;
        if !answer.is_last {
            *upstream = Some(connection);
        }
        Ok(answer)
    }

    /// Forwards a watch until it ends or breaks; then the connection is closed.
    fn forward_watch(
        self: &Arc<Self>,
        mut client: &TcpStream,
        mut request: HttpMessage,
        number: u64,
    ) -> io::Result<()> {
        // HTTP/1.0 has no chunked encoding: each event is a line.
        request.first = request.first.replace("HTTP/1.1", "HTTP/1.0");
        let (sender, events) = mpsc::channel();
        let shared = Arc::clone(self);
        let (head, path) = (request.head(), path(&request).to_owned());
        let first = request.first;
        // A separate thread, so that a delayed event does not delay later ones.
        thread::spawn(move || {
            // The connection is closed in every case.
            let _ = shared.read_watch(&head, &sender);
        });
        if let Ok((_, head)) = events.recv() {
            client.write_all(&head)?;
        }
        for (forwarded, (at, event)) in events.iter().enumerate() {
            let faults = *lock(&self.faults);
            self.delay(at, faults.delay_ms(&first) + faults.lag_ms);
            self.wait_if_frozen(number)?;
            let is_meant = collection(&path).ends_with(faults.watches);
            if is_meant && self.break_watch_if_due(forwarded, &path, &event, &faults, client)? {
                return Ok(());
            }
            lock(&self.counts).events += 1;
            chunk(client, &event)?;
        }
        self.wait_if_frozen(number)?;
        client.write_all(b"0\r\n\r\n")
    }

    /// Sends the head of the response as the first line, and then each event.
    fn read_watch(&self, head: &str, sender: &mpsc::Sender<(Instant, Vec<u8>)>) -> io::Result<()> {
        let stream = self.server.endpoint().handshake(&["http/1.1"])?;
        let mut lines = BufReader::new(InterruptibleStream::new(stream, &self.is_stopping)?);
        lines.get_mut().write_all(head.as_bytes())?;
        let mut line = String::new();
        let mut status = String::new();
        while lines.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
            if status.is_empty() {
                line.trim_end().clone_into(&mut status);
            }
            line.clear();
        }
        let status = status.replace("HTTP/1.0", "HTTP/1.1");
        let begin = format!(
            "{status}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\
             connection: close\r\n\r\n"
        );
        let mut line = begin.into_bytes();
        while !line.is_empty() && sender.send((Instant::now(), line)).is_ok() {
            line = Vec::new();
            lines.read_until(b'\n', &mut line)?;
        }
        Ok(())
    }

    /// Whether a watch breaks after this many events, instead of the next.
    fn break_watch_if_due(
        &self,
        forwarded: usize,
        path: &str,
        line: &[u8],
        faults: &Faults,
        client: &TcpStream,
    ) -> io::Result<bool> {
        if faults.gone > 0 && forwarded >= faults.gone {
            let event: Value = serde_json::from_slice(line)?;
            let version = event["object"]["metadata"]["resourceVersion"].as_str();
            let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
            let is_in_stream = {
                let mut counts = lock(&self.counts);
                let is_in_stream = counts.gone_in_stream <= counts.gone_at_start;
                counts.gone_in_stream += usize::from(is_in_stream);
                is_in_stream
            };
            lock(&self.oldest).insert(collection(path).to_owned(), version);
            if is_in_stream {
                let event = json!({"type": "ERROR", "object": status(410, "Expired")});
                chunk(client, format!("{event}\n").as_bytes())?;
            }
            return Ok(true);
        }
        if faults.cut > 0 && forwarded >= faults.cut {
            lock(&self.counts).cut += 1;
            return Ok(true);
        }
        Ok(false)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn chunk(mut client: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let size = format!("{:x}\r\n", bytes.len());
    client.write_all(&[size.as_bytes(), bytes, b"\r\n"].concat())
}

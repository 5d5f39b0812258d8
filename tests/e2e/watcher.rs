//! Every version of every object of a collection, as the API server's watch shows them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::https::{Endpoint, Stream};

/// Interval at which an idle watch checks whether it was stopped.
const PAUSE_MS: u64 = 200;

/// The API server and the token of the client.
#[derive(Clone)]
pub struct WatchServer {
    pub port: u16,
    pub ca: PathBuf,
    pub token: &'static str,
}

impl WatchServer {
    pub fn endpoint(&self) -> Endpoint<'_> {
        Endpoint {
            port: self.port,
            ca: &self.ca,
            token: Some(self.token),
        }
    }
}

/// A watch of one collection. Dropping it ends it.
pub struct Watch {
    observed: Arc<Mutex<ObservedVersions>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct ObservedVersions {
    versions: Vec<Value>,
    /// The cause if it ended by itself.
    error: Option<String>,
}

impl Watch {
    /// Starts after the resource version `from` of a list of the collection at `path`.
    pub fn start(server: WatchServer, path: String, from: String) -> Self {
        let observed = Arc::new(Mutex::new(ObservedVersions::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (into, until) = (Arc::clone(&observed), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            let mut version = from;
            while !until.load(Ordering::Relaxed) {
                match run(&server.endpoint(), &path, &mut version, &into, &until) {
                    Ok(()) => {}
                    // The API server may be down: the watch resumes at its last version.
                    Err(e) if is_broken(&e) => thread::sleep(Duration::from_millis(PAUSE_MS)),
                    Err(e) => {
                        lock(&into).error = Some(format!("{path}: {e}"));
                        return;
                    }
                }
            }
        });
        Self {
            observed,
            is_over,
            thread: Some(thread),
        }
    }

    /// All versions so far, in order. A deleted object has `deletedVersion`.
    #[track_caller]
    pub fn versions(&self) -> Vec<Value> {
        self.versions_after(0)
    }

    /// The same, without the first ones.
    #[track_caller]
    pub fn versions_after(&self, first: usize) -> Vec<Value> {
        let seen = lock(&self.observed);
        assert_eq!(seen.error, None, "the watch is not whole");
        seen.versions[first..].to_vec()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(seen: &Mutex<ObservedVersions>) -> MutexGuard<'_, ObservedVersions> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether only the connection broke: the watch resumes without losing versions.
fn is_broken(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::Other | io::ErrorKind::InvalidData
    )
}

fn run(
    endpoint: &Endpoint<'_>,
    path: &str,
    version: &mut String,
    into: &Mutex<ObservedVersions>,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let stream = endpoint.handshake(&["http/1.1"])?;
    let mut lines = BufReader::new(InterruptibleStream::new(stream, is_over)?);
    let mut token = String::new();
    if let Some(it) = endpoint.token {
        token = format!("Authorization: Bearer {it}\r\n");
    }
    // HTTP/1.0 has no chunked encoding: each event is a line.
    write!(
        lines.get_mut(),
        "GET {path}?watch=1&allowWatchBookmarks=true&resourceVersion={version} HTTP/1.0\r\n\
         Host: 127.0.0.1\r\n{token}Accept: application/json\r\n\r\n"
    )?;
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
    while !line.trim_end().is_empty() {
        line.clear();
        lines.read_line(&mut line)?;
    }
    if status != "200" {
        // The API server is starting or stopping.
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Ok(());
        }
        let mut event: Value = serde_json::from_str(&line)?;
        let mut object = event["object"].take();
        if event["type"] == "ERROR" {
            return Err(io::Error::other(object.to_string()));
        }
        let at = object["metadata"]["resourceVersion"].as_str();
        at.ok_or(io::ErrorKind::InvalidData)?.clone_into(version);
        if event["type"] == "DELETED" {
            object["deletedVersion"] = version.as_str().into();
        }
        if event["type"] != "BOOKMARK" {
            lock(into).versions.push(object);
        }
    }
}

/// A stream whose reads wait for data until the watch is stopped.
pub struct InterruptibleStream<'a> {
    stream: Stream,
    is_over: &'a AtomicBool,
}

impl<'a> InterruptibleStream<'a> {
    pub fn new(stream: Stream, is_over: &'a AtomicBool) -> io::Result<Self> {
        let pause = Duration::from_millis(PAUSE_MS);
        stream.sock.set_read_timeout(Some(pause))?;
        Ok(Self { stream, is_over })
    }
}

impl Write for InterruptibleStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Read for InterruptibleStream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(into) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if self.is_over.load(Ordering::Relaxed) {
                        return Ok(0);
                    }
                }
                // A server that is killed does not end TLS.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
        }
    }
}

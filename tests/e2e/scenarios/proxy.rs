//! The faults of the proxy, between a client and a server without a cluster.

use std::io::{self, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::thread;

use super::without_cluster::StandaloneTrial;
use crate::client::{HttpMessage, Until};
use crate::lockkeeper::Lockkeeper;
use crate::proxy::{Faults, Proxy, WritePattern};
use crate::wait;
use crate::watcher::WatchServer;

pub fn trials_without_cluster() -> Vec<StandaloneTrial> {
    let trial = |name, run| StandaloneTrial { name, run };
    vec![
        trial(
            "proxy: a frozen connection forwards nothing, a new one works",
            frozen,
        ),
        trial(
            "proxy: a list freezes after the head of its response",
            frozen_list,
        ),
        trial("proxy: one write is held until it is released", held),
        trial("proxy: every request gets 503 in an outage", unavailable),
        trial("proxy: a path is slow", slow),
    ]
}

/// A connection to the proxy.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, first: &str, body: &str) {
        let request = HttpMessage {
            first: format!("{first} HTTP/1.1"),
            fields: vec![("host".to_owned(), "127.0.0.1".to_owned())],
            body: body.as_bytes().to_vec(),
            is_last: false,
        };
        request.send(self.0.get_mut()).unwrap();
    }

    fn status(&mut self) -> io::Result<u16> {
        let answer = HttpMessage::receive(&mut self.0, Until::Closed)?;
        answer.status().ok_or(io::ErrorKind::InvalidData.into())
    }

    fn get(&mut self, path: &str) -> u16 {
        self.send(&format!("GET {path}"), "");
        self.status().unwrap()
    }
}

/// A server that answers `/livez` with 200, and a proxy to it.
fn start(folder: &Path) -> (Lockkeeper, Proxy) {
    let tls = folder.join("tls");
    let server = Lockkeeper::start_without_cluster(folder, &["--tls-dir", tls.to_str().unwrap()]);
    let server = server.unwrap();
    let proxy = Proxy::start(WatchServer {
        port: server.port(),
        ca: server.ca().to_owned(),
        token: "none",
    });
    (server, proxy.unwrap())
}

fn frozen(folder: &Path) {
    let (_server, proxy) = start(folder);
    let mut old = Connection::open(&proxy);
    assert_eq!(old.get("/livez"), 200);
    proxy.freeze();
    old.send("GET /livez", "");
    let answered = thread::spawn(move || old.status());
    assert_eq!(Connection::open(&proxy).get("/livez"), 200);
    assert!(!answered.is_finished());
    drop(proxy);
    assert!(answered.join().unwrap().is_err(), "it was answered");
}

fn frozen_list(folder: &Path) {
    let (_server, proxy) = start(folder);
    proxy.set(Faults {
        frozen_list: "/livez",
        ..Faults::default()
    });
    let mut first = Connection::open(&proxy);
    first.send("GET /livez?limit=1", "");
    let answered = thread::spawn(move || first.status());
    wait::until(
        || Ok((proxy.counts().frozen_lists == 1).then_some(())),
        || "no list is frozen".to_owned(),
    )
    .unwrap();
    // The next one is whole.
    assert_eq!(Connection::open(&proxy).get("/livez?limit=1"), 200);
    assert!(!answered.is_finished());
    drop(proxy);
    let error = answered.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

fn held(folder: &Path) {
    let (_server, proxy) = start(folder);
    proxy.hold(WritePattern {
        method: "PATCH",
        path: "/jobs/",
        body: "\"suspend\":true",
    });
    let mut client = Connection::open(&proxy);
    for (first, body) in [
        ("PUT /jobs/a", r#"{"suspend":true}"#),
        ("PATCH /workloads/a", r#"{"suspend":true}"#),
        ("PATCH /jobs/a", r#"{"suspend":false}"#),
    ] {
        client.send(first, body);
        assert_eq!(client.status().unwrap(), 404, "{first}");
    }
    assert!(!proxy.is_holding());
    client.send("PATCH /jobs/a", r#"{"suspend":true}"#);
    wait::until(
        || Ok(proxy.is_holding().then_some(())),
        || "the write is not held".to_owned(),
    )
    .unwrap();
    // Only one write is held.
    let mut other = Connection::open(&proxy);
    other.send("PATCH /jobs/a", r#"{"suspend":true}"#);
    assert_eq!(other.status().unwrap(), 404);
    assert_eq!(proxy.take_answer_to_held(), None);
    proxy.release();
    assert_eq!(client.status().unwrap(), 404);
    assert_eq!(proxy.take_answer_to_held(), Some(404));
}

fn unavailable(folder: &Path) {
    let (_server, proxy) = start(folder);
    let mut open = Connection::open(&proxy);
    assert_eq!(open.get("/livez"), 200);
    proxy.begin_outage();
    open.send("GET /livez", "");
    assert!(open.status().is_err(), "the connection is still open");
    let mut client = Connection::open(&proxy);
    assert_eq!(client.get("/livez"), 503);
    client.send("PATCH /jobs/a", "{}");
    assert_eq!(client.status().unwrap(), 503);
    assert_eq!(client.get("/jobs?watch=true"), 503);
    assert_eq!(proxy.counts().unavailable, 3);
    proxy.set(Faults::default());
    assert_eq!(client.get("/livez"), 200);
}

fn slow(folder: &Path) {
    let (_server, proxy) = start(folder);
    proxy.set(Faults {
        slow: "/leases/",
        slow_ms: 50,
        ..Faults::default()
    });
    let mut client = Connection::open(&proxy);
    assert_eq!(client.get("/livez"), 200);
    assert_eq!(proxy.counts().late, 0);
    assert_eq!(client.get("/leases/a"), 404);
    assert_eq!(proxy.counts().late, 1);
}

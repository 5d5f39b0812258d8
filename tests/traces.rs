//! The binary with spans, and a collector that receives them: OTLP over HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

#[path = "e2e/process.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod process;
#[path = "e2e/wait.rs"]
mod wait;

use process::Process;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A word of the object in the review that is sent.
const CONTENT: &str = "borrowWithinCohort";

/// A collector on this machine: it stores the requests to `/v1/traces`.
struct Collector {
    url: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let kept = Arc::clone(&bodies);
        thread::spawn(move || {
            for stream in listener.incoming() {
                kept.lock().unwrap().push(read_request(&stream.unwrap()));
            }
        });
        Self { url, bodies }
    }

    /// The spans that have come, once there is one of this name that the caller began.
    fn spans(&self, root: &str) -> Vec<Span> {
        let spans = || {
            let bodies = self.bodies.lock().unwrap();
            let spans: Vec<Span> = bodies.iter().flat_map(|body| spans(body)).collect();
            let is_there = spans.iter().any(|span| span.name == root);
            Ok(is_there.then_some(spans))
        };
        wait::until(spans, || "no such span has come".to_owned()).unwrap()
    }
}

/// Reads one request, checks its head, and says that all is well.
fn read_request(mut stream: &TcpStream) -> Vec<u8> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_ascii_lowercase()),
        }
    }
    assert_eq!(head[0], "post /v1/traces http/1.1");
    assert!(
        head.contains(&"content-type: application/x-protobuf".to_owned()),
        "{head:?}"
    );
    let length = head
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answer.as_bytes()).unwrap();
    body
}

/// A field of a protobuf message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a protobuf message, with their numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut out = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut message)),
            1 => Field::Bytes(message.split_off(..8).unwrap()),
            2 => {
                let length = varint(&mut message).try_into().unwrap();
                Field::Bytes(message.split_off(..length).unwrap())
            }
            5 => Field::Bytes(message.split_off(..4).unwrap()),
            other => panic!("wire type {other}"),
        };
        out.push((tag >> 3, field));
    }
    out
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0.. {
        let byte = *message.split_off_first().unwrap();
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The messages and strings of one number.
fn all(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    fields(message)
        .into_iter()
        .filter_map(move |(at, field)| match field {
            Field::Bytes(bytes) if at == number => Some(bytes),
            _ => None,
        })
}

fn text(message: &[u8], number: u64) -> String {
    let bytes = all(message, number).next().unwrap_or_default();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hex(message: &[u8], number: u64) -> String {
    let bytes = all(message, number).next().unwrap_or_default();
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The attributes of a span or a resource: key 1, and value 2 with a string 1, a number 3 or a list 5.
fn attributes(message: &[u8], number: u64) -> BTreeMap<String, String> {
    let value = |value: &[u8]| match fields(value).first() {
        Some((1, Field::Bytes(text))) => String::from_utf8(text.to_vec()).unwrap(),
        Some((3, Field::Number(number))) => number.to_string(),
        Some((5, Field::Bytes(list))) => {
            let items: Vec<String> = all(list, 1).map(|item| text(item, 1)).collect();
            items.join(",")
        }
        _ => panic!("a value of another type"),
    };
    all(message, number)
        .map(|pair| (text(pair, 1), value(all(pair, 2).next().unwrap())))
        .collect()
}

/// A span as `opentelemetry/proto/trace/v1/trace.proto` has it.
#[derive(Debug)]
struct Span {
    service: String,
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: BTreeMap<String, String>,
}

/// The spans of an `ExportTraceServiceRequest`.
fn spans(request: &[u8]) -> Vec<Span> {
    let mut out = Vec::new();
    for resource_spans in all(request, 1) {
        let resource = all(resource_spans, 1).next().unwrap();
        let service = attributes(resource, 1)["service.name"].clone();
        for span in all(resource_spans, 2).flat_map(|scope| all(scope, 2)) {
            out.push(Span {
                service: service.clone(),
                trace: hex(span, 1),
                id: hex(span, 2),
                parent: hex(span, 4),
                name: text(span, 5),
                attributes: attributes(span, 9),
            });
        }
    }
    out
}

/// A running `lockkeeper serve` with these variables.
struct Server {
    process: Process,
    folder: TempDir,
    url: String,
}

impl Server {
    fn start(variables: &[(&str, &str)]) -> Self {
        let folder = TempDir::with_prefix("lockkeeper-traces-").unwrap();
        let stdout = folder.path().join("stdout");
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--metrics-listen",
                "off",
            ])
            .args(["--log-format", "json", "--tls-dir"])
            .arg(folder.path().join("tls"))
            .current_dir(ROOT)
            .env_remove("LOCKKEEPER_LOG")
            .envs(variables.iter().copied());
        let log = folder.path().join("stderr");
        let printed = Some(process::create(&stdout).unwrap());
        let mut process = Process::start("lockkeeper serve", command, &log, printed).unwrap();
        let url = process.wait_ready(|| announced_address(&stdout)).unwrap();
        Self {
            process,
            folder,
            url,
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    /// Sends a review that is rejected, as a client that has started a trace.
    fn review(&self) {
        let ca: PathBuf = self.folder.path().join("tls/ca.crt");
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--cacert"])
            .arg(ca)
            .args(["--header", "Content-Type: application/json"])
            .args(["--header", &format!("traceparent: 00-{TRACE}-{PARENT}-01")])
            .args(["--data", "@examples/reviews/clusterqueue-rejected.json"])
            .arg(format!("{}/validate", self.url))
            .current_dir(ROOT)
            .output()
            .unwrap();
        let answer = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(answer.contains("CQ001"), "{answer}{error}");
    }

    /// Stops the server, which ends well whatever the collector does, and gives back its log.
    fn stop(self) -> String {
        let log = self.folder.path().join("stderr");
        let status = self.process.terminate().unwrap();
        let log = fs::read_to_string(log).unwrap();
        assert!(status.success(), "{status}\n{log}");
        log
    }
}

fn announced_address(stdout: &Path) -> Option<String> {
    let printed = fs::read_to_string(stdout).ok()?;
    let (line, _) = printed.split_once('\n')?;
    Some(line.strip_prefix("serving on ")?.to_owned())
}

#[test]
fn spans_join_the_trace_of_the_caller() {
    let collector = Collector::start();
    let server = Server::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url),
        ("OTEL_BSP_SCHEDULE_DELAY", "10"),
    ]);
    server.review();
    let spans = collector.spans("validate");
    let root = spans.iter().find(|span| span.name == "validate").unwrap();
    assert_eq!((&*root.trace, &*root.parent), (TRACE, PARENT));
    assert_eq!(root.service, "lockkeeper");
    assert_eq!(root.attributes["admission.kind"], "ClusterQueue");
    assert_eq!(root.attributes["admission.verdict"], "denied");
    assert_eq!(root.attributes["admission.rules"], "CQ001,CQ007");
    for name in ["read", "envelope", "decode", "rules"] {
        let step = spans.iter().find(|span| span.name == name).expect(name);
        assert_eq!((&*step.trace, &step.parent), (TRACE, &root.id));
    }
    let review =
        fs::read_to_string(Path::new(ROOT).join("examples/reviews/clusterqueue-rejected.json"));
    assert!(review.unwrap().contains(CONTENT));
    for body in &*collector.bodies.lock().unwrap() {
        let has_content = body
            .windows(CONTENT.len())
            .any(|word| word == CONTENT.as_bytes());
        assert!(!has_content, "a part of the object was sent");
    }
    server.stop();
}

/// The delay is an hour: only the end of the process sends what there is.
#[test]
fn server_stop_flushes_remaining_spans() {
    let collector = Collector::start();
    let server = Server::start(&[
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            &format!("{}/v1/traces", collector.url),
        ),
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
        ("OTEL_SERVICE_NAME", "keeper-of-the-east"),
    ]);
    server.review();
    server.stop();
    let spans = collector.spans("validate");
    assert!(
        spans
            .iter()
            .all(|span| span.service == "keeper-of-the-east")
    );
}

#[test]
fn sampler_always_off_sends_no_spans() {
    let collector = Collector::start();
    let server = Server::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url),
        ("OTEL_TRACES_SAMPLER", "always_off"),
    ]);
    server.review();
    server.stop();
    assert!(collector.bodies.lock().unwrap().is_empty());
}

#[test]
fn no_endpoint_sends_no_spans_and_logs_nothing() {
    let server = Server::start(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]);
    server.review();
    let log = server.stop();
    assert!(!log.contains("spans"), "{log}");
}

/// An address without a listener, one that accepts connections and never responds, and one that is no
/// address: reviews are answered, and the server stops, all the same.
#[test]
fn unavailable_collector_does_not_delay_reviews() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent = (format!("http://{}", silent.local_addr().unwrap()), silent);
    let absent = {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        format!("http://{}", taken.local_addr().unwrap())
    };
    for (endpoint, message) in [
        (absent.as_str(), "cannot send spans"),
        (&silent.0, "the last spans were not exported"),
        ("http://[", "no spans are exported"),
    ] {
        let server = Server::start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("OTEL_BSP_SCHEDULE_DELAY", "10"),
        ]);
        for _ in 0..3 {
            server.review();
        }
        let begun = server.log();
        let log = server.stop();
        assert!(log.contains(message), "{endpoint}: {begun}{log}");
    }
}

//! Starts the server repeatedly and prints the time until it is ready.
//!
//! The time starts before the process is created and ends when `/readyz` returns 200 over TLS. One series of runs
//! generates the certificates, the other finds existing ones. The CPU time of the process until then is printed as
//! well: it is reliable on a busy machine.
#![allow(clippy::print_stdout, reason = "it prints its measurements")]

use anyhow::{Context, Result, ensure};
use axum::body::Bytes;
use clap::Parser;
use http_body_util::Empty;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Pause between two readiness probes.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// How long a server may take before the measurement is given up.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Measures the time from the start of a process to `/readyz`, without a cluster.
#[derive(Parser)]
struct Arguments {
    /// An empty folder for certificates
    folder: PathBuf,
    /// The binary
    #[arg(long, default_value = "target/dist/lockkeeper")]
    binary: PathBuf,
    /// Runs of each series
    #[arg(long, default_value_t = 20)]
    runs: usize,
}

/// From the start of the process.
#[derive(Clone, Copy)]
struct Times {
    /// Until it says where it serves.
    listening: Duration,
    /// Until `/readyz` answers 200.
    ready: Duration,
    /// CPU time of all its threads until then.
    cpu: Duration,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.runs > 0, "at least one run is needed");
    let binary = std::path::absolute(&arguments.binary)?;
    let folder = std::path::absolute(&arguments.folder)?;
    let prepared = folder.join("kept");
    // The first run makes the certificates that the others find.
    start(&binary, &prepared).await?;
    let mut found = Vec::new();
    let mut made = Vec::new();
    for run in 0..arguments.runs {
        found.push(start(&binary, &prepared).await?);
        made.push(start(&binary, &folder.join(run.to_string())).await?);
    }
    print("certificates found", &found);
    print("certificates made", &made);
    Ok(())
}

fn print(what: &str, times: &[Times]) {
    for (until, of) in [
        ("listening", (|times| times.listening) as fn(&Times) -> _),
        ("ready", |times| times.ready),
        ("CPU time", |times| times.cpu),
    ] {
        let mut sorted: Vec<Duration> = times.iter().map(of).collect();
        sorted.sort();
        let ms = |at: usize| sorted.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let last = sorted.len().saturating_sub(1);
        println!(
            "{what:<19} {until:<10} {} runs: least {:.1} ms, median {:.1} ms, most {:.1} ms",
            sorted.len(),
            ms(0),
            ms(sorted.len() / 2),
            ms(last),
        );
    }
}

/// Starts the server with certificates of this folder, waits until it is ready, and ends it.
async fn start(binary: &Path, folder: &Path) -> Result<Times> {
    std::fs::create_dir_all(folder)?;
    let tls = folder.join("tls");
    let begun = Instant::now();
    let server = Command::new(binary)
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "127.0.0.1:0",
        ])
        .arg("--tls-dir")
        .arg(&tls)
        // Without a world in files.
        .current_dir(folder)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    let mut server = KillOnDrop(server);
    let out = server.0.stdout.take().context("no standard output")?;
    let mut out = BufReader::new(out);
    let mut greeting = String::new();
    out.read_line(&mut greeting)?;
    let listening = begun.elapsed();
    let address = greeting.trim_end().strip_prefix("serving on https://");
    let address = address.with_context(|| format!("the server printed {greeting:?}"))?;
    let cacert = tls.join("ca.crt");
    let ready = wait_ready(address.parse()?, &cacert);
    tokio::time::timeout(TIMEOUT, ready).await??;
    Ok(Times {
        listening,
        ready: begun.elapsed(),
        cpu: cpu_time(server.0.id())?,
    })
}

/// The time that the threads of a process have run (the first number of `schedstat`, in nanoseconds).
fn cpu_time(process: u32) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().unwrap_or_default();
        sum = sum.saturating_add(Duration::from_nanos(first.parse()?));
    }
    Ok(sum)
}

/// A process that ends with its owner.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

async fn wait_ready(address: SocketAddr, cacert: &Path) -> Result<()> {
    let tls = lockkeeper_bench::connect(address, cacert, b"http/1.1").await?;
    let (mut sender, connection) = handshake(TokioIo::new(tls)).await?;
    tokio::spawn(connection);
    while probe(&mut sender).await? != StatusCode::OK {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn probe(sender: &mut SendRequest<Empty<Bytes>>) -> Result<StatusCode> {
    sender.ready().await?;
    let request = Request::get("/readyz").header("Host", "localhost");
    let response = sender.send_request(request.body(Empty::new())?).await?;
    Ok(response.status())
}

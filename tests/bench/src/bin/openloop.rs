//! Posts a review at a fixed rate and prints how late the answers were.
//!
//! The load is open: each request has its time, whether or not earlier ones were answered, and its
//! latency counts from that time. So a server that stalls is charged for every request that came due
//! meanwhile, where a client that waits for each answer would have sent none (coordinated omission).
#![allow(clippy::print_stdout, reason = "it prints its measurements")]

use anyhow::{Result, bail};
use axum::body::Bytes;
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The most requests that one run may send.
const REQUESTS_MAX: u32 = 1_000_000;

/// Posts a review at a fixed rate to a server on this machine.
#[derive(Parser)]
struct Arguments {
    /// Address of the server
    #[arg(long, default_value = "127.0.0.1:9443")]
    address: SocketAddr,
    /// The CA that signed its certificate (PEM)
    #[arg(long)]
    cacert: PathBuf,
    /// The path
    #[arg(long, default_value = "/validate")]
    path: String,
    /// The file with the review
    #[arg(long)]
    review: PathBuf,
    /// Requests a second
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// How long, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Connections, each with HTTP/2
    #[arg(long, default_value_t = 4)]
    connections: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.address.ip().is_loopback() {
        bail!("{} is not on this machine", arguments.address);
    }
    let requests = arguments.rate.saturating_mul(arguments.seconds);
    if requests == 0 || requests > REQUESTS_MAX || arguments.connections == 0 {
        bail!("a run has between 1 and {REQUESTS_MAX} requests and at least one connection");
    }
    let mut latencies = run(&arguments, requests).await?;
    latencies.sort();
    let at = |percent: usize| {
        let last = latencies.len().saturating_sub(1);
        let place = last.saturating_mul(percent) / 1_000;
        latencies
            .get(place)
            .map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    };
    println!(
        "{} {} requests at {}/s: p50 {:.3} ms, p90 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms, max {:.3} ms",
        arguments.path,
        latencies.len(),
        arguments.rate,
        at(500),
        at(900),
        at(990),
        at(999),
        at(1_000),
    );
    Ok(())
}

/// Sends every request at its time; the latencies, from that time.
async fn run(arguments: &Arguments, requests: u32) -> Result<Vec<Duration>> {
    let body = Bytes::from(std::fs::read(&arguments.review)?);
    let mut connections = Vec::new();
    for _ in 0..arguments.connections {
        connections.push(connect(arguments).await?);
    }
    let interval = Duration::from_secs(1) / arguments.rate;
    let start = Instant::now();
    let mut running = JoinSet::new();
    for (number, connection) in (0..requests).zip(connections.iter().cycle()) {
        let due = start + interval * number;
        tokio::time::sleep_until(due.into()).await;
        let request = Request::post(&arguments.path)
            .header("Host", "localhost")
            .header("Content-Type", "application/json")
            .body(Full::new(body.clone()))?;
        running.spawn(exchange(connection.clone(), request, due));
    }
    running.join_all().await.into_iter().collect()
}

async fn exchange(
    mut connection: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    due: Instant,
) -> Result<Duration> {
    let response = connection.send_request(request).await?;
    if !response.status().is_success() {
        bail!("answered with {}", response.status());
    }
    response.into_body().collect().await?;
    Ok(due.elapsed())
}

async fn connect(arguments: &Arguments) -> Result<SendRequest<Full<Bytes>>> {
    let tls = lockkeeper_bench::connect(arguments.address, &arguments.cacert, b"h2").await?;
    let builder = Builder::new(TokioExecutor::new());
    let (sender, connection) = builder.handshake(TokioIo::new(tls)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
